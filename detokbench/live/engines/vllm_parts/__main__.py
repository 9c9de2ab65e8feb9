"""The process: reads orders as JSON lines from stdin, answers as JSON lines on what was stdout.

Arguments: the model folder, and the address for the engine's steps.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import time
from typing import Any

from . import stands_on
from .chain import Chain, Inbox
from .engine import Engine
from .http import DirectCalls, HttpServer, parser_name
from .names import MissingError, Names

PATIENCE_S = 10.0


class Process:
    """Begins and ends rungs as told."""

    def __init__(self, model: str, address: str, answers: Any) -> None:
        self._engine = Engine(Names(), model)
        self._inbox = Inbox(self._engine, address)
        self._answers = answers
        self._chain: Chain | None = None
        self._http: Any = None

    async def run(self) -> None:
        """Until stdin ends."""
        loop = asyncio.get_running_loop()
        orders = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        self._engine.names.freeze_gc_heap()
        self._answer({"loop": type(loop).__module__, "parser": parser_name()})
        while line := await orders.readline():
            order = json.loads(line)
            if "begin" in order:
                self._answer(await self._begin(order["begin"], order["ids"]))
            elif "await" in order:
                self._answer(await self._await(order["await"]))
            elif "end" in order:
                self._answer(await self._end())
            else:
                self._answer({"asked": self._http.asked})

    async def _begin(self, rung: str, ids: list[str]) -> dict[str, Any]:
        self._chain = Chain(self._engine, self._inbox, rung, ids)
        if rung == "framework":
            self._http = DirectCalls(self._engine, self._chain, len(ids))
        elif stands_on(rung, "socket"):
            self._http = HttpServer(self._engine, self._chain)
        await asyncio.sleep(0.1)
        return {"port": getattr(self._http, "port", None)}

    async def _await(self, tokens: int) -> dict[str, Any]:
        assert self._chain is not None
        end = time.monotonic() + PATIENCE_S
        while self._chain.tokens < tokens and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return {"tokens": self._chain.tokens, "chunks": self._chain.chunks}

    async def _end(self) -> dict[str, Any]:
        assert self._chain is not None
        if self._http is not None:
            await self._http.end()
        await self._chain.end()
        self._chain, self._http = None, None
        gc.collect()
        return {}

    def _answer(self, content: dict[str, Any]) -> None:
        self._answers.write(json.dumps(content) + "\n")
        self._answers.flush()


async def _main(model: str, address: str, answers: Any) -> None:
    await Process(model, address, answers).run()


def main() -> int:
    """Entry point; what fails is one line as an answer and exit code 5."""
    answers = os.fdopen(os.dup(1), "w")  # vLLM logs to stdout
    os.dup2(2, 1)
    try:
        importlib.import_module("uvloop").run(_main(sys.argv[1], sys.argv[2], answers))
    except (MissingError, ImportError, AttributeError, TypeError) as error:
        kind = "" if isinstance(error, MissingError) else f"{type(error).__name__}: "
        answers.write(json.dumps({"error": kind + " ".join(str(error).split())}) + "\n")
        answers.flush()
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
