"""The tail of the output that SGLang's scheduler decodes to look for stops.

Sized in tokens (SGLang 0.5.23, ``Req._stop_match_tail_len``): the longest stop plus one, widened
by the ids accepted in the step less one, so that a stop in front of them still lies inside
(sglang PR#23802). The length of a stop string is that of its canonical encoding: an output that
spells it in more tokens, character by character say, does not fit and is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from detokbench.stops.regex_bound import RegexBound, sglang_regex_bound

Decode = Callable[[Sequence[int]], str]
"""Ids of a window → its text."""
Encode = Callable[[str], list[int]]
"""Text → ids, with no special tokens added."""

# The window of a regex without a bound: longer than any output.
_WHOLE_OUTPUT = 1 << 30


@dataclass(frozen=True, slots=True)
class TailWindow:
    """The window of one request; ``base_tokens`` is its length at one id a step."""

    base_tokens: int

    @classmethod
    def for_stops(
        cls,
        strings: Sequence[str],
        regexes: Sequence[str],
        encode: Encode,
        bound: RegexBound = sglang_regex_bound,
    ) -> TailWindow:
        """The window for a request's stops.

        ``bound`` says how much text a regex needs; a character counts as a token, as in SGLang.
        Raises a usage error for a regex that is not valid.
        """
        string_tokens = max((len(encode(string)) for string in strings), default=0)
        bounds = [bound(regex) for regex in regexes]
        regex_tokens = max((_WHOLE_OUTPUT if b is None else b for b in bounds), default=0)
        return cls(max(string_tokens, regex_tokens) + 1)

    def length(self, output_tokens: int, accepted: int = 1) -> int:
        """Tokens of the window in an output of ``output_tokens``, ``accepted`` of them new."""
        return min(self.base_tokens + max(accepted - 1, 0), output_tokens)

    def ids(self, output_ids: Sequence[int], accepted: int = 1) -> Sequence[int]:
        """The window's ids, as what the output's are held in: what a decode costs depends on it."""
        return output_ids[len(output_ids) - self.length(len(output_ids), accepted) :]
