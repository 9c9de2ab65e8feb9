"""The requests that run: rows by API server, who ends when, who waits for a place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from detokbench.live.engines.engine_plan import StartedStream
from detokbench.live.engines.vllm_messages import ERROR, Add, full_row, ids_part
from detokbench.live.engines.vllm_outputs import Outputs


class _Stream:
    """A running request, and its place among those of its API server."""

    __slots__ = ("client", "place", "request_id")

    def __init__(self, request_id: str, client: int, place: int) -> None:
        self.request_id = request_id
        self.client = client
        self.place = place


class _Client:
    """What goes to one API server: the streams, and beside each the rows that it still has."""

    def __init__(self) -> None:
        self.streams: list[_Stream] = []
        self.rows: list[Iterator[bytes]] = []
        self.refused: list[bytes] = []


class Batch:
    """All requests of an engine. A step costs one call of C code for each row."""

    def __init__(
        self, outputs: Outputs, clients: int, max_streams: int, log_stats: bool = True
    ) -> None:
        """``clients``: API servers; beyond ``max_streams`` running requests others wait."""
        self._outputs = outputs
        self._max_streams = max_streams
        self._log_stats = log_stats
        self._clients = [_Client() for _ in range(clients)]
        self._streams: dict[str, _Stream] = {}
        self._ends: dict[int, list[_Stream]] = {}
        self._waiting: deque[tuple[Add, float]] = deque()
        self._started: list[StartedStream] = []
        self.ids = self.finished = self.aborted = 0

    @property
    def running(self) -> int:
        return len(self._streams)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, request: Add, now_s: float) -> None:
        """Take a request; what is no text generation is refused by its next row."""
        if not request.generates:
            row = full_row(request.request_id, ids_part([]), finish_reason=ERROR)
            self._clients[request.client].refused.append(row)
            return
        self._waiting.append((request, now_s))

    def abort(self, request_ids: list[str]) -> None:
        """Forget requests; vLLM's engine sends nothing more of them, and no word about it."""
        wanted = set(request_ids)
        for request_id in request_ids:
            stream = self._streams.get(request_id)
            if stream is not None:
                self._remove(stream)
                self.aborted += 1
        if self._waiting and any(r.request_id in wanted for r, _ in self._waiting):
            left = deque(entry for entry in self._waiting if entry[0].request_id not in wanted)
            self.aborted += len(self._waiting) - len(left)
            self._waiting = left

    def admit(self, step: int, now_s: float) -> None:
        """Requests that wait begin with this step, as far as there is room."""
        while self._waiting and len(self._streams) < self._max_streams:
            request, queued_s = self._waiting.popleft()
            again = self._streams.get(request.request_id)
            if again is not None:
                self._remove(again)
            client = self._clients[request.client]
            rows, steps = self._outputs.rows(request, queued_s, now_s if self._log_stats else None)
            stream = _Stream(request.request_id, request.client, len(client.streams))
            client.streams.append(stream)
            client.rows.append(rows)
            self._streams[request.request_id] = stream
            self._ends.setdefault(step + steps - 1, []).append(stream)
            number = -1 if request.number is None else request.number
            self._started.append(StartedStream(number, step, steps, request.external_id))

    def rows(self, client: int) -> list[bytes]:
        """This step's rows for an API server."""
        of = self._clients[client]
        rows = list(map(next, of.rows))
        assert len(rows) == len(of.rows), "a stream has run out of rows before its end"
        self.ids += len(rows)
        if of.refused:
            rows += of.refused
            of.refused = []
        return rows

    def end(self, step: int) -> None:
        """Drop those whose last row was this step's."""
        for stream in self._ends.pop(step, ()):
            if self._streams.get(stream.request_id) is stream:
                self._remove(stream)
                self.finished += 1

    def take_started(self) -> list[StartedStream]:
        """The requests begun since this was last asked."""
        started, self._started = self._started, []
        return started

    def _remove(self, stream: _Stream) -> None:
        client = self._clients[stream.client]
        last, rows = client.streams.pop(), client.rows.pop()
        if last is not stream:  # the last one takes its place
            last.place = stream.place
            client.streams[last.place] = last
            client.rows[last.place] = rows
        del self._streams[stream.request_id]
