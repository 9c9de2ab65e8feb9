"""``vllm-output``: the whole OutputProcessor of the vLLM installed beside us.

A step is one ``process_outputs`` call on the batch's EngineCoreOutputs, with a
RequestOutputCollector a request, as AsyncLLM drives it (vllm/v1/engine/output_processor.py). What
is timed with it: making the EngineCoreOutputs, which vLLM gets unpacked, and taking each output out
of its queue, which vLLM's request tasks do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from time import monotonic
from typing import Any

from detokbench.errors import usage_error
from detokbench.paths.installed_engine import built_upon
from detokbench.paths.probe_engine import why_not_of
from detokbench.paths.protocol import Flags, flags_or_default
from detokbench.paths.vllm_names import engine_request, name_of, tokenizer_of
from detokbench.paths.vllm_stops import through_stop_id
from detokbench.stops.request import StopFinish, StopRequest, StopStream, StopStyle
from detokbench.vocab.vocabulary import Vocabulary

_STOP = "</answer>"


class VllmOutputPath:
    """The installed vLLM's OutputProcessor with queues and statistics, as its server runs it."""

    name = "vllm-output"
    whose = "vLLM, as installed"
    expected_to_fail = ""
    thread_counts = (None,)
    stops: StopStyle | None = "characters"
    is_engine = True
    with_statistics = True
    own_stops = StopRequest()

    def __init__(self, vocabulary: Vocabulary) -> None:
        processor = name_of("v1.engine.output_processor", "OutputProcessor")
        self._collector = name_of("v1.engine.output_processor", "RequestOutputCollector")
        self._output = name_of("v1.engine", "EngineCoreOutput")
        self._reasons = name_of("v1.engine", "FinishReason")
        self._delta = name_of("sampling_params", "RequestOutputKind").DELTA
        self._statistics = name_of("v1.metrics.stats", "IterationStats")
        with built_upon("vllm", "OutputProcessor"):
            self._processor = processor(
                tokenizer_of(vocabulary), log_stats=self.with_statistics, stream_interval=1
            )
        self._queues: dict[int, tuple[str, Any]] = {}
        self._next_row = count()

    @classmethod
    def why_not(cls, vocabulary: Vocabulary) -> str | None:
        return why_not_of("vllm", cls, vocabulary)

    def open(self, prompts: Sequence[list[int]], flags: Sequence[Flags] | None = None) -> list[int]:
        return [
            self.open_request(prompt, row_flags, self.own_stops)
            for prompt, row_flags in zip(prompts, flags_or_default(prompts, flags), strict=True)
        ]

    def open_request(self, prompt: list[int], flags: Flags, stops: StopRequest) -> int:
        """Admit one request with stops; its row."""
        row = next(self._next_row)
        request = engine_request(str(row), prompt, flags, stops)
        with built_upon("vllm", "OutputProcessor.add_request"):
            queue = self._collector(self._delta, request.request_id)
            self._processor.add_request(request, None, queue=queue)
        self._queues[row] = request.request_id, queue
        return row

    def step(self, rows: Sequence[int], new_ids: Sequence[list[int]]) -> list[str]:
        output, queues = self._output, [self._queues[row] for row in rows]
        self._process([output(name, ids) for (name, _), ids in zip(queues, new_ids, strict=True)])
        return [_text(queue.get_nowait()) for _, queue in queues]

    def _process(self, outputs: list[Any]) -> Any:
        statistics = self._statistics() if self.with_statistics else None
        return self._processor.process_outputs(outputs, monotonic(), statistics)

    def end(self, row: int) -> str:
        """A last output without ids, as for a request at its length."""
        return _text(self.finish_request(row, [], self._reasons.LENGTH, None))

    def finish_request(self, row: int, ids: list[int], reason: Any, stop_id: int | None) -> Any:
        """The RequestOutput of a request's last ids, None for one that has finished already."""
        name, queue = self._queues.pop(row)
        self._process([self._output(name, ids, finish_reason=reason, stop_reason=stop_id)])
        return queue.get_nowait()

    def take(self, row: int, ids: list[int]) -> Any:
        """The RequestOutput of a step of one request."""
        name, queue = self._queues[row]
        self._process([self._output(name, ids)])
        return queue.get_nowait()

    def stop_finish(self, row: int, ids: list[int], stop_id: int) -> Any:
        """The RequestOutput of ids whose last one is a stop id."""
        return self.finish_request(row, ids, self._reasons.STOP, stop_id)

    def open_with_stops(self, prompt: list[int], flags: Flags, stops: StopRequest) -> StopStream:
        """A stream whose stops vLLM's own OutputProcessor looks for."""
        return _OutputStops(self, self.open_request(prompt, flags, stops), stops)


class VllmOutputWithoutStatisticsPath(VllmOutputPath):
    """The installed vLLM's OutputProcessor with queues, without statistics."""

    name = "vllm-output-no-stats"
    whose = "vLLM, as installed, with --disable-log-stats"
    with_statistics = False


class VllmOutputWithStopPath(VllmOutputPath):
    """The installed vLLM's OutputProcessor, every request with the stop string '</answer>'."""

    name = "vllm-output-stop"
    whose = "vLLM, as installed, with a stop string"
    own_stops = StopRequest(strings=(_STOP,))


class _OutputStops:
    """One request of an OutputProcessor."""

    held = ""

    def __init__(self, path: VllmOutputPath, row: int, stops: StopRequest) -> None:
        """Raises a usage error for regexes, which vLLM does not have."""
        if stops.regexes:
            raise usage_error("vLLM looks for stop strings only; it knows no stop regexes")
        self.finish: StopFinish | None = None
        self._path = path
        self._row = row
        self._stops = stops
        self._ids = 0

    def step(self, new_ids: list[int]) -> str:
        if self.finish is not None or not new_ids:
            return ""
        ids, stop_id = through_stop_id(new_ids, self._stops)
        if stop_id is None:
            output = self._path.take(self._row, ids)
        else:
            output = self._path.stop_finish(self._row, ids, stop_id)
        if output is None:
            return ""
        completion = output.outputs[0]
        self._ids += len(completion.token_ids)
        if output.finished:
            self.finish = StopFinish(completion.stop_reason, self._ids)
        return str(completion.text)

    def end(self) -> str:
        return "" if self.finish is not None else self._path.end(self._row)


def _text(output: Any) -> str:
    """The text of what a queue gave; nothing for a request whose stop string has ended it."""
    return "" if output is None else output.outputs[0].text
