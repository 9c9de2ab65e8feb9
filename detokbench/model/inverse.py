"""From what a server shows to what its host must cost: the model read backwards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    """The host cost that explains a pair of ITLs.

    ``c_s`` is seconds a sequence and step, divided by the calls a sequence makes where it is
    wanted a call. ``crossover_batch`` is B* for that cost against the ITL without detokenisation,
    held constant; give ``c_s`` to ``crossover`` for a T_step that grows.
    """

    c_s: float
    crossover_batch: float
    is_bound: bool
    """The host may cost less: ``c_s`` is the most, and ``crossover_batch`` the least, there is."""


def explain_added(itl_with_s: float, itl_without_s: float, batch: int) -> Explanation:
    """Detokenisation on the step's critical path: it takes the difference of the ITLs.

    Seconds, both at ``batch``. Raises ValueError where the ITL does not grow with it.
    """
    if itl_with_s <= itl_without_s:
        raise ValueError("added detokenisation cannot explain an ITL that does not grow with it")
    c_s = (itl_with_s - itl_without_s) / batch
    return Explanation(c_s, itl_without_s / c_s, is_bound=False)


def explain_overlapped(itl_with_s: float, itl_without_s: float, batch: int) -> Explanation:
    """Detokenisation beside the GPU: the ITL is the slower of the two.

    Seconds, both at ``batch``. Where both ITLs are the same the host kept up, and only a bound on
    its cost is known. Compare them with their spread before you ask.
    """
    if itl_with_s <= itl_without_s:
        return Explanation(itl_without_s / batch, float(batch), is_bound=True)
    c_s = itl_with_s / batch
    return Explanation(c_s, itl_without_s / c_s, is_bound=False)
