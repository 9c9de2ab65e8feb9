"""``matcher``: ours. One automaton over characters, the same for every cut of the text.

What it holds back is really the beginning of a stop, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from detokbench.errors import usage_error
from detokbench.stops.automaton import NO_STOP, ROOT, StopAutomaton
from detokbench.stops.request import StopFinish, StopRequest, TextRow
from detokbench.stops.validation import refuse_empty_stop


@dataclass(frozen=True, slots=True)
class StopMatch:
    """A stop in the text of a stream, at ``text[begin:end]`` (characters)."""

    stop: str
    begin: int
    end: int


class StopMatcher:
    """The stop strings of a request; ``open`` gives the state of one stream over them.

    The match that ends first counts, and of those that end together the first of the list.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        """Raises a usage error for an empty string."""
        for string in strings:
            refuse_empty_stop(string)
        self.automaton = StopAutomaton(strings)
        self.find_first = _finder(self.automaton.first_chars)

    def open(self, from_offset: int = 0) -> MatchState:
        """A new stream."""
        return MatchState(self, from_offset)


class MatchState:
    """One stream: feed it text, get what may be sent.

    A match counts only if it ends after ``from_offset`` characters; those that end earlier are
    passed over. It may be raised while the stream goes on. ``steps`` counts how often the
    automaton was asked for a way on: at most twice for each character, and none for text in which
    no stop begins.
    """

    def __init__(self, matcher: StopMatcher, from_offset: int) -> None:
        self.from_offset = from_offset
        self.length = 0
        self.match: StopMatch | None = None
        self.steps = 0
        self._automaton = matcher.automaton
        self._find_first = matcher.find_first
        self._state = ROOT
        # What is held is the first `_depth` characters of `_stop`: no text is stored.
        self._stop, self._depth = "", 0

    @property
    def held(self) -> str:
        """Text that is fed and not released: a proper prefix of a stop, or empty."""
        return self._stop[: self._depth]

    def feed(self, piece: str) -> str:
        """The text that may be sent now; after a match no more."""
        if self.match is not None:
            return ""
        if self._state == ROOT and self._find_first(piece, 0) is None:
            self.length += len(piece)
            return piece
        end, match = self._advance(piece)
        if match is None:
            stop, depth = self._automaton.prefix(self._state)
            cut = self._depth + end - depth
        else:
            stop, depth = "", 0
            cut = self._depth + match.begin - self.length
        released = self._stop[: min(cut, self._depth)] + piece[: max(cut - self._depth, 0)]
        self._stop, self._depth, self.match = stop, depth, match
        self.length += end
        return released

    def end(self) -> str:
        """The held text: no more is coming, so that it is no beginning of a stop."""
        held = self.held
        self._stop, self._depth, self._state = "", 0, ROOT
        return held

    def _advance(self, piece: str) -> tuple[int, StopMatch | None]:
        """Run over ``piece`` until a match or its end; the characters read, and the match."""
        automaton = self._automaton
        next_char, branches = automaton.next_char, automaton.branches
        fail, ends = automaton.fail, automaton.ends
        state, position, steps = self._state, 0, self.steps
        match: StopMatch | None = None
        while position < len(piece):
            if state == ROOT:
                found = self._find_first(piece, position)
                if found is None:
                    position = len(piece)
                    break
                position = found.start()
            char = piece[position]
            position += 1
            while True:  # `goto`, spelt out
                steps += 1
                if next_char[state] == char:
                    state += 1
                    break
                branch = branches.get(state)
                if branch is not None and char in branch:
                    state = branch[char]
                    break
                if state == ROOT:
                    break
                state = fail[state]
            if ends[state] != NO_STOP:
                match = self._match(automaton.strings[ends[state]], self.length + position)
                if match is not None:
                    break
                while not automaton.is_open(state):  # a whole stop, passed over
                    state = fail[state]
        self._state, self.steps = state, steps
        return position, match

    def _match(self, stop: str, end: int) -> StopMatch | None:
        return StopMatch(stop, end - len(stop), end) if end > self.from_offset else None


_Search = Callable[[str, int], "re.Match[str] | None"]


def _finder(chars: set[str]) -> _Search:
    """Where one of ``chars`` next stands in a text: one call into C for what needs no look."""
    if not chars:
        return lambda text, position: None
    return re.compile(f"[{''.join(map(re.escape, sorted(chars)))}]").search


class MatcherStops:
    """A row with our matcher around it.

    Ids are fed one at a time, whatever their number in a step. A stop id counts after the first
    ``min_tokens`` ids; its text is left out unless ``keep_stop`` keeps it. Where the same id, or
    the row's end after it, completes a stop string too, the string counts. What the row gives only
    at its end belongs to the last id.
    """

    def __init__(self, request: StopRequest, row: TextRow) -> None:
        """Raises a usage error for regexes and for empty strings."""
        if request.regexes:
            raise usage_error("our matcher looks for stop strings only; it knows no stop regexes")
        self.finish: StopFinish | None = None
        self._request = request
        self._row = row
        self._state = StopMatcher(request.strings).open()
        self._ids = 0

    @property
    def held(self) -> str:
        """Nothing where the stop is kept: whatever comes, the text of a beginning goes out."""
        return "" if self._request.keep_stop else self._state.held

    def step(self, new_ids: list[int]) -> str:
        sent = []
        for token_id in new_ids:
            if self.finish is not None:
                break
            sent.append(self._step_one(token_id))
        return "".join(sent)

    def end(self) -> str:
        if self.finish is not None:
            return ""
        sent = self._feed(self._row.end())
        if self._state.match is not None:
            return sent
        released = self._state.end()
        return sent if self._request.keep_stop else sent + released

    def _step_one(self, token_id: int) -> str:
        self._ids += 1
        stops = token_id in self._request.stop_ids and self._ids > self._request.min_tokens
        is_fed = not stops or self._request.keep_stop
        sent = self._feed(self._row.step([token_id])) if is_fed else ""
        if self.finish is not None:
            self._row.end()
        elif stops:
            sent += self.end()
            self.finish = self.finish or StopFinish(token_id, self._ids)
        return sent

    def _feed(self, piece: str) -> str:
        state, before = self._state, self._state.length
        if self._ids <= self._request.min_tokens:
            state.from_offset = before + len(piece)
        released = state.feed(piece)
        match = state.match
        if match is not None:
            self.finish = StopFinish(match.stop, self._ids, match.begin, match.end)
        if self._request.keep_stop:
            return piece if match is None else piece[: match.end - before]
        return released
