"""One screen of a trace: the steps as a table, what came, what is right, where they part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detokbench.report.trace_cells import excerpt, shown_ids, shown_text
from detokbench.report.trace_table import is_modelled, steps_table
from detokbench.stops.hold_metrics import HoldMetrics
from detokbench.stops.request import StopFinish
from detokbench.trace.compare import END, Comparison, Difference
from detokbench.trace.steps import OPEN, Trace

if TYPE_CHECKING:
    from rich.console import Console

_LEGEND = {
    "commit": "text came, nothing is held",
    "part": "text came, something is held",
    "hold": "no text, something is held",
    "–": "no text, nothing is held",
    "wait": "the ids wait in front of the path, since they may begin a stop",
    "stop": "a stop was found",
    "lost": "something was held and never comes",
    "error": "the path raised; the trace ends there",
}
_STYLES = {
    "characters": "over characters, as vLLM",
    "tokens": "over a tail of tokens, as SGLang",
    "matcher": "by our matcher",
}


def print_trace(trace: Trace, console: Console, style: str | None = None) -> None:
    """Heading, steps, legend, texts. ``style`` is how the path's stops are looked for."""
    for line in _heading(trace, style):
        console.print(line, markup=False, highlight=False)
    console.print(steps_table(trace, console.width))
    for line in _notes(trace):
        console.print(line, markup=False, highlight=False)
    for line in _texts(trace):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _heading(trace: Trace, style: str | None) -> Iterator[str]:
    stream, size = trace.stream, trace.ids_per_step
    each = "1 id a step" if size == 1 else f"{size} ids a step"
    parts = [f"{trace.path} ({trace.whose})", trace.vocabulary, each]
    if not stream.flags.skip_special_tokens:
        parts.append("special tokens kept")
    if not stream.flags.spaces_between_special_tokens:
        parts.append("no spaces between special tokens")
    yield " · ".join(parts)
    if stream.prompt:
        count = len(stream.prompt)
        yield f"prompt: {count} id{'s' * (count != 1)}, {shown_ids(stream.prompt)}"
    if stream.has_stops:
        stops = [*map(shown_text, stream.stops.strings)]
        stops += [f"id {stop_id}" for stop_id in sorted(stream.stops.stop_ids)]
        after = f", after {stream.stops.min_tokens} ids" if stream.stops.min_tokens else ""
        kept = ", kept in the text" if stream.stops.keep_stop else ""
        yield f"stops {_STYLES.get(style or '', '')}: {', '.join(stops)}{after}{kept}"


def _notes(trace: Trace) -> Iterator[str]:
    outcomes = [step.outcome for step in trace.steps]
    said = [f"{name}: {_LEGEND[name]}" for name in _LEGEND if name in outcomes]
    if said:
        yield "; ".join(said) + "."
    yield from (f"! {warning}" for warning in trace.warnings)
    if isinstance(trace.comparison, Comparison) and trace.comparison.hold is not None:
        yield _hold_words(trace.comparison.hold)
    if is_modelled(trace):
        yield (
            "* DecodeStream hides its state: window and offsets are those of a Python model of "
            "it, fed the same ids."
        )
    yield ""


def _hold_words(hold: HoldMetrics) -> str:
    """What holding back did to a reader: how late the first text, how much, how cut."""
    first = hold.first_text_step
    began = "no text before the end" if first is None else f"first text with step {first}"
    characters = "character" if hold.longest_held == 1 else "characters"
    return (
        f"Held back: {began}, {hold.longest_held} {characters} at most; deltas that end inside a "
        f"token: {hold.split_tokens}."
    )


def _texts(trace: Trace) -> Iterator[str]:
    comparison = trace.comparison
    difference = comparison.difference if isinstance(comparison, Comparison) else None
    position = None if difference is None else difference.position
    yield f"came:   {excerpt(trace.text, position)}"
    if isinstance(comparison, str):
        yield f"right:  not known: {comparison}"
    elif difference is None:
        yield f"right:  {_agreement(trace, comparison)}"
    else:
        yield f"right:  {excerpt(comparison.right, position)}"
        if not (trace.error and comparison.right.startswith(trace.text)):
            yield _since(trace, comparison)
    if isinstance(comparison, Comparison) and comparison.early is not None:
        yield _too_early(comparison.right, comparison.early)
    yield from _finish(trace)
    if trace.error:
        last = trace.steps[-1].label
        where = "when it was opened" if last == OPEN else f"at step {last}"
        yield f"The path raised {where}: {trace.error}"


def _agreement(trace: Trace, comparison: Comparison) -> str:
    if trace.text == comparison.right:
        return "the same"
    return f"{excerpt(comparison.right)}, so far; the stream goes on, what lacks is held"


def _since(trace: Trace, comparison: Comparison) -> str:
    assert comparison.difference is not None
    position, label = comparison.difference.position, comparison.difference.label
    where = "the end" if label == END else f"step {label}"
    came, right = trace.text[position:], comparison.right[position:]
    if not came:
        owed = "due at the end" if label == END else f"complete with step {label}"
        return f"{excerpt(right, 0)}, {owed}, never came."
    if not right:
        return f"They differ from {where} on: {excerpt(came, 0)} is too much."
    return f"They differ from {where} on: {_start(came)} came, {_start(right)} is right."


def _too_early(right: str, early: Difference) -> str:
    character = shown_text(right[early.position])
    return f"Too early: step {early.label} sent {character} before the bytes called for it."


def _start(text: str) -> str:
    return shown_text(text) if len(text) <= 24 else f"{shown_text(text[:20])}…"


def _finish(trace: Trace) -> Iterator[str]:
    if not trace.stream.has_stops:
        return
    yield f"stop:   {_finish_words(trace.finish)}"
    right = trace.comparison.finish if isinstance(trace.comparison, Comparison) else trace.finish
    if _essence(right) != _essence(trace.finish):
        yield f"right:  {_finish_words(right)}"


def _essence(finish: StopFinish | None) -> tuple[str | int, int] | None:
    return None if finish is None else (finish.matched, finish.kept_ids)


def _finish_words(finish: StopFinish | None) -> str:
    if finish is None:
        return "none"
    matched = shown_text(finish.matched) if isinstance(finish.matched, str) else finish.matched
    what = f"{matched}" if isinstance(finish.matched, str) else f"id {matched}"
    ids = f"{finish.kept_ids} id{'s' * (finish.kept_ids != 1)} kept"
    return f"{what}, {ids}"
