"""What stop strings keep back from a reader who streams: vLLM's buffer and SGLang's suppression.

vLLM 0.33.0 keeps the longest stop less one character of every chunk until the request ends, and
nothing where the stop is kept in the output (``BaseIncrementalDetokenizer.__init__``). SGLang
0.5.23 sends all or nothing: a chunk whose end may be the beginning of a stop waits for the next
step, and is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detokbench.model.tail_str import checks_of_stream


def vllm_hold_back_chars(strings: Sequence[str], *, stop_in_output: bool = False) -> int:
    """Characters that vLLM keeps back all the time. Regexes are not among its stops."""
    if stop_in_output or not strings:
        return 0
    return max(map(len, strings)) - 1


def hold_back_s(chars: float, chars_per_id: float, ids_per_step: int, step_s: float) -> float:
    """Seconds that ``chars`` characters of text take to arrive, at ``step_s`` a step."""
    return chars / (chars_per_id * ids_per_step) * step_s


@dataclass(frozen=True, slots=True)
class Suppression:
    """What became of the chunks of one stream or of several."""

    chunks: int = 0
    """Chunks that came due, the end of the request left out."""
    suppressed: int = 0
    """Those of them that had to wait for a step at least."""
    longest_steps: int = 0
    """The most steps that a chunk waited."""
    longest_chars: int = 0
    """The most characters that were unsent after a check that held them back."""

    def __add__(self, other: Suppression) -> Suppression:
        return Suppression(
            self.chunks + other.chunks,
            self.suppressed + other.suppressed,
            max(self.longest_steps, other.longest_steps),
            max(self.longest_chars, other.longest_chars),
        )

    @property
    def share(self) -> float:
        """The part of all chunks that had to wait."""
        return self.suppressed / self.chunks if self.chunks else 0.0


def suppression_of_stream(
    accepted: Sequence[int],
    suppressed: Sequence[bool],
    chars: Sequence[int],
    interval: int = 1,
) -> Suppression:
    """Chunks of one stream, as ``decodes_of_stream`` counts their checks.

    ``chars[i]`` is the number of characters in the text of the first ``i`` ids.
    """
    ids = [sum(accepted[: step + 1]) for step in range(len(accepted))]
    found = Suppression()
    waited = 0
    for step, sent in checks_of_stream(accepted, suppressed, interval):
        first = waited == 0
        waited = waited + 1 if suppressed[step] else 0
        found += Suppression(
            chunks=int(first),
            suppressed=int(first and suppressed[step]),
            longest_steps=waited,
            longest_chars=chars[ids[step]] - chars[sent] if suppressed[step] else 0,
        )
    return found
