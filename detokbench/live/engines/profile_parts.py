"""A profile of vLLM's server, summed into parts by the functions on each stack.

The names are those of vLLM 0.33.0 and of what it serves with. A stack belongs to ``requests``
where any of its frames begins or ends one; else the deepest frame that the table knows decides.
Where none is known, it is the event loop's if its deepest frame is, and ``other`` if not. What C
code does, and a garbage collection, counts for the Python function that it happens in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from detokbench.records.frontend_parts import REQUESTS, ProfilePart

LOOP, OTHER = "loop", "other"
_MOST_FRAMES = 4


class Frame(NamedTuple):
    """A function, with its class, and the file that it is in."""

    function: str
    file: str


class Stack(NamedTuple):
    """Frames, the outermost first, and in how many samples they were seen."""

    frames: list[Frame]
    samples: int


# Ends of files (a folder where they end in a slash), and beginnings of functions ("" for all).
Rule = tuple[str, tuple[str, ...]]

_REQUESTS: tuple[Rule, ...] = (
    ("uvicorn/protocols/http/h11_impl.py", ("H11Protocol.", "RequestResponseCycle.run_asgi")),
    (
        "uvicorn/protocols/http/httptools_impl.py",
        ("HttpToolsProtocol.", "RequestResponseCycle.run_asgi"),
    ),
    ("completion/serving.py", ("OpenAIServingCompletion._create_completion",)),
    ("completion/api_router.py", ("",)),
    ("v1/engine/async_llm.py", ("AsyncLLM.add_request", "AsyncLLM._add_request", "AsyncLLM.abort")),
    ("v1/engine/core_client.py", ("AsyncMPClient.add_request", "AsyncMPClient.abort_requests")),
)
_PARTS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("stop", (("v1/engine/detokenizer.py", ("check_stop_strings",)),)),
    (
        "decode",
        (("v1/engine/detokenizer.py", ("Base", "Fast", "Slow")), ("tokenizers/", ("",))),
    ),
    (
        "statistics",
        (
            ("v1/metrics/", ("",)),
            (
                "v1/engine/output_processor.py",
                ("OutputProcessor._update_stats", "OutputProcessor.update_scheduler_stats"),
            ),
        ),
    ),
    (
        "hand-over",
        (
            ("v1/engine/output_processor.py", ("RequestOutputCollector.get",)),
            ("v1/engine/async_llm.py", ("AsyncLLM.generate",)),
        ),
    ),
    (
        "output",
        (
            ("v1/engine/output_processor.py", ("",)),
            ("v1/engine/logprobs.py", ("",)),
            ("vllm/outputs.py", ("",)),
        ),
    ),
    (
        "wire",
        (
            ("v1/engine/core_client.py", ("",)),
            ("v1/serial_utils.py", ("",)),
            ("v1/engine/async_llm.py", ("AsyncLLM._run_output_handler",)),
            ("zmq/", ("",)),
        ),
    ),
    (
        "json",
        (
            ("completion/serving.py", ("OpenAIServingCompletion.completion_stream_generator",)),
            ("utils/async_utils.py", ("merge_async_iterators",)),
        ),
    ),
    (
        "socket",
        (
            ("uvicorn/protocols/http/h11_impl.py", ("RequestResponseCycle.send",)),
            ("uvicorn/protocols/http/httptools_impl.py", ("RequestResponseCycle.send",)),
            ("uvicorn/protocols/http/flow_control.py", ("",)),
            ("h11/", ("",)),
        ),
    ),
    (
        "framework",
        (
            ("starlette/", ("",)),
            ("fastapi/", ("",)),
            ("prometheus_fastapi_instrumentator/", ("",)),
            ("serve/elastic_ep/middleware.py", ("",)),
            ("anyio/", ("",)),
        ),
    ),
)
# An idle thread that py-spy takes for a busy one: it waits for work in C code.
_WAITING = Frame("_worker", "concurrent/futures/thread.py")


def read_stacks(text: str) -> list[Stack]:
    """py-spy's raw format, without line numbers: ``function (file);function (file) count``."""
    found = []
    for line in text.splitlines():
        frames, _, samples = line.rpartition(" ")
        if frames:
            found.append(Stack([_frame(part) for part in frames.split(";")], int(samples)))
    return found


def _frame(text: str) -> Frame:
    function, _, file = text.rpartition(" (")
    return Frame(function or text, file.rstrip(")") if function else "")


def part_of(frames: list[Frame]) -> str | None:
    """The part that a stack belongs to; None for a thread that only waits."""
    if frames[-1] == _WAITING:
        return None
    if any(_is_of(frame, _REQUESTS) for frame in frames):
        return REQUESTS
    for frame in reversed(frames):
        for part, rules in _PARTS:
            if _is_of(frame, rules):
                return part
    of_loop = any(f"{name}/" in frames[-1].file for name in ("asyncio", "uvloop"))
    return LOOP if of_loop else OTHER


def _is_of(frame: Frame, rules: Iterable[Rule]) -> bool:
    return any(
        (f"/{file}" in f"/{frame.file}" if file.endswith("/") else frame.file.endswith(file))
        and frame.function.startswith(functions)
        for file, functions in rules
    )


def sorted_into_parts(stacks: Iterable[Stack]) -> tuple[list[ProfilePart], int]:
    """Each part's share of the samples, the largest first, with its deepest frames; the samples."""
    samples: Counter[str] = Counter()
    frames: dict[str, Counter[str]] = {}
    for stack in stacks:
        part = part_of(stack.frames)
        if part is None:
            continue
        samples[part] += stack.samples
        leaf = stack.frames[-1]
        frames.setdefault(part, Counter())[f"{leaf.function} ({leaf.file})"] += stack.samples
    total = samples.total()
    return [
        ProfilePart(
            name=part,
            share=count / total,
            frames=[(name, n / total) for name, n in frames[part].most_common(_MOST_FRAMES)],
        )
        for part, count in samples.most_common()
    ], total
