"""Traces as JSON: ids as they are, bytes as lists of numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from detokbench.paths.view import RowView
from detokbench.stops.request import StopFinish
from detokbench.trace.compare import Comparison, Difference
from detokbench.trace.steps import Trace, TraceStep
from detokbench.trace.tokens import TokenList


def trace_json(trace: Trace) -> str:
    """One object: the stream, its steps, the text that came, the right one, and where they part."""
    stream = trace.stream
    facts = {
        "kind": "trace",
        "path": trace.path,
        "vocabulary": trace.vocabulary,
        "prompt_ids": list(stream.prompt),
        "output_ids": list(stream.output),
        "ids_per_step": trace.ids_per_step,
        "skip_special_tokens": stream.flags.skip_special_tokens,
        "spaces_between_special_tokens": stream.flags.spaces_between_special_tokens,
        "stop": list(stream.stops.strings),
        "stop_ids": sorted(stream.stops.stop_ids),
        "min_tokens": stream.stops.min_tokens,
        "keep_stop": stream.stops.keep_stop,
        "ended": stream.ended,
        "steps": [_step(step) for step in trace.steps],
        "text": trace.text,
        "finish": _finish(trace.finish),
        "error": trace.error or None,
        "warnings": trace.warnings,
        **_comparison(trace.comparison),
    }
    return _dump(facts)


def tokens_json(listed: TokenList) -> str:
    """One object; ``bytes`` of a token as in OpenAI's API, null for what is no id."""
    tokens = [
        {
            "id": token.text.token_id,
            "bytes": None if token.text.data is None else list(token.text.data),
            "alone": token.alone,
            "text": token.text.text,
            "error": token.error or None,
        }
        for token in listed.tokens
    ]
    context = None if listed.context is None else list(listed.context)
    facts = {
        "kind": "tokens",
        "vocabulary": listed.vocabulary,
        "context_ids": context,
        "tokens": tokens,
    }
    return _dump(facts)


def _step(step: TraceStep) -> dict[str, Any]:
    return {
        "step": step.label,
        "ids": list(step.ids),
        "bytes": _pieces(step.pieces),
        "handed": list(step.handed),
        "before": _view(step.before),
        "after": _view(step.after),
        "outcome": "nothing" if step.outcome == "–" else step.outcome,
        "delta": step.delta,
        "held_for_stops": step.stop_held,
        "counted": dict(step.counted),
        "error": step.error or None,
    }


def _pieces(pieces: Sequence[bytes | None] | None) -> list[list[int] | None] | None:
    if pieces is None:
        return None
    return [None if piece is None else list(piece) for piece in pieces]


def _view(view: RowView | None) -> dict[str, Any] | None:
    if view is None:
        return None
    return {
        "window": None if view.window is None else list(view.window),
        "offsets": dict(view.offsets),
        "held": list(view.held) if isinstance(view.held, bytes) else view.held,
        "is_modelled": view.is_modelled,
    }


def _finish(finish: StopFinish | None) -> dict[str, Any] | None:
    if finish is None:
        return None
    return {
        "matched": finish.matched,
        "kept_ids": finish.kept_ids,
        "begin": finish.begin,
        "end": finish.end,
    }


def _comparison(comparison: Comparison | str) -> dict[str, Any]:
    if isinstance(comparison, str):
        nothing = ("right", "right_finish", "differs", "early")
        return {**dict.fromkeys(nothing), "why_no_right": comparison}
    return {
        "right": comparison.right,
        "right_finish": _finish(comparison.finish),
        "differs": _place(comparison.difference),
        "early": _place(comparison.early),
        "why_no_right": None,
    }


def _place(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    return {"step": difference.label, "position": difference.position}


def _dump(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, indent=1)
