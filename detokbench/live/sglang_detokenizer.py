"""The sglang topology's detokenizer: a process that blocks on its socket and decodes batches.

After SGLang 0.5.23 (managers/detokenizer_manager.py, ``DetokenizerManager.event_loop``): one
message at a time, unpacked, decoded as a batch, and sent on to the front end of each request.
"""

from __future__ import annotations

from typing import Any

import msgspec
import zmq

from detokbench.live.calibrate import calibrate_decode
from detokbench.live.chosen_path import load_both
from detokbench.live.counting import SAMPLE_S, Counters, Reservoir, Window
from detokbench.live.messages import Decoder, Encoder, RowText, StepOutput, StepText
from detokbench.live.plan import Bound, CalibrateRequest, Done, Loaded, LoadRequest, RunRequest
from detokbench.live.row_texts import AsBatch
from detokbench.live.schedule import now_ns
from detokbench.live.sockets import bind_pull, connect_push
from detokbench.live.stand_in import WordPath
from detokbench.live.worker import Control, serve

_LOOK_MS = 100  # how long a blocked process takes at most to see that it is to stop


class Detokenizer:
    """The role."""

    def load(self, request: LoadRequest, loaded: Loaded) -> None:
        self._vocabulary, self._path_class = load_both(request)
        self._path = self._path_class(self._vocabulary)
        self._stop = tuple(request.stop)
        self._workload_file = request.workload_file
        self._seed = request.seed
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()

    def do(self, request: Any, control: Control) -> msgspec.Struct:
        match request:
            case RunRequest():
                return self._run(request, control)
            case CalibrateRequest():
                is_floor = request.part == "floor"
                path = (WordPath if is_floor else self._path_class)(self._vocabulary)
                texts = AsBatch(path, ())
                return calibrate_decode(request, self._workload_file, self._seed, texts)
        raise TypeError(f"a detokenizer does not know {type(request).__name__}")

    def _run(self, request: RunRequest, control: Control) -> Done:
        path = WordPath(self._vocabulary) if request.only_receive else self._path
        texts = AsBatch(path, () if request.only_receive else self._stop)
        socket, address = bind_pull(self._context, request.folder, request.name)
        senders = [connect_push(self._context, to) for to in request.sends_to]
        try:
            control.send("bound", Bound(address=address))
            return _Loop(request, texts, socket, senders).go(control)
        finally:
            for each in (socket, *senders):
                each.close()


class _Loop:
    """One run: messages in, texts out."""

    def __init__(
        self,
        request: RunRequest,
        texts: AsBatch,
        socket: zmq.Socket[bytes],
        senders: list[zmq.Socket[bytes]],
    ) -> None:
        self._texts = texts
        self._socket = socket
        self._senders = senders
        self._encode = Encoder().encode
        self._counters = Counters()
        self._window = Window(request.warm_up_s, request.duration_s)
        self._delays = {"received": Reservoir(), "decoded": Reservoir()}

    def go(self, control: Control) -> Done:
        decode = Decoder(StepOutput).decode
        first = self._counters.sample()
        next_sample = now_ns()
        self._socket.setsockopt(zmq.RCVTIMEO, _LOOK_MS)
        while not control.stopping:
            try:
                frame = self._socket.recv(copy=False)
            except zmq.Again:
                continue
            message = decode(frame.buffer)
            at_ns = self._take(message)
            if at_ns >= next_sample:
                control.send("sample", self._counters.sample())
                next_sample = at_ns + round(SAMPLE_S * 1e9)
            if message.is_last:
                break
        return Done(
            first=first,
            last=self._counters.sample(),
            delays={hop: seen.values for hop, seen in self._delays.items() if seen.values},
            states_left=len(self._texts),
        )

    def _take(self, message: StepOutput) -> int:
        counters, emitted_ns = self._counters, message.emitted_ns
        self._saw("received", emitted_ns, now_ns())
        texts = self._texts.take(message.rows)
        at_ns = now_ns()
        self._saw("decoded", emitted_ns, at_ns)
        self._send(message, at_ns, texts)
        counters.steps += 1
        counters.ids += sum(row.ids for row in texts)
        counters.lag_ns = at_ns - emitted_ns
        return at_ns

    def _saw(self, hop: str, emitted_ns: int, at_ns: int) -> None:
        self._window.see(emitted_ns)
        if self._window.holds(at_ns):
            self._delays[hop].add(at_ns - emitted_ns)

    def _send(self, message: StepOutput, decoded_ns: int, texts: list[RowText]) -> None:
        senders = self._senders
        for number, sender in enumerate(senders):
            part = texts
            if len(senders) > 1:
                part = [row for row in texts if row.request % len(senders) == number]
            if part or message.is_last:
                text = StepText(message.step, message.emitted_ns, decoded_ns, part, message.is_last)
                sender.send(self._encode(text), copy=False)


if __name__ == "__main__":
    serve(Detokenizer())
