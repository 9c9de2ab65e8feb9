"""A stream whose stops SGLang's own ``Req`` looks for, and its DetokenizerManager trims.

What the scheduler does around them is done here, after SGLang 0.5.23: the finish check at every
step, then the prefix check of a chunk that is due (managers/scheduler_components/
output_streamer.py, ``accept``, streaming, interval 1).
"""

from __future__ import annotations

from typing import Any

from detokbench.paths.protocol import Flags
from detokbench.paths.sglang_names import (
    batch_message,
    name_of,
    scheduler_request,
    without_end_token,
)
from detokbench.stops.request import StopFinish, StopRequest


class SchedulerStops:
    """One request of a scheduler, and the manager that its chunks go to."""

    def __init__(
        self, manager: Any, name: str, prompt: list[int], flags: Flags, stops: StopRequest
    ) -> None:
        self.finish: StopFinish | None = None
        self._manager = manager
        tokenizer = without_end_token(manager.tokenizer)
        self._request = scheduler_request(name, prompt, flags, stops, tokenizer)
        self._name = name
        self._sent_ids = 0

    @property
    def held(self) -> str:
        """The text of the ids that wait in the scheduler, decoded by themselves."""
        request = self._request
        waiting = request.output_ids[request.send_token_offset :]
        if not waiting or self.finish is not None:
            return ""
        text: str = request.tokenizer.decode(waiting)
        return text

    def step(self, new_ids: list[int]) -> str:
        if self.finish is not None or not new_ids:
            return ""
        request = self._request
        request.output_ids.extend(new_ids)
        request.update_finish_state(len(new_ids))
        if request.finished():
            if request.finished_len is None:
                request.finished_len = len(request.output_ids)
            matched = request.finished_reason.to_json()["matched"]
            self.finish = StopFinish(matched, request.finished_len)
        elif request.check_match_stop_str_prefix():
            return ""
        return self._hand_over()

    def end(self) -> str:
        if self.finish is not None:
            return ""
        request = self._request
        length = len(request.output_ids)
        request.finished_reason = name_of("srt.managers.schedule_batch", "FINISH_LENGTH")(length)
        return self._hand_over()

    def _hand_over(self) -> str:
        """Send the ids that wait, with what ended the request if anything did."""
        request = self._request
        ids, read_offset = request.init_incremental_detokenize()
        reason, params = request.finished_reason, request.sampling_params
        message = batch_message(
            rids=[self._name],
            finished_reasons=[None if reason is None else reason.to_json()],
            decoded_texts=[request.decoded_text],
            decode_ids=[ids[self._sent_ids :]],
            read_offsets=[read_offset],
            skip_special_tokens=[params.skip_special_tokens],
            spaces_between_special_tokens=[params.spaces_between_special_tokens],
            no_stop_trim=[params.no_stop_trim],
        )
        self._sent_ids = len(ids)
        request.send_token_offset = len(request.output_ids_through_stop)
        text: str = self._manager.handle_batch_token_id_out(message).output_strs[0]
        return text
