"""The process of ``vllm_parts`` from outside: told which rung to run, sent steps, its CPU read."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import zmq

from detokbench.errors import DetokbenchError
from detokbench.live.engines import vllm_parts
from detokbench.live.engines.cpu_by_role import process_cpu_ns
from detokbench.live.engines.server_process import free_port, tail_of
from detokbench.live.engines.vllm_front_end import ENVIRONMENT
from detokbench.live.engines.vllm_messages import ids_part, row_head, stats_part, step_message
from detokbench.live.schedule import Schedule

_PACKAGE = "detokbench_vllm_parts"
_START_S, _ANSWER_S, _END_S, _SETTLE_S = 180.0, 60.0, 5.0, 0.05


class Driven(NamedTuple):
    """Seconds of CPU a token; chunks a token, where the process itself reads them."""

    s_per_token: float
    chunks_per_token: float | None


class RungProcess:
    """One process for all rungs. Use it as a context: leaving it ends the process."""

    def __init__(self, python: Path, model: Path, folder: Path) -> None:
        """Start it and wait until it has imported vLLM.

        Raises DetokbenchError where that has not what the rungs are built upon.
        """
        place = folder / "parts"
        shutil.copytree(
            Path(vllm_parts.__file__).parent,
            place / _PACKAGE,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        self._log = folder / "parts.log"
        paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        address = f"tcp://127.0.0.1:{free_port()}"  # as between front end and engine
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", _PACKAGE, str(model.resolve()), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH)
        try:
            self.facts = self._answer(_START_S)
        except BaseException:
            self.close()
            raise
        self._socket.connect(address)

    def __enter__(self) -> RungProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._context.destroy(linger=0)

    @contextmanager
    def rung(self, name: str, request_ids: list[str]) -> Iterator[int | None]:
        """Have a rung run; gives the port where it listens, None below ``socket``."""
        port = self._ask({"begin": name, "ids": request_ids})["port"]
        yield port
        self._ask({"end": name})

    def wait_for_requests(self, count: int) -> None:
        """Until so many requests have come over HTTP. Raises DetokbenchError where they do not."""
        end = time.monotonic() + _ANSWER_S
        while self._ask({"asked": None})["asked"] < count:
            if time.monotonic() > end:
                raise DetokbenchError(f"{count} requests have not come within {_ANSWER_S:g} s")
            time.sleep(_SETTLE_S)

    def drive(
        self, messages: Sequence[bytes], streams: int, t_step_s: float, warm_up: int
    ) -> Driven:
        """Send steps at their pace, and see what they cost from step ``warm_up`` to the end.

        Raises DetokbenchError where not all tokens arrive.
        """
        begin = 0
        schedule = Schedule(round(t_step_s * 1e9))
        for step, message in enumerate(messages):
            schedule.wait()
            if step == warm_up:
                begin = self._cpu_ns()
            self._socket.send(message)
        schedule.wait()
        sent = len(messages) * streams
        arrived = self._ask({"await": sent})
        if arrived["tokens"] != sent:
            raise DetokbenchError(f"{arrived['tokens']} of {sent} tokens arrived")
        used = self._cpu_ns() - begin
        time.sleep(_SETTLE_S)
        cost = used * 1e-9 / (streams * (len(messages) - warm_up))
        return Driven(cost, arrived["chunks"] / sent if arrived["chunks"] else None)

    def _cpu_ns(self) -> int:
        used = process_cpu_ns(self._process.pid)
        if used is None or self._process.poll() is not None:
            raise DetokbenchError(f"the process of the parts has died: {tail_of(self._log)}")
        return used

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with suppress(OSError):  # a process that has died gives no answer either
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        return self._answer(_ANSWER_S)

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise DetokbenchError(f"the process of the parts: no answer: {tail_of(self._log)}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise DetokbenchError(f"the process of the parts: {answer['error']}")
        return answer


def step_messages(
    request_ids: Sequence[str], outputs: Sequence[Sequence[int]], steps: int, t_step_s: float
) -> list[bytes]:
    """The engine's messages of so many steps: a row with one id for each request.

    Request n is given ``outputs[n]`` from its beginning, over and over where it is short.
    """
    heads = [row_head(request_id) for request_id in request_ids]
    rows = [outputs[place % len(outputs)] for place in range(len(heads))]
    parts = {token: ids_part([token]) for token in set().union(*rows)}
    running, begin = len(heads), time.monotonic()
    return [
        step_message(
            [head + parts[row[step % len(row)]] for head, row in zip(heads, rows, strict=True)],
            stats_part(running, 0, step, 0.5),
            begin + step * t_step_s,
        )
        for step in range(steps)
    ]
