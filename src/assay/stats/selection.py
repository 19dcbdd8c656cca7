"""Chosen order statistics of all pairs of two samples, without writing the pairs down where there are too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from assay.stats.sample import Array

_WRITTEN_OUT = 1_000_000
_HALVINGS = 80


def differences_at(x: Array, y: Array, ranks: Sequence[int]) -> list[float]:
    """The values at these positions, from 0, among the sorted differences y - x of all pairs."""
    if x.size * y.size <= _WRITTEN_OUT:
        return _at(np.subtract.outer(y, x).ravel(), ranks)
    x, y = np.sort(x), np.sort(y)

    def at_most(limit: float) -> int:
        return x.size * y.size - int(np.searchsorted(x, y - limit, side="left").sum())

    return [_smallest(at_most, float(y[0] - x[-1]), float(y[-1] - x[0]), rank) for rank in ranks]


def walsh_averages_at(x: Array, ranks: Sequence[int]) -> list[float]:
    """The values at these positions, from 0, among the sorted averages of all pairs, each value with itself included."""
    if x.size * (x.size + 1) // 2 <= _WRITTEN_OUT:
        first, second = np.triu_indices(x.size)
        return _at((x[first] + x[second]) / 2, ranks)
    x = np.sort(x)

    def at_most(limit: float) -> int:
        ordered_pairs = int(np.searchsorted(x, 2 * limit - x, side="right").sum())
        return (ordered_pairs + int(np.searchsorted(x, limit, side="right"))) // 2

    return [_smallest(at_most, float(x[0]), float(x[-1]), rank) for rank in ranks]


def _at(values: Array, ranks: Sequence[int]) -> list[float]:
    ordered = np.partition(values, sorted(set(ranks)))
    return [float(ordered[rank]) for rank in ranks]


def _smallest(at_most: Callable[[float], int], low: float, high: float, rank: int) -> float:
    """The smallest limit with more than `rank` values at most that large, by halving."""
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if at_most(middle) > rank else (middle, high)
    return high
