"""What the supervisor asks of the clients' process, and what it answers."""

from __future__ import annotations

import msgspec

from detokbench.live.plan import StopRequest


class StreamsRequest(msgspec.Struct, tag="streams", kw_only=True):
    """Keep so many streams open until told to stop; one that ends is replaced.

    ``bodies[row]`` is the JSON of a request of a row, without its last brace: the number field and
    ``max_tokens`` are put behind it. Requests ``first``, ``first + 1``, … take the rows in turn;
    ``stride`` is what a round of rows adds to the numbers. The first streams get parts of
    ``max_tokens``, so that ends are spread. Every ``keep_every``-th stream is kept for ``file``,
    the others are counted only.
    """

    host: str
    port: int
    path: str
    bodies: list[str]
    number_field: str
    stride: int
    first: int
    streams: int
    max_tokens: int
    keep_every: int
    file: str


class OneRequest(msgspec.Struct, tag="one", kw_only=True):
    """Send one request and read its stream to the end."""

    host: str
    port: int
    path: str
    body: str
    number: int
    max_tokens: int
    timeout_s: float


ClientRequest = StreamsRequest | OneRequest | StopRequest


class ClientsDone(msgspec.Struct, kw_only=True):
    """What came. ``error``: why the clients gave up, empty where they did not."""

    requests: int
    ended: int
    reads: int
    events: int
    kept: int
    error: str = ""
