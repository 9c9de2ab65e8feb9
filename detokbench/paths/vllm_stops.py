"""A stream whose stop strings vLLM's own detokenizer looks for; stop ids are its scheduler's part.

After vLLM 0.33.0: the scheduler cuts a step behind the first stop id (v1/core/sched/utils.py,
``check_stop``; v1/core/sched/scheduler.py, ``_update_request_with_output``), and the detokenizer is
told that it did (v1/engine/output_processor.py, ``process_outputs``).
"""

from __future__ import annotations

from typing import Any

from detokbench.errors import usage_error
from detokbench.stops.request import StopFinish, StopRequest


def through_stop_id(new_ids: list[Any], stops: StopRequest) -> tuple[list[Any], Any]:
    """The ids of a step through the first stop id, as the scheduler keeps them; and that id."""
    for position, token_id in enumerate(new_ids, 1):
        if token_id in stops.stop_ids:
            return list(new_ids[:position]), token_id
    return list(new_ids), None


class DetokenizerStops:
    """One request of an IncrementalDetokenizer that was made with the stops."""

    held = ""

    def __init__(self, detokenizer: Any, stops: StopRequest) -> None:
        """Raises a usage error for regexes, which vLLM does not have."""
        if stops.regexes:
            raise usage_error("vLLM looks for stop strings only; it knows no stop regexes")
        self.finish: StopFinish | None = None
        self._detokenizer = detokenizer
        self._stops = stops

    def step(self, new_ids: list[int]) -> str:
        if self.finish is not None or not new_ids:
            return ""
        ids, stop_id = through_stop_id(new_ids, self._stops)
        detokenizer = self._detokenizer
        matched = detokenizer.update(ids, stop_id is not None)
        if matched is None:
            matched = stop_id
        if matched is not None:
            self.finish = StopFinish(matched, detokenizer.num_output_tokens())
        text: str = detokenizer.get_next_output_text(self.finish is not None, True)
        return text

    def end(self) -> str:
        if self.finish is not None:
            return ""
        text: str = self._detokenizer.get_next_output_text(True, True)
        return text
