"""The Aho-Corasick automaton of a request's stop strings.

Ours, since a matcher for streams must know how deep its state is: that is what it holds back, and
pyahocorasick and its like do not say.

A state stands for a beginning of a stop. States are numbered along each stop, so that the state
after ``s`` is ``s + 1`` except where stops part; a stop of 10,000 characters then costs a few
bytes a character and no dictionary.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

ROOT = 0
NO_STOP = -1


class StopAutomaton:
    """Built in time linear in the stops' characters.

    ``next_char[s]`` leads to state ``s + 1``; ``branches[s]`` has the other ways on. ``fail[s]`` is
    the state of the longest shorter beginning that also ends here, ``ends[s]`` the first stop of
    the list that ends here.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        """``strings`` must not be empty strings; repeated ones count once, by their first place."""
        self.strings = tuple(strings)
        self.next_char: list[str | None] = [None]
        self.branches: dict[int, dict[str, int]] = {}
        self.ends = array("i", [NO_STOP])
        self._chain_starts: list[int] = []
        self._chains: list[tuple[str, int]] = []
        for number, string in enumerate(self.strings):
            self._insert(number, string)
        self.fail = array("i", [ROOT]) * len(self.next_char)
        self._link()

    def goto(self, state: int, char: str) -> int | None:
        """The state one character further along a stop, if there is one."""
        if self.next_char[state] == char:
            return state + 1
        branch = self.branches.get(state)
        return None if branch is None else branch.get(char)

    def is_open(self, state: int) -> bool:
        """Whether a stop goes on from here: the state is a proper beginning of one."""
        return self.next_char[state] is not None or state in self.branches

    def prefix(self, state: int) -> tuple[str, int]:
        """A stop that begins with this state's text, and how many characters of it that is."""
        if state == ROOT:
            return "", 0
        chain = bisect_right(self._chain_starts, state) - 1
        string, depth = self._chains[chain]
        return string, depth + state - self._chain_starts[chain] + 1

    @property
    def first_chars(self) -> set[str]:
        """The characters that a stop can begin with."""
        return {string[0] for string in self.strings}

    def _insert(self, number: int, string: str) -> None:
        state = ROOT
        for depth, char in enumerate(string):
            child = self.goto(state, char)
            if child is None:
                state = self._append(state, string, depth)
                break
            state = child
        if self.ends[state] == NO_STOP:
            self.ends[state] = number

    def _append(self, state: int, string: str, depth: int) -> int:
        """New states for what follows the first ``depth`` characters; returns the last of them."""
        first = len(self.next_char)
        if first == state + 1:
            self.next_char[state] = string[depth]
        else:
            self.branches.setdefault(state, {})[string[depth]] = first
        self._chain_starts.append(first)
        self._chains.append((string, depth))
        self.next_char.extend(string[depth + 1 :])
        self.next_char.append(None)
        self.ends.extend([NO_STOP] * (len(string) - depth))
        return len(self.next_char) - 1

    def _children(self, state: int) -> Iterator[tuple[str, int]]:
        char = self.next_char[state]
        if char is not None:
            yield char, state + 1
        branch = self.branches.get(state)
        if branch is not None:
            yield from branch.items()

    def _link(self) -> None:
        """Failure links and the ends that they pass on, from short states to long ones."""
        fail, ends = self.fail, self.ends
        level = [child for _, child in self._children(ROOT)]
        while level:
            deeper = []
            for state in level:
                for char, child in self._children(state):
                    shorter = fail[child] = self._failure(fail[state], char)
                    passed_on = ends[shorter]
                    if passed_on != NO_STOP and not NO_STOP < ends[child] < passed_on:
                        ends[child] = passed_on
                    deeper.append(child)
            level = deeper

    def _failure(self, state: int, char: str) -> int:
        while (child := self.goto(state, char)) is None:
            if state == ROOT:
                return ROOT
            state = self.fail[state]
        return child
