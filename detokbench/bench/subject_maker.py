"""Which subject a cell of a plan is: built in a worker, each with a path object of its own."""

from __future__ import annotations

from functools import cached_property

from detokbench.bench.check_streams import read_streams
from detokbench.bench.check_subjects import CheckSubjects
from detokbench.bench.chunks import ChunkPart
from detokbench.bench.encode_subjects import EncodeCalls, calls_of_many, calls_of_one
from detokbench.bench.logprobs import LogprobText
from detokbench.bench.plan import FLOOR, Cell, CellFacts, MeasureRequest
from detokbench.bench.subjects import (
    Admission,
    CallCount,
    PathSteps,
    Subject,
    bare_calls,
    count_calls,
)
from detokbench.paths.empty import EmptyPath
from detokbench.paths.protocol import Flags, PathClass
from detokbench.vocab import Vocabulary
from detokbench.workload.prompt_texts import PromptText, read_prompt_texts
from detokbench.workload.streams import Workload

_LOGPROB_IDS = 2048
_LONG_PROMPT = 8192
_LONG_PROMPT_ROWS = 2


class SubjectMaker:
    """Builds the subject of each cell, each with a path object of its own."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        classes: dict[str, PathClass],
        workload: Workload,
        request: MeasureRequest,
    ) -> None:
        flags = request.scenario.flags
        self._vocabulary = vocabulary
        self._classes = classes
        self._workload = workload
        self._ids_per_step = request.scenario.ids_per_step
        self._flags = Flags(flags.skip_special_tokens, flags.spaces_between_special_tokens)
        self._workload_file = request.workload_file
        self._counts: dict[tuple[str, int], CallCount] = {}
        self._steps_of: dict[tuple[int, int], list[list[list[int]]]] = {}
        self.facts: dict[Cell, CellFacts] = {}

    def make(self, cell: Cell) -> Subject | None:
        """The subject of a cell; None where there is nothing to time."""
        if cell.stops is not None:
            return self._checks.make(cell)
        if cell.metric in {"encode", "encode_batch"}:
            return self._encode_calls(cell)
        if cell.metric in {"chunk", "logprobs"}:
            return self._text_of_chunks(cell)
        return self._calls(cell) if cell.metric == "call" else self._path_subject(cell)

    def _text_of_chunks(self, cell: Cell) -> Subject:
        if cell.alternatives is None:
            return ChunkPart(cell.path, self._deltas())
        ids = [token_id for row in self._workload.outputs for token_id in row]
        return LogprobText(self._vocabulary, ids[:_LOGPROB_IDS], cell.alternatives)

    def _encode_calls(self, cell: Cell) -> Subject:
        assert cell.prompt_len is not None
        texts = self._prompt_texts[cell.prompt_len]
        if cell.metric == "encode":
            return EncodeCalls(calls_of_one(self._vocabulary)[cell.path], texts, None)
        return EncodeCalls(calls_of_many(self._vocabulary)[cell.path], texts, cell.batch)

    @cached_property
    def _prompt_texts(self) -> dict[int, list[PromptText]]:
        return read_prompt_texts(self._workload_file)

    def _path_subject(self, cell: Cell) -> Subject:
        path_class = EmptyPath if cell.path == FLOOR else self._classes[cell.path]
        path = path_class(self._vocabulary)
        prompts = self._workload.prompts[: cell.batch]
        if cell.metric == "host_step":
            # An engine's step brings the scenario's ids; the path may get those of several at once.
            new_ids = cell.ids_per_step or self._ids_per_step
            steps = self._steps(cell.batch, new_ids)
            return PathSteps(path, prompts, steps, self._flags, new_ids / self._ids_per_step)
        if cell.prompt_len is None:
            return PathSteps(path, prompts, self._steps(cell.batch), self._flags)
        rows = _LONG_PROMPT_ROWS if cell.prompt_len >= _LONG_PROMPT else None
        prompts = self._workload.admit_prompts[cell.prompt_len][:rows]
        first_ids = self._workload.admit_first_ids[:rows]
        first_token = cell.metric == "first_token"
        return Admission(path, prompts, first_ids, self._flags, first_token)

    @cached_property
    def _checks(self) -> CheckSubjects:
        return CheckSubjects(self._vocabulary, read_streams(self._workload_file))

    def _steps(self, batch: int, ids_per_step: int | None = None) -> list[list[list[int]]]:
        key = (batch, ids_per_step or self._ids_per_step)
        if key not in self._steps_of:
            self._steps_of[key] = self._workload.steps(*key)
        return self._steps_of[key]

    def _deltas(self) -> list[str]:
        decode = self._vocabulary.decode
        return [decode([token_id]) for token_id in self._workload.outputs[0]]

    def _calls(self, cell: Cell) -> Subject | None:
        prompts = self._workload.prompts[: cell.batch]
        steps = self._steps(cell.batch)
        key = (cell.path, cell.batch)
        if key not in self._counts:
            path_class = self._classes[cell.path]
            self._counts[key] = count_calls(
                path_class, self._vocabulary, prompts, steps, self._flags
            )
        count = self._counts[key]
        self.facts[cell] = CellFacts(
            call=count.name,
            calls_per_token=count.calls_per_token,
            lookups_per_token=count.lookups_per_token,
        )
        return bare_calls(count, self._vocabulary, prompts, steps, self._flags)
