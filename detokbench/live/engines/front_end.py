"""What a front end is: an engine's own server, started by us, its engine played by us.

A third party's is one class with these members and one line in its package's metadata, in the
entry-point group ``detokbench.frontends``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from detokbench.live.engines.control import EngineControl


@dataclass(frozen=True)
class Process:
    """A whole process; its children are not counted with it."""

    pid: int


@dataclass(frozen=True)
class Threads:
    """Those threads of a process whose names (``/proc/PID/task/*/comm``) begin so.

    No prefix means all threads that no other role of the same process names.
    """

    pid: int
    name_prefixes: tuple[str, ...] = ()


Role = Process | Threads


@dataclass(frozen=True)
class Launch:
    """What a front end is started with.

    python: interpreter of the environment that has the engine
    model: folder with the tokenizer, its configuration and its chat template
    folder: private to this run, with a short path (Unix sockets end at 107 bytes)
    max_streams: streams at once that the engine must admit
    workload_file: msgpack ``{"outputs": [[id, …], …], "eos": id}``; the request whose ``seed`` is
        n gets ``outputs[n % len(outputs)]``, cut at its ``max_tokens``
    front_ends: front-end processes (``--api-server-count``, ``--tokenizer-worker-num``)
    extra_args: further official flags of the server
    """

    python: Path
    model: Path
    folder: Path
    max_streams: int
    workload_file: Path
    front_ends: int = 1
    extra_args: tuple[str, ...] = ()
    ready_timeout_s: float = 300.0


class Running(Protocol):
    """A front end that answers requests, and the engine behind it."""

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``, with /v1/completions and /v1/chat/completions."""
        ...

    @property
    def model(self) -> str:
        """The model's name for requests."""
        ...

    @property
    def version(self) -> str:
        """The version of the engine's package that serves."""
        ...

    @property
    def engine(self) -> EngineControl: ...

    def roles(self) -> dict[str, list[Role]]:
        """Which processes or threads do what: http, detokenizer, rust, engine, …"""
        ...

    def log_tail(self) -> str:
        """The last line of the server's log that says something."""
        ...

    def check(self) -> None:
        """Raises DetokbenchError with the log's tail where a process of it has died."""
        ...


class FrontEnd(Protocol):
    """One kind of front end; made without arguments."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str:
        """One line for lists."""
        ...

    def version(self, python: Path) -> str:
        """Ask that interpreter which version of the engine it has.

        Raises DetokbenchError (exit code 5) where it has none, or one not known here.
        """
        ...

    def start(self, launch: Launch) -> AbstractContextManager[Running]:
        """Start it and wait until it is ready; leaving the context ends every process.

        Raises DetokbenchError with the tail of the server's log where it never gets ready.
        """
        ...
