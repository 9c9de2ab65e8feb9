"""Server-sent events: what is an event, whatever the pieces it comes in."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detokbench.live.sse import Event, LineTooLongError, SseParser, parse_stream


def data_of(content, **options):
    return [event.data for event in parse_stream([(0.0, content)], **options).events]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", [b"a", b"b", b"c"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\n\n", [b""]),
        (b": keep-alive\n\ndata: a\n\n", [b"a"]),
        (b"event: x\nid: 7\nretry: 10\ndata: a\n: note\n\n", [b"a"]),
        (b"datas: a\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\n\n\n", []),
        (b"data: a\n", [b"a"]),
        (b"", []),
    ],
)
def test_events(content, expected):
    assert data_of(content) == expected


def test_a_stream_that_ends_within_a_line():
    parsed = parse_stream([(0.0, b'data: a\n\ndata: {"b')])
    assert [event.data for event in parsed.events] == [b"a"]
    assert parsed.inside_line
    assert not parse_stream([(0.0, b"data: a\n\n")]).inside_line


def test_an_event_has_the_time_of_the_read_that_completed_it():
    reads = [(1.0, b"data: a\n"), (2.0, b"\ndata: b\n\r"), (3.0, b"\ndata: c\r\n\r"), (4.0, b"\n")]
    assert parse_stream(reads).events == [Event(2.0, b"a"), Event(2.0, b"b"), Event(3.0, b"c")]


@pytest.mark.parametrize("content", [b"data: " + b"x" * 99, b"data: xxxxx\n" * 20, b"x" * 101])
def test_a_line_or_an_event_beyond_the_limit_ends_parsing(content):
    parsed = parse_stream([(0.0, b"data: a\n\n"), (1.0, content)], max_line_bytes=100)
    assert parsed.too_long
    assert [event.data for event in parsed.events] == [b"a"]


def test_what_a_parser_keeps_is_bounded():
    parser = SseParser(max_line_bytes=1000)
    with pytest.raises(LineTooLongError):
        for _ in range(100):
            parser.feed(b"y" * 100)
    assert sum(map(len, parser._parts)) <= 1100


LINES = st.one_of(
    st.text().map(lambda text: b"data: " + text.encode().replace(b"\r", b"").replace(b"\n", b"")),
    st.sampled_from([b"", b"data", b": comment", b"event: x", b"data:{}", b"data: [DONE]"]),
)
CONTENT = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]))).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


def cut(content, places):
    ends = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [content[a:b] for a, b in pairwise(ends)]


@given(content=CONTENT, places=st.lists(st.integers(0, 10_000), max_size=12))
def test_any_cut_gives_the_same_events(content, places):
    pieces = cut(content, places)
    assert b"".join(pieces) == content
    parsed = parse_stream(list(enumerate(pieces)))
    assert [event.data for event in parsed.events] == data_of(content)


@given(content=CONTENT, places=st.lists(st.integers(0, 10_000), max_size=12))
def test_the_time_of_an_event_is_that_of_its_last_byte(content, places):
    by_byte = parse_stream([(at, content[at : at + 1]) for at in range(len(content))]).events
    pieces = cut(content, places)
    read_of_byte = [number for number, piece in enumerate(pieces) for _ in piece]
    expected = [event._replace(at_s=read_of_byte[int(event.at_s)]) for event in by_byte]
    events = parse_stream([read for read in enumerate(pieces) if read[1]]).events
    assert events == expected


@given(content=st.binary(max_size=300), places=st.lists(st.integers(0, 300), max_size=8))
def test_any_bytes_at_all_are_cut_alike(content, places):
    assert [e.data for e in parse_stream(list(enumerate(cut(content, places)))).events] == data_of(
        content
    )
