import random
from dataclasses import replace

import pytest
from streaming import (
    VOCABULARIES,
    assert_error,
    build,
    deltas,
    one_by_one,
    script_ids,
    stream,
    vocabulary,
)
from tokenizers import Tokenizer, models

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths import Flags, load_path_class, path_names
from detokbench.paths.printable import is_cjk, printable_prefix
from detokbench.paths.slow import join_around_added_tokens
from detokbench.vocab import Vocabulary
from detokbench.vocab.id_bytes import is_whole_text
from detokbench.workload.texts import load_text, script_names

NEEDS_RUST = {
    "fast": "DecodeStream needs a Rust tokenizer",
    "rust-batch": "decode_batch needs a Rust tokenizer",
    "slow-uncached": "vLLM puts no caching proxy around this tokenizer",
}
PYTHON_VOCABULARIES = ("tekken", "mistral-spm")
WITHOUT_REASON = [
    (path, name)
    for name in VOCABULARIES
    for path in path_names()
    if not (path in NEEDS_RUST and name in PYTHON_VOCABULARIES)
]
RIGHT = [(path, name) for path, name in WITHOUT_REASON if path != "naive"]
VLLM = ("slow", "slow-uncached", "fast")
IGNORE_THE_PROMPT = ("naive", "text-streamer")
SGLANG = ("batch-decode", "row-decode", "rust-batch")
WINDOW_OF_PROMPT = 7  # ids of the prompt's tail that slow looks at, the most of all

HELLO, WORLD = 9906, 1917  # llama-3
GENUINE = 5809  # llama-3: one id, the three bytes of U+FFFD
HUG = [243, 162, 167, 154]  # 🤗 as the four bytes of SentencePiece's byte fallback


def test_which_paths_apply_to_which_vocabularies():
    for name in VOCABULARIES:
        for path in path_names():
            reason = NEEDS_RUST.get(path) if name in PYTHON_VOCABULARIES else None
            assert load_path_class(path).why_not(vocabulary(name)) == reason, (path, name)


def test_unknown_path_is_a_usage_error_with_the_nearest_name():
    with pytest.raises(DetokbenchError) as caught:
        load_path_class("bite-table")
    assert_error(caught, ExitCode.USAGE, "'bite-table'", "did you mean 'byte-table'")


# Well-formed text


@pytest.mark.parametrize(("path", "name"), RIGHT)
def test_every_script_streams_to_its_one_shot_decode(path, name):
    scripts = script_ids(name)
    texts = stream(build(path, vocabulary(name)), list(scripts.values()))
    for (script, ids), text in zip(scripts.items(), texts, strict=True):
        assert text == vocabulary(name).decode(ids), script


@pytest.mark.parametrize("name", VOCABULARIES)
def test_naive_breaks_emoji(name):
    ids = script_ids(name)["emoji"]
    (text,) = stream(build("naive", vocabulary(name)), [ids])
    assert "\ufffd" in text
    assert "\ufffd" not in vocabulary(name).decode(ids)


@pytest.mark.parametrize("ids_per_step", [2, 3, 7])
@pytest.mark.parametrize(
    ("path", "name"), [(p, n) for p, n in RIGHT if p in {"slow", "fast", "byte-table"}]
)
def test_several_ids_a_step_give_the_same_text(path, name, ids_per_step):
    """vLLM takes them one at a time whatever their number, and the table joins bytes."""
    loaded = vocabulary(name)
    beginnings = [load_text(script)[:300] for script in script_names()]
    sequences = [loaded.encode(text) for text in beginnings]
    assert stream(build(path, loaded), sequences, ids_per_step) == beginnings


@pytest.mark.parametrize("path", SGLANG)
def test_several_ids_a_step_make_sglang_send_a_character_twice(path, llama3):
    """A held step's printable part may be shorter than what the step before has sent.

    ``字�`` prints up to the ideograph; ``字🤗x�`` prints nothing, since it has no space, and
    the sent offset goes back to the start of the held text.
    """
    (kanji,) = llama3.encode("字")
    first, *rest = llama3.encode("🤗")
    (x,) = llama3.encode("x")
    steps = [[kanji, first], [*rest, x, first], rest]
    assert deltas(build(path, llama3), steps) == ["字", "", "字🤗x🤗", ""]
    assert "".join(deltas(build("byte-table", llama3), steps)) == "字🤗x🤗"


# Rows and batches


@pytest.mark.parametrize(("path", "name"), WITHOUT_REASON)
def test_rows_of_a_batch_stream_as_each_would_alone(path, name):
    sequences = [ids[:40] for ids in script_ids(name).values()]
    alone = [stream(build(path, vocabulary(name)), [ids])[0] for ids in sequences]
    assert stream(build(path, vocabulary(name)), sequences) == alone


@pytest.mark.parametrize(("path", "name"), WITHOUT_REASON)
def test_rows_come_and_go_and_change_places(path, name):
    """Continuous batching: a row is opened at each step, in no order, and ended when it is done."""
    loaded = vocabulary(name)
    rng = random.Random(5)
    sequences = [ids[: rng.randint(5, 30)] for ids in script_ids(name).values()]
    prompts = [ids[40 : 40 + 3 * (i % 4)] for i, ids in enumerate(script_ids(name).values())]
    flags = [Flags(skip_special_tokens=i % 3 != 0) for i in range(len(sequences))]
    alone = [
        stream(build(path, loaded), [ids], 1, [prompt], [row_flags])[0]
        for ids, prompt, row_flags in zip(sequences, prompts, flags, strict=True)
    ]

    together = build(path, loaded)
    waiting, live, texts = list(range(len(sequences))), {}, dict.fromkeys(range(len(sequences)), "")
    position = dict.fromkeys(range(len(sequences)), 0)
    while waiting or live:
        if waiting:
            i = waiting.pop()
            (live[i],) = together.open([prompts[i]], [flags[i]])
        served = rng.sample(sorted(live), rng.randint(1, len(live)))
        new_ids = [sequences[i][position[i] : position[i] + 1] for i in served]
        for i, delta in zip(served, together.step([live[i] for i in served], new_ids), strict=True):
            texts[i] += delta
            position[i] += 1
            if position[i] == len(sequences[i]):
                texts[i] += together.end(live.pop(i))
    assert list(texts.values()) == alone


@pytest.mark.parametrize("path", path_names())
def test_row_without_new_ids_sends_nothing_and_loses_nothing(path, llama3):
    steps = [[HELLO], [], [WORLD], []]
    assert deltas(build(path, llama3), steps) == ["Hello", "", " world", "", ""]


@pytest.mark.parametrize("path", path_names())
def test_ids_of_the_caller_are_left_alone(path, llama3):
    prompt, ids = [HELLO, WORLD], [HELLO, 15722]
    opened = build(path, llama3)
    (row,) = opened.open([prompt])
    opened.step([row], [ids])
    opened.end(row)
    assert (prompt, ids) == ([HELLO, WORLD], [HELLO, 15722])


@pytest.mark.parametrize("path", path_names())
def test_row_that_has_ended_cannot_be_ended_again(path, llama3):
    opened = build(path, llama3)
    (row,) = opened.open([[]])
    opened.end(row)
    with pytest.raises(KeyError):
        opened.end(row)


# Prompts


def split_between_characters(
    loaded: Vocabulary, ids: list[int], clean_tail: int
) -> tuple[list[int], list[int]] | None:
    """A prompt whose last ``clean_tail`` ids are whole characters, and an output after it."""
    text = loaded.decode(ids)
    pieces = loaded.id_bytes.pieces
    cuts = [cut for cut in range(10, 200) if text.startswith(loaded.decode(ids[:cut]))]
    for cut in cuts:
        if all(is_whole_text(pieces[i]) for i in ids[cut - clean_tail : cut]):
            end = max(end for end in cuts if end <= cut + 60)
            return (ids[:cut], ids[cut:end]) if end > cut else None
    return None


@pytest.mark.parametrize(("path", "name"), [(p, n) for p, n in RIGHT if p not in IGNORE_THE_PROMPT])
def test_text_after_a_prompt_is_what_the_output_adds(path, name):
    """On well-formed text; windowed paths may not look back into a split character (see B2)."""
    loaded = vocabulary(name)
    clean_tail = 0 if path in {"fast", "byte-table"} else WINDOW_OF_PROMPT
    found = [split_between_characters(loaded, i, clean_tail) for i in script_ids(name).values()]
    split = [pair for pair in found if pair is not None]
    assert len(split) >= 10
    prompts = [prompt for prompt, _ in split]
    texts = stream(build(path, loaded), [output for _, output in split], 1, prompts)
    for (prompt, output), text in zip(split, texts, strict=True):
        assert text == loaded.decode(prompt + output)[len(loaded.decode(prompt)) :]


@pytest.mark.parametrize("path", [p for p in path_names() if p not in IGNORE_THE_PROMPT])
def test_leading_space_is_kept_after_a_prompt_only(path, spm_fast):
    """B3."""
    prompt, bob = spm_fast.encode("My name is"), [7409]
    assert "".join(deltas(build(path, spm_fast), [bob], prompt)) == " Bob"
    assert "".join(deltas(build(path, spm_fast), [bob])) == "Bob"
    after_special_only = deltas(build(path, spm_fast), [bob], [1])
    assert "".join(after_special_only) == "Bob"


@pytest.mark.parametrize(("path", "name"), [(p, n) for p, n in RIGHT if "spm" in n])
def test_runs_of_spaces_stay_whole(path, name):
    """B3 and B4: one leading space is stripped, once, and no other."""
    loaded = vocabulary(name)
    assert stream(build(path, loaded), [[264, 2287, 287]]) == ["a    b"]
    assert stream(build(path, loaded), [[28705, 5374, 1318]]) == [" leading x"]
    assert stream(build("naive", loaded), [[264, 2287, 287]]) == ["a  b"]


@pytest.mark.parametrize("name", ["llama-3", "mistral-spm-fast"])
def test_prompt_that_ends_inside_a_character_is_continued_by_the_table(name):
    loaded = vocabulary(name)
    hello = loaded.encode("Hello")
    emoji = HUG if loaded.id_bytes.family == "byte fallback" else loaded.encode("🤗")
    for cut in range(1, len(emoji)):
        sent = deltas(build("byte-table", loaded), [emoji[cut:]], [*hello, *emoji[:cut]])
        assert sent == ["🤗", ""]


def test_prompt_that_ends_in_a_replacement_character_is_sent_back_by_fast(llama3):
    """DecodeStream knows no prefix then, and takes the whole prompt for new text."""
    first, *rest = llama3.encode("🤗")
    assert deltas(build("fast", llama3), [rest], [HELLO, first]) == ["Hello🤗", ""]
    assert deltas(build("fast", llama3), [[WORLD]], [HELLO, GENUINE]) == ["Hello\ufffd world", ""]
    assert deltas(build("byte-table", llama3), [[WORLD]], [HELLO, GENUINE]) == [" world", ""]


def test_look_back_into_a_character_of_the_prompt_loses_it(spm_fast):
    """B2: byte fallback turns the whole run into U+FFFD when a window starts inside it."""
    prompt, output = [12014, 28705, *HUG, *HUG], one_by_one([*HUG, 3614])
    for path in ("slow", *SGLANG):
        text = "".join(deltas(build(path, spm_fast), output, prompt))
        assert text == "\ufffd\ufffd\ufffd\ufffd ok", path
    for path in ("fast", "byte-table"):
        text = "".join(deltas(build(path, spm_fast), output, prompt))
        assert text == "🤗 ok", path


# Bytes


@pytest.mark.parametrize(("path", "name"), RIGHT)
def test_character_of_three_bytes_comes_with_its_last_byte(path, name):
    """A3: a growth test by length in bytes would miss it, as U+FFFD has three bytes too."""
    loaded = vocabulary(name)
    hello, again = loaded.encode("Hello"), loaded.encode("x Hello")[-1:]
    split = loaded.encode("x歪")[1:]
    if loaded.id_bytes.family == "byte fallback":
        split = [3 + byte for byte in "歪".encode()]
    steps = one_by_one([*hello, *split, *again])
    held = [""] * (len(split) - 1)
    assert deltas(build(path, loaded), steps) == ["Hello", *held, "歪", " Hello", ""]


def test_lone_byte_is_replaced_at_once_by_the_table(llama3):
    """A5: wrong at once, and nothing after it is lost."""
    assert deltas(build("byte-table", llama3), [[97], [WORLD]]) == ["\ufffd", " world", ""]
    steps = one_by_one([HELLO, 97, 97, WORLD])
    assert deltas(build("byte-table", llama3), steps) == ["Hello", "\ufffd", "\ufffd", " world", ""]
    for path in (*VLLM, *SGLANG):
        assert deltas(build(path, llama3), [[97], [WORLD]]) == ["", "\ufffd world", ""], path


@pytest.mark.parametrize(("path", "name"), [(p, n) for p, n in RIGHT if "spm" in n])
def test_byte_pieces_are_joined_and_never_spelt_out(path, name):
    """A6."""
    loaded = vocabulary(name)
    ids = loaded.encode("歪龘𠮷")
    assert len(ids) == 11
    assert stream(build(path, loaded), [ids, [237, 188, 179]]) == ["歪龘𠮷", "깰"]


def test_open_character_at_the_end_of_a_stream(llama3):
    """Only the table and SGLang have a way to send what is held."""
    first = llama3.encode("🤗")[:1]
    at_end = {path: deltas(build(path, llama3), [[HELLO], first]) for path in path_names()}
    for path in ("byte-table", *SGLANG, "text-streamer"):
        assert at_end[path] == ["Hello", "", "\ufffd"], path
    for path in VLLM:
        assert at_end[path] == ["Hello", "", ""], path


INVALID_PREFIX = [22557, 13, 243, 28708]  # Hello, <0x0A>, <0xF0>, a


def test_fast_recovers_from_an_invalid_prefix_and_loses_the_byte(spm_fast):
    """A1: one decode of all ids takes back the newline that was already sent."""
    assert spm_fast.decode(INVALID_PREFIX) == "Hello\ufffd\ufffda"
    fast = build("fast", spm_fast)
    assert deltas(fast, one_by_one(INVALID_PREFIX)) == ["Hello", "\n", "", "a", ""]
    assert (fast.rebuilt_streams, fast.bad_ids) == (1, 0)
    stream(fast, [[22557, 35, 28708]])  # <0x20> alone is text
    assert fast.rebuilt_streams == 1


@pytest.mark.parametrize("path", ["slow", *SGLANG, "byte-table"])
def test_wrong_byte_in_a_byte_run_costs_one_replacement_character(path, spm_fast):
    """A1."""
    sent = deltas(build(path, spm_fast), one_by_one(INVALID_PREFIX))
    assert sent == ["Hello", "\n", "", "\ufffda", ""]


def test_wrong_byte_after_a_split_character(spm_fast):
    """A1, second input: four U+FFFD where windows begin inside the emoji, one from its bytes."""
    ids = [22557, *HUG, 243, 28708]
    texts = {p: stream(build(p, spm_fast), [ids])[0] for p in ("slow", "fast", "byte-table")}
    assert texts == {
        "slow": "Hello🤗\ufffd\ufffd\ufffd\ufffda",
        "fast": "Hello🤗a",
        "byte-table": "Hello🤗\ufffda",
    }


def test_genuine_replacement_character_at_the_end(llama3):
    """D2: lost by vLLM, late from SGLang, at once from the table."""
    steps = one_by_one([*llama3.encode("price: 5"), GENUINE])
    last_two = {path: deltas(build(path, llama3), steps)[-2:] for path in path_names()}
    assert {path: last_two[path] for path in VLLM} == {path: ["", ""] for path in VLLM}
    assert {path: last_two[path] for path in SGLANG} == {path: ["", "\ufffd"] for path in SGLANG}
    assert last_two["byte-table"] == ["\ufffd", ""]


def test_run_of_genuine_replacement_characters_is_held_by_windows(llama3):
    """D2."""
    steps = one_by_one([GENUINE] * 6 + llama3.encode(" end"))
    for path in (*VLLM, *SGLANG):
        assert deltas(build(path, llama3), steps) == [*[""] * 6, "\ufffd" * 6 + " end", ""], path
    assert deltas(build("byte-table", llama3), steps) == [*["\ufffd"] * 6, " end", ""]


# Ids that are no ids


@pytest.mark.parametrize("bad", [-1, 2**32, 2**63])
def test_number_that_is_no_id_is_skipped(bad, llama3):
    """C1."""
    for path in ("fast", "slow", "byte-table"):
        assert deltas(build(path, llama3), one_by_one([HELLO, bad, WORLD])) == [
            "Hello",
            "",
            " world",
            "",
        ], path


@pytest.mark.parametrize("bad", [-1, 2**32, 2**63, None, 1917.0])
def test_bad_ids_are_counted(bad, llama3):
    """C1."""
    for path in ("fast", "byte-table"):
        opened = build(path, llama3)
        assert stream(opened, [[HELLO, bad, WORLD]]) == ["Hello world"]
        assert stream(opened, [[HELLO, bad, WORLD]], 3) == ["Hello world"]
        assert opened.bad_ids == 2


def test_naive_raises_on_a_number_that_is_no_id(llama3):
    for path in ("naive", "text-streamer"):
        with pytest.raises(OverflowError):
            stream(build(path, llama3), [[-1]])


@pytest.mark.parametrize("padding", [128_256, 150_000, 2**32 - 1])
def test_id_in_the_padding_of_the_embedding_is_empty(padding, llama3):
    """C2; SGLang reads it as id 0."""
    for path in path_names():
        middle = "!" if path in SGLANG else ""
        (text,) = stream(build(path, llama3), [[HELLO, padding, WORLD]])
        assert text == f"Hello{middle} world", path


def test_id_past_the_end_of_a_python_tokenizer(tekken):
    """C2: Mistral's own tokenizer raises, the paths do not reach it with such an id."""
    ids = [22177, tekken.size, 4304]
    with pytest.raises(KeyError):
        tekken.decode(ids)
    for path in ("slow", "batch-decode", "byte-table"):
        assert stream(build(path, tekken), [ids]) == ["Hello world"], path


def test_id_past_the_end_beside_open_bytes_is_unk_for_vllm(tekken):
    """vLLM's wrapper turns pieces back into ids there, and the empty piece has none."""
    ids = [tekken.size, *tekken.encode("x🌶")[1:]]
    assert stream(build("slow", tekken), [ids]) == ["<unk>🌶"]
    assert stream(build("byte-table", tekken), [ids]) == ["🌶"]


# Special tokens


@pytest.mark.parametrize("path", path_names())
def test_special_tokens_are_shown_only_where_they_are_not_skipped(path, llama3):
    ids = [HELLO, 128_009, WORLD]
    flags = [Flags(), Flags(skip_special_tokens=False), Flags(True, False)]
    texts = stream(build(path, llama3), [ids] * 3, flags=flags)
    assert texts == ["Hello world", "Hello<|eot_id|> world", "Hello world"]


def test_table_serves_by_look_up_again_once_no_row_keeps_special_tokens(llama3):
    table = build("byte-table", llama3)
    stream(table, [[128_009], [HELLO]], flags=[Flags(skip_special_tokens=False), Flags()])
    assert not table._rows_keeping
    assert not table._unsettled


class StubTokenizer:
    """A Python tokenizer whose added tokens its own join does not know."""

    is_fast = False
    _tokens = ("ok", "1", "<think>", "</think>", "<eos>")
    all_special_ids = (4,)
    all_special_tokens = ("<eos>",)

    def __len__(self):
        return len(self._tokens)

    def get_vocab(self):
        return {token: i for i, token in enumerate(self._tokens)}

    def get_added_vocab(self):
        return {"<think>": 2, "</think>": 3, "<eos>": 4}

    def convert_ids_to_tokens(self, ids, skip_special_tokens=False):
        kept = [i for i in ids if not (skip_special_tokens and i in self.all_special_ids)]
        return [self._tokens[i] for i in kept]

    def convert_tokens_to_string(self, tokens):
        assert not set(tokens) & set(self.get_added_vocab())
        return "".join(tokens)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (Flags(True, True), "<think> okok </think> 1"),
        (Flags(True, False), "<think>okok</think>1"),
        (Flags(False, True), "<think> okok </think> <eos> 1"),
        (Flags(False, False), "<think>okok</think><eos>1"),
    ],
)
def test_slow_joins_around_added_tokens_of_a_python_tokenizer(flags, text):
    """C3."""
    stub = Vocabulary("stub", StubTokenizer(), None, "test")
    assert stream(build("slow", stub), [[2, 0, 0, 3, 4, 1]], flags=[flags]) == [text]
    tokens = StubTokenizer().convert_ids_to_tokens([2, 0, 0, 3, 4, 1])
    skip, spaces = flags.skip_special_tokens, flags.spaces_between_special_tokens
    assert join_around_added_tokens(StubTokenizer(), tokens, skip, spaces) == text


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (Flags(False, False), "ok <think></think> ok <think>"),
        (Flags(False, True), "ok <think> </think> ok <think>"),
        (Flags(True, False), "ok ok"),
    ],
)
def test_fast_takes_out_spaces_between_added_tokens_if_both_flags_ask_for_it(flags, text):
    """A Rust tokenizer without a decoder puts a space between any two tokens."""
    rust = Tokenizer(models.WordLevel({"ok": 0, "?": 1}, unk_token="?"))
    rust.add_special_tokens(["<think>", "</think>"])
    stub = Vocabulary("stub", StubTokenizer(), rust, "test")
    assert stream(build("fast", stub), [[0, 2, 3, 0, 2]], flags=[flags]) == [text]


def test_slow_reads_an_id_without_token_as_nothing():
    class WithGap(StubTokenizer):
        _tokens = ("ok", None, "<think>", "</think>", "<eos>")

    stub = Vocabulary("stub", WithGap(), None, "test")
    assert stream(build("slow", stub), [[0, 1, 0]], prompts=[[1]]) == ["okok"]


# vLLM's two-window offsets


def test_slow_moves_its_offsets_only_when_it_commits(llama3):
    slow = build("slow", llama3)
    (row,) = slow.open([[]])
    state = slow._rows[row]
    seen = []
    for token_id in [HELLO, *llama3.encode("🤗"), WORLD]:
        delta = slow.step([row], [[token_id]])[0]
        seen.append((delta, state.prefix_offset, state.read_offset))
    assert seen == [
        ("Hello", 0, 1),
        ("", 0, 1),
        ("", 0, 1),
        ("🤗", 1, 4),
        (" world", 4, 5),
    ]


def test_slow_starts_from_the_tail_of_the_prompt(llama3):
    prompt = list(range(1000, 1020))
    slow = build("slow", llama3)
    rows = slow.open([prompt, prompt[:3], []])
    offsets = [(slow._rows[row].prefix_offset, slow._rows[row].read_offset) for row in rows]
    assert offsets == [(2, 7), (0, 3), (0, 0)]


def test_special_tokens_of_the_prompt_do_not_count_as_context(llama3):
    slow = build("slow", llama3)
    rows = slow.open(
        [[HELLO, 128_000, 128_009], [HELLO, 128_000, 128_009]],
        [Flags(), Flags(skip_special_tokens=False)],
    )
    assert [slow._rows[row].read_offset for row in rows] == [1, 3]


# SGLang's windows


class RecordingTokenizer:
    """Writes down which windows are decoded together, and with which flags."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self.calls = []

    def __len__(self):
        return len(self._tokenizer)

    def batch_decode(self, windows, **flags):
        self.calls.append((windows, *flags.values()))
        return self._tokenizer.batch_decode(windows, **flags)


def test_batch_decode_groups_rows_by_their_flags(llama3):
    recorder = RecordingTokenizer(llama3.tokenizer)
    path = build("batch-decode", replace(llama3, tokenizer=recorder))
    skipping, keeping = Flags(), Flags(skip_special_tokens=False)
    rows = path.open([[], [], []], [skipping, keeping, skipping])
    ids = [[HELLO], [128_009], [WORLD]]
    assert path.step(rows, ids) == ["Hello", "<|eot_id|>", " world"]
    # The windows before the new ids are empty, and empty windows are left out.
    assert recorder.calls == [([[HELLO], [WORLD]], True, True), ([[128_009]], False, True)]


def test_batch_decode_makes_two_calls_for_a_batch_with_the_same_flags(llama3):
    recorder = RecordingTokenizer(llama3.tokenizer)
    path = build("batch-decode", replace(llama3, tokenizer=recorder))
    rows = path.open([[HELLO], [WORLD], []])
    path.step(rows, [[WORLD], [HELLO], [HELLO]])
    assert recorder.calls == [
        ([[HELLO], [WORLD]], True, True),
        ([[HELLO, WORLD], [WORLD, HELLO], [HELLO]], True, True),
    ]


def test_sglang_takes_five_ids_of_the_prompt_as_context(llama3):
    recorder = RecordingTokenizer(llama3.tokenizer)
    path = build("batch-decode", replace(llama3, tokenizer=recorder))
    prompt = list(range(1000, 1020))
    path.step(path.open([prompt]), [[WORLD]])
    assert [windows for windows, *_ in recorder.calls] == [[prompt[-5:]], [[*prompt[-5:], WORLD]]]


@pytest.mark.parametrize("path", SGLANG)
def test_more_rows_in_a_batch_than_states_is_an_error_that_names_the_limit(path, llama3):
    opened = build(path, llama3, max_states=2)
    rows = opened.open([[], [], []])
    with pytest.raises(DetokbenchError) as caught:
        opened.step(rows, [[HELLO]] * 3)
    says = ("row 0", "3 rows", "the 2 states", "SGLANG_DETOKENIZER_MAX_STATES")
    assert_error(caught, ExitCode.BROKEN_SETUP, *says)


@pytest.mark.parametrize("path", SGLANG)
def test_row_dropped_between_batches_loses_text_in_silence(path, llama3, monkeypatch):
    monkeypatch.setenv("SGLANG_DETOKENIZER_MAX_STATES", "2")
    opened = build(path, llama3)
    first, second, third = opened.open([[HELLO] * 5] * 3)
    assert opened.step([first, second], [[WORLD]] * 2) == [" world"] * 2
    assert opened.states_lost == 0
    assert opened.step([third], [[WORLD]]) == [" world"]  # the oldest, ``first``, is dropped
    assert opened.step([first], [[WORLD]]) == [""]
    assert opened.states_lost == 1
    assert opened.end(third) == ""
    assert opened.states_lost == 1


def test_row_that_has_ended_frees_its_state(llama3):
    opened = build("batch-decode", llama3, max_states=2)
    (long_lived,) = opened.open([[HELLO] * 5])
    texts = opened.step([long_lived], [[WORLD]])
    for _ in range(3):
        assert stream(opened, [[WORLD]], prompts=[[HELLO] * 5]) == [" world"]
        texts += opened.step([long_lived], [[WORLD]])
    assert texts == [" world"] * 4
    assert opened.states_lost == 0


@pytest.mark.parametrize("path", SGLANG)
def test_printable_part_of_held_text_is_sent_once(path, llama3):
    emoji = llama3.encode("🤗")
    word = llama3.encode("word ")
    steps = [[*word, emoji[0]], [emoji[1]], [emoji[2]], [WORLD]]
    assert deltas(build(path, llama3), steps) == ["word ", "", "🤗", " world", ""]


@pytest.mark.parametrize("path", SGLANG)
def test_printable_part_of_held_text_is_not_sent_again_at_the_end(path, llama3):
    steps = [[*llama3.encode("word "), llama3.encode("🤗")[0]]]
    assert deltas(build(path, llama3), steps) == ["word ", "\ufffd"]


@pytest.mark.parametrize(
    ("text", "printable"),
    [
        ("", ""),
        ("word", ""),
        ("one two", "one "),
        ("one two ", "one two "),
        ("line\n", "line\n"),
        ("line\nnext", ""),
        ("漢", "漢"),
        ("a 漢", "a 漢"),
        ("漢\ufffd", "漢"),
        ("a 漢字x", "a 漢字"),
        ("漢 x\ufffd", "漢 "),
        ("漢xy", ""),
        ("カナ", ""),
        ("한글", ""),
        ("𠮷", "𠮷"),
    ],
)
def test_printable_prefix(text, printable):
    assert printable_prefix(text) == printable


@pytest.mark.parametrize(
    ("first", "last"), [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0xF900, 0xFAFF)]
)
def test_edges_of_the_ideograph_blocks(first, last):
    assert is_cjk(chr(first))
    assert is_cjk(chr(last))
    assert not is_cjk(chr(first - 1))
    assert not is_cjk(chr(last + 1))


# transformers' TextStreamer


def test_text_streamer_prints_letters_at_once_and_symbols_after_the_next_space(llama3):
    steps = [llama3.encode(part) for part in ("Hello", "!", " world", "\n", " x")]
    sent = deltas(build("text-streamer", llama3), steps)
    assert sent == ["Hello", "", "! ", "world\n", " x", ""]


def test_text_streamer_gives_the_rest_at_its_end(llama3):
    assert deltas(build("text-streamer", llama3), [llama3.encode("end!")]) == ["", "end!"]
