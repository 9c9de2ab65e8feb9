"""What the processes of a run send each other: msgpack over ZMQ.

Arrays without field names, as both engines send them. Every message carries ``emitted_ns``, when
the engine had the ids of the step, in ns of a clock that all processes share.
"""

from __future__ import annotations

import msgspec


class RowOutput(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """The new ids of one request (after vLLM's EngineCoreOutput).

    ``prompt`` comes with a request's first ids. ``finish`` says why it ended: ``length`` or
    ``stop``, with ``matched`` as the stop string that the scheduler found (SGLang only).
    """

    request: int
    new_ids: list[int]
    prompt: list[int] | None = None
    finish: str | None = None
    matched: str | None = None


class StepOutput(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """One step of the engine. ``is_last`` closes the run; its rows end all that still ran."""

    step: int
    emitted_ns: int
    rows: list[RowOutput]
    is_last: bool = False


class RowText(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """The text of ``ids`` new ids of one request, from the detokenizer to the front end."""

    request: int
    text: str
    ids: int
    finish: str | None = None


class StepText(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """What became of one step's rows in the detokenizer, for one front end."""

    step: int
    emitted_ns: int
    decoded_ns: int
    rows: list[RowText]
    is_last: bool = False


class Announced(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """Requests that clients may now open a stream for; ``is_last`` says that none will follow."""

    requests: list[int]
    is_last: bool = False


Encoder = msgspec.msgpack.Encoder
Decoder = msgspec.msgpack.Decoder
