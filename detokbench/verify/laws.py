"""The laws that a right path keeps, in the order of tables."""

from __future__ import annotations

from enum import StrEnum


class Law(StrEnum):
    """A law by the name that screens, options and records give it."""

    NO_ERROR = "no-error"
    APPEND_ONLY = "append-only"
    BYTES = "bytes"
    REPLACEMENT = "replacement"
    COMPLETE = "complete"
    IDS_PER_STEP = "ids-a-step"
    ONE_SHOT = "one-shot"
    PROMPT = "prompt"
    HOLD = "hold"
    STOPS = "stops"
    ROWS = "rows"
    WORK = "work"


SINGLE_STREAM_LAWS = frozenset(Law) - {Law.ROWS, Law.WORK}
"""Laws that are judged stream by stream."""
SAYS = {
    Law.NO_ERROR: "no id and no order of ids makes it raise",
    Law.APPEND_ONLY: "what has been sent is in the text of the ids so far: nothing is taken back",
    Law.BYTES: "no character that the bytes of the ids spell is lost",
    Law.REPLACEMENT: "no U+FFFD that the bytes do not call for",
    Law.COMPLETE: "the end of the stream gives the end of the text",
    Law.IDS_PER_STEP: "the same text for 1, 2, 3, 4, 7 and all ids a step",
    Law.ONE_SHOT: "well-formed text is what one decode of all ids gives",
    Law.PROMPT: "nothing of the prompt is in the output",
    Law.HOLD: "a complete character waits for three more ids at most",
    Law.STOPS: "the right stop, cut at the right character, keeping the right ids",
    Law.ROWS: "a row's text depends on no other row, on no order and on no number of rows",
    Law.WORK: "the ids handed to the tokenizer a step do not grow with the output",
}
