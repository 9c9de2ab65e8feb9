"""The micro-batcher on a loop without waiting: who is encoded with whom, and when."""

import asyncio
import logging
from time import sleep

import pytest
from virtual_loop import VirtualExecutor, run_virtually

from detokbench.live.encode_batcher import EncodeBatcher

MS = 0.001


class FakeTokenizer:
    """Ids are the characters; it keeps what it was called with, and when."""

    def __init__(self, loop, bad="bad"):
        self._loop = loop
        self._bad = bad
        self.calls = []

    def __call__(self, texts, **options):
        self.calls.append((round(self._loop.time() / MS, 3), texts, options))
        several = texts if isinstance(texts, list) else [texts]
        if self._bad in several:
            raise ValueError("cannot encode")
        ids = [list(map(ord, text)) for text in several]
        return {"input_ids": ids if isinstance(texts, list) else ids[0]}


def ids(text):
    return {"input_ids": list(map(ord, text))}


def driven(arrivals, seconds=0.0, **settings):
    """Let ``(ms, text, options)`` arrive; returns the calls, and ``(outcome, ms)`` of each."""

    async def drive(loop):
        tokenizer = FakeTokenizer(loop)
        executor = VirtualExecutor(loop, lambda: seconds)
        batcher = EncodeBatcher(tokenizer, executor=executor, **settings)

        async def request(at_ms, text, options):
            await asyncio.sleep(at_ms * MS)
            try:
                outcome = await batcher.encode(text, **options)
            except ValueError as error:
                outcome = error
            return outcome, round(loop.time() / MS, 3)

        outcomes = await asyncio.gather(*(request(*arrival) for arrival in arrivals))
        await batcher.close()
        return tokenizer.calls, outcomes

    return run_virtually(drive)


def test_a_lone_request_waits_for_nobody():
    calls, [(outcome, at)] = driven([(5, "a", {})])
    assert calls == [(5, "a", {})]
    assert (outcome, at) == (ids("a"), 5)


def test_requests_at_once_share_a_call_after_the_wait():
    calls, outcomes = driven([(0, "a", {}), (0, "b", {}), (0, "c", {})])
    assert calls == [(2, ["a", "b", "c"], {})]
    assert outcomes == [(ids("a"), 2), (ids("b"), 2), (ids("c"), 2)]


def test_what_comes_within_the_wait_comes_along_and_what_is_later_does_not():
    arrivals = [(0, "a", {}), (0, "b", {}), (1.5, "c", {}), (2.5, "d", {})]
    calls, outcomes = driven(arrivals, seconds=10 * MS)
    assert [texts for _, texts, _ in calls] == [["a", "b", "c"], "d"]
    assert [at for _, at in outcomes] == [12, 12, 12, 22]


def test_a_full_batch_does_not_wait_and_no_call_has_more():
    calls, _ = driven([(0, text, {}) for text in "abcdefg"], max_batch=3)
    assert calls == [(0, ["a", "b", "c"], {}), (0, ["d", "e", "f"], {}), (0, "g", {})]


def test_the_default_is_at_most_32_and_2_ms():
    calls, outcomes = driven([(0, chr(97 + n % 26), {}) for n in range(70)])
    assert [len(texts) for _, texts, _ in calls] == [32, 32, 6]
    assert outcomes[-1][1] == 2


def test_requests_pile_up_while_the_one_worker_is_busy():
    arrivals = [(0, "a", {}), (1, "b", {}), (2, "c", {}), (3, "d", {})]
    calls, outcomes = driven(arrivals, seconds=10 * MS)
    assert [texts for _, texts, _ in calls] == ["a", ["b", "c", "d"]]
    assert outcomes[1][1] == 10 + 2 + 10


def test_differing_options_are_not_batched_and_that_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        calls, outcomes = driven([(0, "a", {}), (0, "b", {"padding": True})])
    assert calls == [(2, "a", {}), (2, "b", {"padding": True})]
    assert [outcome for outcome, _ in outcomes] == [ids("a"), ids("b")]
    assert "2 requests are encoded one by one: their options differ" in caplog.text


def test_the_same_options_are_passed_on_in_one_call(caplog):
    calls, _ = driven([(0, "a", {"padding": True}), (0, "b", {"padding": True})])
    assert calls == [(2, ["a", "b"], {"padding": True})]
    assert caplog.text == ""


@pytest.mark.parametrize("options", [{}, {"padding": True}])
def test_an_error_reaches_the_request_at_fault_alone(options):
    _, outcomes = driven([(0, "a", {}), (0, "bad", options), (0, "c", {})])
    assert outcomes[0][0] == ids("a")
    assert isinstance(outcomes[1][0], ValueError)
    assert outcomes[2][0] == ids("c")


def test_after_an_error_the_batcher_goes_on():
    _, outcomes = driven([(0, "bad", {}), (5, "a", {})])
    assert isinstance(outcomes[0][0], ValueError)
    assert outcomes[1] == (ids("a"), 5)


def test_a_cancelled_request_is_not_encoded_and_the_others_are():
    async def drive(loop):
        tokenizer = FakeTokenizer(loop)
        batcher = EncodeBatcher(tokenizer, executor=VirtualExecutor(loop))
        tasks = [loop.create_task(batcher.encode(text)) for text in "abc"]
        await asyncio.sleep(MS)
        tasks[1].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.close()
        return tokenizer.calls, outcomes

    calls, outcomes = run_virtually(drive)
    assert calls == [(2, ["a", "c"], {})]
    assert outcomes[0] == ids("a")
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert outcomes[2] == ids("c")


def test_closing_cancels_who_waits_and_refuses_who_comes():
    async def drive(loop):
        tokenizer = FakeTokenizer(loop)
        batcher = EncodeBatcher(tokenizer, executor=VirtualExecutor(loop, lambda: 1.0))
        tasks = [loop.create_task(batcher.encode(text)) for text in "ab"]
        await asyncio.sleep(0.1)  # both are being encoded
        tasks.append(loop.create_task(batcher.encode("c")))
        await asyncio.sleep(0.1)
        await batcher.close()
        await batcher.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(RuntimeError, match="closed"):
            await batcher.encode("d")
        return outcomes

    outcomes = run_virtually(drive)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 3


def test_closing_ends_where_many_were_given_up_while_it_encoded():
    """Each request fills the queue at the moment at which the task is told to end."""

    def tokenizer(texts):
        sleep(0.0005)
        return {"input_ids": [[1]] * len(texts) if isinstance(texts, list) else [1]}

    async def drive():
        batcher = EncodeBatcher(tokenizer)
        tasks = [asyncio.create_task(batcher.encode("a")) for _ in range(5000)]
        await asyncio.wait(tasks, timeout=0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.wait_for(asyncio.shield(batcher.close()), 10)

    asyncio.run(drive())


def test_closing_ends_a_task_that_loses_its_cancellation():
    class DeafTask(asyncio.Task):
        def cancel(self, msg=None):
            return True

    async def drive(loop):
        loop.set_task_factory(lambda loop, work, **named: DeafTask(work, loop=loop, **named))
        batcher = EncodeBatcher(FakeTokenizer(loop), executor=VirtualExecutor(loop))
        await batcher.encode("a")
        await batcher.close()

    run_virtually(drive)


def test_the_tokenizer_is_called_in_one_thread_that_is_not_the_loops():
    import threading

    seen = set()

    def tokenizer(texts):
        seen.add(threading.current_thread())
        return {"input_ids": [[1]] * len(texts) if isinstance(texts, list) else [1]}

    async def drive():
        batcher = EncodeBatcher(tokenizer)
        await batcher.encode("a")
        await asyncio.gather(*(batcher.encode("b") for _ in range(5)))
        await batcher.close()

    asyncio.run(drive())
    assert len(seen) == 1
    assert threading.main_thread() not in seen


def test_it_gives_the_ids_of_one_call_each(llama3):
    texts = ["Hello", "two words", "", "naïve café", "🙂" * 3]

    async def drive():
        batcher = EncodeBatcher(llama3.tokenizer)
        try:
            return await asyncio.gather(*map(batcher.encode, texts))
        finally:
            await batcher.close()

    encoded = asyncio.run(drive())
    assert [one["input_ids"] for one in encoded] == [
        llama3.tokenizer(text)["input_ids"] for text in texts
    ]
