"""The differences of a ``verify`` record: each with all that is needed to see it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from detokbench.records.verify import Difference, Seen, StreamFacts, VerifyDetails
from detokbench.report.verify_command import command_lines
from detokbench.report.verify_order import Outcome, ordered, outcomes
from detokbench.report.verify_text import (
    excerpt,
    filled,
    first_difference,
    id_list,
    piece_list,
    plain,
    quoted,
)
from detokbench.verify.laws import Law

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_INDENT = 4
_LABEL = 7
_LONGEST_TEXT = 64
_LONGEST_ERROR = 160


def print_differences(details: VerifyDetails, console: Console, limit: int | None) -> None:
    """Differences, at most ``limit`` of them, and how many more there are."""
    found = ordered(details)
    if not found and not details.more_differences:
        console.print("Differences: none.", highlight=False, markup=False)
        return
    shown = found[:limit]
    console.print("Differences, each by the smallest input found:", highlight=False, markup=False)
    digits = max(2, len(f"{len(shown)}"))
    for number, difference in enumerate(shown, 1):
        console.print()
        block = _block(f"{number:>{digits}}", difference, details, console.width)
        console.print(block, highlight=False)
    lines = _more(len(found) - len(shown), details.more_differences)
    if lines:
        console.print()
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _more(hidden: int, unlisted: int) -> list[str]:
    lines = []
    if hidden:
        lines.append(f"… and {hidden:,} more, in the record (detokbench show RECORD --all).")
    if unlisted:
        lines.append(f"… and {unlisted:,} distinct further inputs, found and not kept.")
    return lines


def _block(number: str, difference: Difference, details: VerifyDetails, width: int) -> Text:
    from rich.text import Text

    given = difference.input
    origin = f"· {plain(_where_from(difference, details))}".split(" ")
    head = [f"{given.vocab},", *_settings(given), *origin]
    lines = [
        filled(head, width, f"{number}  ", " " * _INDENT),
        _line("ids", _pair(id_list, given.prompt, given.output), width),
        _line("bytes", _pair(piece_list, difference.prompt_pieces, difference.pieces), width),
        _line("right", [excerpt(difference.right, 0, width - _INDENT - _LABEL)], width),
        *(_outcome(outcome, given, width) for outcome in outcomes(difference)),
    ]
    if difference.command:
        lines.append(command_lines(difference.command, width, _INDENT))
    text = Text("\n".join(lines))
    text.stylize("bold", 0, len(lines[0]))
    return text


def _line(label: str, fragments: Sequence[str], width: int) -> str:
    first = " " * _INDENT + label.ljust(_LABEL)
    return filled(fragments, width, first, " " * (_INDENT + _LABEL))


def _settings(given: StreamFacts) -> list[str]:
    """How the ids are streamed: always how many a step, the rest where it is not the default."""
    ids = given.ids_per_step
    words = ["all ids in one step" if ids is None else f"{ids} id{'' if ids == 1 else 's'} a step"]
    words += [] if given.skip_special_tokens else ["special tokens kept"]
    words += [] if given.spaces_between_special_tokens else ["no spaces between special tokens"]
    words += [f"stop {quoted(stop)}" for stop in given.stop]
    words += [f"stop ids {' '.join(id_list(given.stop_ids))}"] if given.stop_ids else []
    words += [f"min_tokens {given.min_tokens}"] if given.min_tokens else []
    words += ["stop kept"] if given.keep_stop else []
    words += [] if given.ended else ["not ended"]
    words += [f"{given.rows:,} rows"] if given.rows != 1 else []
    return [f"{word}," for word in words[:-1]] + words[-1:]


def _where_from(difference: Difference, details: VerifyDetails) -> str:
    """``case B2 (ai-dynamo/dynamo#12630)``, or ``random stream 7, like case B2 (…)``."""
    if not difference.like:
        report = f" ({difference.report})" if difference.report else ""
        return f"{difference.origin}{report}"
    case = difference.like.removeprefix("case ")
    reports = (result.report for result in details.cases if result.case == case and result.report)
    report = difference.report or next(reports, "")
    return f"{difference.origin}, like case {case}{f' ({report})' if report else ''}"


def _pair(
    write: Callable[[Sequence[Any]], list[str]], prompt: Sequence[Any], output: Sequence[Any]
) -> list[str]:
    before = write(prompt) if prompt else ["no", "prompt"]
    return [*before, "|", *(write(output) if output else ["nothing"])]


def _outcome(outcome: Outcome, given: StreamFacts, width: int) -> str:
    """``slow, batch-decode: bytes · step 5: expected 'x', got 'y'``, in a line where it fits."""
    seen = outcome.seen
    steps = 1 if given.ids_per_step is None else -(-len(given.output) // given.ids_per_step)
    when = "at the end" if seen.step > steps else f"step {seen.step}"
    paths, laws = ", ".join(outcome.paths), ", ".join(seen.laws)
    parts = _parts(seen, min(_LONGEST_TEXT, width - _INDENT - len(", in the end ")))
    fragments = [*f"{paths}: {laws} · {when}{':' if parts else ''}".split(" "), *parts]
    return filled(fragments, width, " " * _INDENT, " " * (_INDENT + 2))


def _parts(seen: Seen, most: int) -> list[str]:
    """Texts, the exception and counters, to be filled, with commas."""
    parts = _texts(seen, most)
    parts += [f"raised {plain(' '.join(seen.error.split()), _LONGEST_ERROR)}"] if seen.error else []
    parts += [f"{name} {count:,}" for name, count in seen.counted.items()]
    separator = ";" if Law.STOPS in seen.laws else ","  # words about stops have commas
    fragments: list[str] = []
    for number, part in enumerate(parts, 1):
        words = part.split(" ") if part.startswith("raised ") else [part]
        words[-1] += separator if number < len(parts) else ""
        fragments += words
    return fragments


def _texts(seen: Seen, most: int) -> list[str]:
    """What should have come and what came, both cut at the same place; then the whole text."""
    if Law.STOPS in seen.laws:  # these two are words about a text and how it ended
        return [f"expected {plain(seen.expected, most)}", f"got {plain(seen.got, most)}"]
    parts = []
    if seen.expected != seen.got:
        at = first_difference(seen.expected, seen.got)
        parts.append(f"expected {excerpt(seen.expected, at, most)}")
        parts.append(f"got {excerpt(seen.got, at, most)}")
    if seen.text != seen.got and not seen.error:
        at = first_difference(seen.text, seen.got)
        parts.append(f"in the end {excerpt(seen.text, at, most)}")
    if not parts and not seen.error:
        parts.append(f"got {excerpt(seen.text, 0, most)}")
    return parts
