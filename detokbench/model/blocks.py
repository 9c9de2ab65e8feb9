"""How long vLLM's front end keeps its event loop to itself.

The output handler takes a step's rows in slices of VLLM_V1_OUTPUT_PROC_CHUNK_SIZE and yields to
the loop between slices, not after the last (vLLM 0.33.0, ``AsyncLLM._run_output_handler``): HTTP
waits for one slice at most, and each yield costs a turn of the loop (vllm PR#12287).
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_CHUNK_SIZE = 128


@dataclass(frozen=True, slots=True)
class LoopBlocks:
    """One step's rows on the event loop."""

    slices: tuple[int, ...]
    """Rows in each."""
    longest_block_s: float
    """The longest time the loop serves nobody else."""
    step_s: float
    """All slices, with the yields between them: fewer slices, more throughput."""


def loop_blocks(
    rows: int, row_s: float, chunk_size: int | None = DEFAULT_CHUNK_SIZE, yield_s: float = 0.0
) -> LoopBlocks:
    """Slices of a step of ``rows`` rows at ``row_s`` each; no ``chunk_size`` means one slice.

    ``yield_s`` is what one turn of the event loop costs.
    """
    size = rows if chunk_size is None else chunk_size
    slices = tuple(min(size, rows - start) for start in range(0, rows, size)) if rows else ()
    yields = max(len(slices) - 1, 0)
    return LoopBlocks(slices, max(slices, default=0) * row_s, rows * row_s + yields * yield_s)
