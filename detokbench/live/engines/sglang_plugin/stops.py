"""Stop strings are the scheduler's work in SGLang: its own check, on its own request class.

``Req.update_finish_state`` and ``Req.check_match_stop_str_prefix``
(sglang/srt/managers/schedule_batch.py) decode the tail of the ids in every step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .outputs import Output
from .rows import Row

NEEDED = (
    "output_ids",
    "update_finish_state",
    "finished",
    "finished_reason",
    "check_match_stop_str_prefix",
    "output_ids_through_stop",
)


class StopCheck:
    """Makes SGLang's own request objects; ``missing`` says why not where it cannot."""

    def __init__(self, request_class: Any, tokenizer: Any, vocab_size: int | None) -> None:
        self._class = request_class
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._takes = set(inspect.signature(request_class).parameters)
        self.missing = self._what_is_missing()

    def _what_is_missing(self) -> str:
        if self._tokenizer is None:
            return "there is no tokenizer in the scheduler"
        needed = {"rid", "origin_input_ids", "sampling_params"}
        if lacking := sorted(needed - self._takes):
            return f"its class Req takes no {', '.join(lacking)}"
        methods = [name for name in NEEDED if name not in _names_of(self._class)]
        return f"its class Req has no {', '.join(methods)}" if methods else ""

    def own_request(self, request: Any) -> Any:
        """A ``Req`` for what arrived; parameters that this version does not have are left out."""
        values = {
            "rid": request.rid,
            "origin_input_text": request.input_text,
            "origin_input_ids": request.input_ids,
            "sampling_params": request.sampling_params,
            "stream": request.stream,
            "vocab_size": self._vocab_size,
        }
        own = self._class(**{name: values[name] for name in values if name in self._takes})
        own.tokenizer = self._tokenizer
        return own


def _names_of(request_class: Any) -> set[str]:
    """Names of a class and those that its ``__init__`` sets on an instance."""
    names = set(dir(request_class))
    code = getattr(request_class.__init__, "__code__", None)
    return names | set(code.co_names if code else ())


class StopRow(Row):
    """A request with stop strings: each step's id goes through SGLang's own check first."""

    __slots__ = ("_own",)

    def __init__(
        self,
        request: Any,
        output: Output,
        eos: int,
        interval: int,
        stats: Any,
        make_own: Callable[[Any], Any],
    ) -> None:
        super().__init__(request, output, eos, interval, stats)
        self._own = make_own(request)

    def advance(self) -> bool:
        if self.aborted:
            return super().advance()
        own = self._own
        own.output_ids.append(self.ids[self.at])
        self.at += 1
        own.update_finish_state()
        if own.finished():
            self.at = len(own.output_ids_through_stop)
            self.finish = own.finished_reason.to_json()
            return True
        if self.at >= self.total:
            self.finish = self.at_end
            return True
        return self.due_to_send() and not (
            self.request.stream and own.check_match_stop_str_prefix()
        )


def has_stop_strings(sampling: Any) -> bool:
    return bool(sampling.stop_strs or getattr(sampling, "stop_regex_strs", None))
