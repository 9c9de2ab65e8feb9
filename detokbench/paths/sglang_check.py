"""The stop checks of the installed SGLang's scheduler: the methods of its own ``Req``.

sglang/srt/managers/schedule_batch.py: ``tail_str``, ``update_finish_state`` and
``check_match_stop_str_prefix``. The output is put into one request in turn, so that a call costs an
attribute more than in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detokbench.errors import DetokbenchError
from detokbench.paths.installed_engine import named, why_absent
from detokbench.paths.protocol import Flags
from detokbench.paths.sglang_names import scheduler_request, tokenizer_of
from detokbench.stops.request import StopRequest
from detokbench.vocab.vocabulary import Vocabulary

_METHODS = ("tail_str", "update_finish_state", "check_match_stop_str_prefix", "finished")


class SchedulerCheck:
    """The stops of one request. Outputs must be ``array('q')``, as the scheduler holds them."""

    def __init__(
        self, vocabulary: Vocabulary, strings: Sequence[str], regexes: Sequence[str]
    ) -> None:
        """Raises DetokbenchError where SGLang is absent, or a method of its request is."""
        stops = StopRequest(tuple(strings), tuple(regexes))
        request = scheduler_request("check", [], Flags(), stops, tokenizer_of(vocabulary))
        for method in _METHODS:
            if not hasattr(request, method):
                raise DetokbenchError(f"{named('sglang')} has no Req.{method}")
        self._request = request

    def find(self, output: Any, accepted: int) -> None:
        """The finish check of one step."""
        request = self._request
        request.output_ids = output
        request.update_finish_state(accepted)

    def tail(self, output: Any, accepted: int) -> str:
        """The decoded tail that the finish check looks at."""
        request = self._request
        request.output_ids = output
        text: str = request.tail_str(accepted)
        return text

    def suppresses(self, output: Any) -> bool:
        """The prefix check of a chunk that is due."""
        request = self._request
        request.output_ids = output
        held: bool = request.check_match_stop_str_prefix()
        return held

    def confirm_unfinished(self) -> None:
        """Raises DetokbenchError where SGLang has found a stop in a stream that has none."""
        if self._request.finished():
            reason = self._request.finished_reason.to_json()
            raise DetokbenchError(
                f"{named('sglang')} ended a stream that our check lets go on: {reason}"
            )


def why_no_checks() -> str | None:
    """Why SGLang's checks cannot be measured here; None where they can be tried."""
    return why_absent("sglang")
