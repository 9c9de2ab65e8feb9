"""SGLang's micro-batcher for prompts: requests that wait together are encoded in one call.

The behaviour is that of ``AsyncDynamicbatchTokenizer`` (sglang 0.5.23,
srt/managers/async_dynamic_batch_tokenizer.py): a lone request is encoded at once; where more are
waiting, it gathers up to ``max_batch`` of them for up to ``wait_s``; one thread calls the
tokenizer, so that the event loop goes on; requests whose options differ are encoded one by one,
with a warning. Two things differ. Where a batch raises, SGLang gives the error to every request in
it; here each is then encoded on its own, so that only the one at fault gets it. A request that was
cancelled while it waited is not encoded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

MAX_BATCH = 32
WAIT_S = 0.002
_LOG = logging.getLogger(__name__)
Tokenizer = Callable[..., Mapping[str, Any]]
"""``tokenizer(text, **options)`` or ``tokenizer(texts, **options)``, as transformers has it."""


class _Request(NamedTuple):
    text: str
    options: dict[str, Any]
    answer: asyncio.Future[dict[str, Any]]


class EncodeBatcher:
    """Encodes prompts one or many at a time. It belongs to the event loop that first uses it."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_batch: int = MAX_BATCH,
        wait_s: float = WAIT_S,
        executor: Executor | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._max_batch = max_batch
        self._wait_s = wait_s
        self._executor = executor or ThreadPoolExecutor(max_workers=1)
        self._owns_executor = executor is None
        self._queue: asyncio.Queue[_Request | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._encoding: Sequence[_Request] = ()

    async def encode(self, text: str, **options: Any) -> dict[str, Any]:
        """What ``tokenizer(text, **options)`` gives, and raises. RuntimeError once closed."""
        loop = asyncio.get_running_loop()
        if self._task is None:
            self._queue = asyncio.Queue()
            self._task = loop.create_task(self._run(self._queue))
        if self._queue is None:
            raise RuntimeError("the batcher is closed")
        request = _Request(text, options, loop.create_future())
        self._queue.put_nowait(request)
        return await request.answer

    async def close(self) -> None:
        """Stop; requests that still wait are cancelled. It may be called twice."""
        queue, self._queue = self._queue, None
        if self._task is not None and queue is not None:
            waiting = [*self._encoding]
            while not queue.empty():
                waiting += filter(None, [queue.get_nowait()])
            for request in waiting:
                request.answer.cancel()
            queue.put_nowait(None)  # ends the task also where a cancellation is lost
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._owns_executor:
            self._executor.shutdown(wait=True)

    async def _run(self, queue: asyncio.Queue[_Request | None]) -> None:
        while (first := await queue.get()) is not None:
            batch = [first]
            self._encoding = batch
            if not queue.empty():
                await self._gather(queue, batch)
            await self._encode([request for request in batch if not request.answer.done()])
            self._encoding = ()

    async def _gather(self, queue: asyncio.Queue[_Request | None], batch: list[_Request]) -> None:
        """Add what comes within the wait; it goes on when the queue runs empty in between.

        Not by ``asyncio.wait_for``: before Python 3.12 it returns what it has and loses a
        cancellation that comes at the same moment.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._wait_s
        try:
            async with asyncio.timeout_at(end):
                while len(batch) < self._max_batch and loop.time() < end:
                    request = await queue.get()
                    if request is None:
                        queue.put_nowait(None)  # for the task, which ends by it
                        return
                    batch.append(request)
        except TimeoutError:
            pass

    async def _encode(self, batch: Sequence[_Request]) -> None:
        if not batch:
            return
        if len(batch) > 1 and await self._encode_together(batch):
            return
        loop = asyncio.get_running_loop()
        for request, outcome in zip(
            batch, await loop.run_in_executor(self._executor, self._one_by_one, batch), strict=True
        ):
            _answer(request, outcome)

    async def _encode_together(self, batch: Sequence[_Request]) -> bool:
        """One call for the whole batch; False where it cannot be one, or it raised."""
        options = batch[0].options
        if any(request.options != options for request in batch):
            _LOG.warning(
                "%d requests are encoded one by one: their options differ, and one call takes one "
                "set of them",
                len(batch),
            )
            return False
        try:
            encoded = await asyncio.get_running_loop().run_in_executor(
                self._executor, lambda: self._tokenizer([r.text for r in batch], **options)
            )
        except Exception as error:
            _LOG.warning("a batch of %d raised %r; encoded one by one", len(batch), error)
            return False
        for number, request in enumerate(batch):
            _answer(request, {key: values[number] for key, values in encoded.items()})
        return True

    def _one_by_one(self, batch: Sequence[_Request]) -> list[dict[str, Any] | Exception]:
        outcomes: list[dict[str, Any] | Exception] = []
        for request in batch:
            try:
                outcomes.append(dict(self._tokenizer(request.text, **request.options)))
            except Exception as error:
                outcomes.append(error)
        return outcomes


def _answer(request: _Request, outcome: dict[str, Any] | Exception) -> None:
    if request.answer.done():  # its caller has gone
        return
    if isinstance(outcome, Exception):
        request.answer.set_exception(outcome)
    else:
        request.answer.set_result(outcome)
