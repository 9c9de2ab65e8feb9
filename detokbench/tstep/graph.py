"""Steps captured in one CUDA graph, timed by events that are nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from detokbench.tstep.device import elapsed_s, import_torch, query_nvidia_smi
from detokbench.tstep.samples import rounds_for

Step = Callable[[], Any]

# Compiles, autotunes and fills the libraries' workspaces before the capture, where allocating
# and synchronising are not allowed.
_WARM_UP_ROUNDS = 3
# nvidia-smi takes some tenths of a second; the device must still be busy when it looks.
_LOAD_FOR_CLOCK_S = 1.0


class CapturedSteps:
    """All ``steps``, one after the other, as one graph; ``logits`` is what the first returns.

    The events are recorded inside the graph, so that a launch from the host is not in the time.
    An older torch, without external events, has them around the replays instead.
    """

    def __init__(self, device: Any, steps: Sequence[Step]) -> None:
        torch = import_torch()
        self._torch = torch
        self._device = device
        self._warm_up(steps)
        self._events = _graph_events(torch)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            if self._events:
                self._events[0].record()
            results = [step() for step in steps]
            if self._events:
                self._events[1].record()
        self.logits = results[0]

    def _warm_up(self, steps: Sequence[Step]) -> None:
        cuda = self._torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(_WARM_UP_ROUNDS):
                for step in steps:
                    step()
        cuda.current_stream().wait_stream(side)
        cuda.synchronize(self._device)

    def replay(self) -> None:
        """One replay, finished when this returns; ``logits`` are then those of this replay."""
        self._graph.replay()
        self._torch.cuda.synchronize(self._device)

    def round_s(self, rounds: int) -> float:
        """Mean seconds a replay over ``rounds`` replays."""
        if self._events is None:
            return elapsed_s(self._device, lambda: self._enqueue(rounds)) / rounds
        start, end = self._events
        total_ms = 0.0
        for _ in range(rounds):
            self.replay()
            total_ms += start.elapsed_time(end)
        return total_ms / 1e3 / rounds

    def _enqueue(self, rounds: int) -> None:
        for _ in range(rounds):
            self._graph.replay()

    def sm_clock_mhz(self, round_s: float) -> float | None:
        """The SM clock while the device replays, or None where nvidia-smi does not say."""
        self._enqueue(rounds_for(_LOAD_FOR_CLOCK_S, round_s))
        (clock,) = query_nvidia_smi(self._device, ("clocks.sm",))
        self._torch.cuda.synchronize(self._device)
        try:
            return float(clock)
        except ValueError:
            return None


def _graph_events(torch: Any) -> tuple[Any, Any] | None:
    try:
        start, end = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
    except TypeError:
        return None
    return start, end
