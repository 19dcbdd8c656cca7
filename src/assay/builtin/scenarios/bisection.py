"""The breaking point between a step that held and one that did not, by halving the gap.

Each try is a load of its own and takes as long as a step of the scenario, so their number is bounded by the scenario, and the
search also ends where the gap is too small to matter, or has no whole number left in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
CLOSE = 1.05
"""Within a twentieth a breaking point is known well enough."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """The highest load that held, and the lowest that did not."""

    held: float
    broke: float


def bisect_load(
    held: float, broke: float, holds: Callable[[float], bool], steps: int, *, is_whole: bool = True
) -> Bracket:
    """Tries loads between them, in the middle by their ratio, `steps` times at most; only whole numbers unless told otherwise.

    >>> bisect_load(100, 1000, lambda size: size <= 250, 8)
    Bracket(held=246, broke=255)
    >>> bisect_load(4, 8, lambda level: level < 6, 8)
    Bracket(held=5, broke=6)
    """
    # Loads differ by factors, so the middle is the geometric mean: 100 and 1000 have it at 316. Without a load that held
    # there is nothing to halve.
    for _ in range(steps if held > 0 else 0):
        middle = math.sqrt(held * broke)
        if is_whole:
            middle = round(middle)
        if broke / held <= CLOSE or middle <= held or middle >= broke:
            break
        if holds(middle):
            held = middle
        else:
            broke = middle
    return Bracket(held, broke)


def probe_between(
    held: float,
    broke: float,
    attempt: Callable[[float], T],
    is_held: Callable[[T], bool],
    steps: int,
    *,
    is_whole: bool = True,
) -> tuple[Bracket, list[T]]:
    """Bisect and return each probe with its result: `attempt` makes a probe, and `is_held` judges it."""
    probes: list[T] = []

    def holds(load: float) -> bool:
        probes.append(attempt(load))
        return is_held(probes[-1])

    return bisect_load(held, broke, holds, steps, is_whole=is_whole), probes
