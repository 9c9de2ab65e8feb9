"""ZMQ sockets of a run: private to it, without limits on what may wait in them.

They lie in the run's own folder, or where its path is too long for the system on a port of the
loopback that the system chooses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import zmq

from detokbench.errors import DetokbenchError

# sockaddr_un.sun_path holds 108 bytes on Linux and 104 on macOS, the final zero included.
_LONGEST_PATH = 100
_LINGER_MS = 60_000

_Socket = TypeVar("_Socket", bound="zmq.Socket[Any]")


def bind_pull(context: zmq.Context[_Socket], folder: str, name: str) -> tuple[_Socket, str]:
    """A socket that takes messages, and its address. Raises DetokbenchError where there is none."""
    socket: _Socket = context.socket(zmq.PULL)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.LINGER, 0)
    path = str(Path(folder) / name)
    address = f"ipc://{path}" if len(path.encode()) <= _LONGEST_PATH else "tcp://127.0.0.1:*"
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        raise DetokbenchError(f"cannot open the socket '{name}': {error}") from error
    endpoint = socket.getsockopt(zmq.LAST_ENDPOINT)
    assert isinstance(endpoint, bytes)
    return socket, endpoint.rstrip(b"\0").decode()


def connect_push(context: zmq.Context[_Socket], address: str) -> _Socket:
    """A socket that sends messages to an address; sending never waits.

    What it has not sent when it is closed is sent all the same, while its process lives: an
    overloaded receiver takes its time.
    """
    socket: _Socket = context.socket(zmq.PUSH)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.LINGER, _LINGER_MS)
    socket.connect(address)
    return socket
