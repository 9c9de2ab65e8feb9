"""What is asked one request at a time, with nothing else running: stop strings, and whole answers.

Both compare answers of the same request, so that load must not be what tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable

from detokbench.live.openai_stream import NotAFrameError
from detokbench.live.probe_checks import compare_texts, curve_of, hold_back
from detokbench.live.probe_judge import Judged
from detokbench.live.probe_prompts import Prompt
from detokbench.live.probe_secrets import blotted
from detokbench.live.probe_session import ProbeSession
from detokbench.records.probe import Comparison, HoldBack

MOST_COMPARED = 8
HOLD_REPEATS = 3
Progress = Callable[[str, float], None]


async def ask_with_stops(
    server: ProbeSession, prompt: Prompt, stop: list[str], progress: Progress
) -> HoldBack | str:
    """The same request without the stops and with them, in turn; why not, where one fails."""
    with_stop: list[Judged] = []
    without: list[Judged] = []
    for number in range(HOLD_REPEATS):
        without.append(await server.judged_stream(prompt))
        with_stop.append(await server.judged_stream(prompt, stop))
        progress("stop strings", (number + 1) / HOLD_REPEATS)
        failed = next((e for e in (without[-1], with_stop[-1]) if not e.is_measured), None)
        if failed is not None:
            return f"no hold-back: a request ended as {failed.outcome} {failed.note}".strip()
    return hold_back(
        stop,
        prompt.name,
        *([curve_of(e.answer, e.raw.sent_s) for e in runs] for runs in (with_stop, without)),
    )


async def ask_without_stream(server: ProbeSession, prompt: Prompt) -> Comparison:
    """A prompt streamed once and answered twice without a stream."""
    streamed = await server.judged_stream(prompt)
    if not streamed.is_measured:
        note = f"the stream ended as {streamed.outcome} {streamed.note}".strip()
        return Comparison(prompt=prompt.name, verdict="failed", note=note)
    try:
        texts = [await server.whole_text(prompt) for _ in range(2)]
    except NotAFrameError as error:
        return Comparison(prompt=prompt.name, verdict="failed", note=str(error))
    # What is cut out of a text below must not be a part of a key that it repeats.
    seen = [blotted(text, server.asked.secrets) for text in (streamed.text, *texts)]
    return compare_texts(prompt.name, *seen)
