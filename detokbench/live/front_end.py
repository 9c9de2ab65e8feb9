"""What the front ends of both topologies share: a loop that receives, readers, and an end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import zmq
import zmq.asyncio

from detokbench.live.counting import Counters, Reservoir, Sample, Window
from detokbench.live.http_streams import HttpStreams
from detokbench.live.plan import Bound, Done, RunRequest
from detokbench.live.readers import Readers, Streams
from detokbench.live.recording import Recorder
from detokbench.live.sockets import bind_pull
from detokbench.live.stoppable import work_until_stopped
from detokbench.live.worker import Control


class FrontEndRun:
    """One run of a front end: its socket, its readers, what it counts."""

    def __init__(self, request: RunRequest, control: Control) -> None:
        self.request = request
        self._control = control
        self.counters = Counters()
        self.window = Window(request.warm_up_s, request.duration_s)
        self.recorder = Recorder(self.window, self.counters)
        self.delays = {"received": Reservoir(), "decoded": Reservoir()}
        self.context: zmq.asyncio.Context = zmq.asyncio.Context()
        self.streams: Streams

    def saw(self, hop: str, emitted_ns: int, at_ns: int) -> None:
        """A step of ``emitted_ns`` passed a hop."""
        self.window.see(emitted_ns)
        if self.window.holds(at_ns):
            self.delays[hop].add(at_ns - emitted_ns)

    async def go(self, work: Callable[[zmq.asyncio.Socket], Awaitable[None]]) -> Done:
        """Listen, say where, and do the ``work`` until it returns or the run is to stop."""
        request = self.request
        socket, address = bind_pull(self.context, request.folder, request.name)
        http = HttpStreams(request.batch, self.recorder) if request.http else None
        self.streams = http or Readers(request.batch, self.recorder)
        port = await http.listen() if http is not None else 0
        first = self.counters.sample()
        self._control.send("bound", Bound(address=address, port=port))
        try:
            await work_until_stopped(work(socket), self.counters, self._control)
        finally:
            if http is not None:
                await http.close()
            socket.close()
            self.context.term()
        return self._done(first)

    def _done(self, first: Sample) -> Done:
        recorder = self.recorder
        delays = {hop: seen.values for hop, seen in self.delays.items() if seen.values}
        hop = "written" if self.request.http else "read"
        if recorder.delays.values:
            delays[hop] = recorder.delays.values
        return Done(
            first=first,
            last=self.counters.sample(),
            longest_block_ns=self.counters.late_ns,
            itl=recorder.itl.values,
            gaps=recorder.gaps.values,
            delays=delays,
            streams=recorder.streams,
        )
