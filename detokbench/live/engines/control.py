"""The control channel between the supervisor and an engine of ours: a ZMQ socket and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import zmq

from detokbench.errors import DetokbenchError
from detokbench.live.engines.engine_plan import (
    Agreed,
    AskSample,
    AskSteps,
    AskStreams,
    EngineRequest,
    EngineSample,
    Failed,
    Pace,
    StartedStream,
    StartedStreams,
    StepTimes,
    Stop,
)

_LONGEST_PATH = 100  # sockaddr_un.sun_path holds 108 bytes on Linux, 104 on macOS
_Answer = TypeVar("_Answer", bound=msgspec.Struct)


def control_address(folder: Path) -> str:
    """The engine's address in the run's folder. Raises DetokbenchError where its path is too long.

    Unlike other sockets of a run this one cannot fall back on a port: both sides must know it.
    """
    path = folder / "engine"
    if len(str(path).encode()) > _LONGEST_PATH:
        raise DetokbenchError(f"the folder of the run has too long a path for a socket: {folder}")
    return f"ipc://{path}"


def has_message(socket: zmq.Socket[bytes]) -> bool:
    """Whether a message waits there; needed before each wait on the socket's descriptor."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


class EngineControl:
    """The supervisor's side. Every question raises DetokbenchError where no answer comes."""

    def __init__(self, address: str, timeout_s: float = 10.0) -> None:
        """``timeout_s``: how long an answer may take; an engine answers between its steps."""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        # A question without an answer does not spoil the next one.
        self._socket.setsockopt(zmq.REQ_RELAXED, 1)
        self._socket.setsockopt(zmq.REQ_CORRELATE, 1)
        self._timeout_s = timeout_s
        self._socket.connect(address)

    def pace(self, t_step_ns: int, interval: int = 1) -> None:
        """From the next step on, one step every ``t_step_ns``."""
        self._ask(Pace(t_step_ns, interval), Agreed)

    def sample(self) -> EngineSample:
        """The engine's totals so far."""
        return self._ask(AskSample(), EngineSample)

    def steps(self, since: int) -> StepTimes:
        """When the steps from ``since`` on were emitted; the oldest may be forgotten already."""
        return self._ask(AskSteps(since), StepTimes)

    def streams(self) -> list[StartedStream]:
        """The requests begun since this was last asked."""
        return self._ask(AskStreams(), StartedStreams).streams

    def stop(self) -> None:
        """Tell the engine to end."""
        self._ask(Stop(), Agreed)

    def wait_until_there(self, timeout_s: float, check: Callable[[], None]) -> None:
        """Wait for the engine's first answer; ``check`` is called meanwhile, to raise on a death.

        Raises DetokbenchError where none comes within ``timeout_s``.
        """
        waited, patience = 0.0, self._timeout_s
        self._timeout_s = 0.25
        try:
            while waited < timeout_s:
                check()
                try:
                    self.sample()
                    return
                except DetokbenchError:
                    waited += self._timeout_s
        finally:
            self._timeout_s = patience
        raise DetokbenchError(f"our engine has not answered within {timeout_s:g} s")

    def close(self) -> None:
        self._socket.close()
        self._context.term()

    def _ask(self, request: EngineRequest, answer: type[_Answer]) -> _Answer:
        self._socket.send(msgspec.json.encode(request))
        if not self._socket.poll(round(self._timeout_s * 1000)):
            raise DetokbenchError(f"our engine has not answered within {self._timeout_s:g} s")
        says: Any = msgspec.json.decode(self._socket.recv())
        if "error" in says:
            raise DetokbenchError(f"our engine: {says['error']}")
        return msgspec.convert(says, answer)


class ControlSocket:
    """The engine's side: answers what has been asked, and never waits."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
        self.socket = context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 1000)
        self.socket.bind(address)
        self._decode = msgspec.json.Decoder(EngineRequest).decode

    def answer(self, handle: Callable[[EngineRequest], msgspec.Struct]) -> None:
        """Let ``handle`` answer everything that waits; a DetokbenchError of its is the answer."""
        while has_message(self.socket):
            message = self.socket.recv()
            try:
                reply = handle(self._decode(message))
            except (DetokbenchError, msgspec.MsgspecError) as error:
                reply = Failed(" ".join(str(error).split()))
            self.socket.send(msgspec.json.encode(reply))

    def close(self) -> None:
        self.socket.close()
