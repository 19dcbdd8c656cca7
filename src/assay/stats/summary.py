"""Summarises a sample: centre, spread, extremes, percentiles.

All of it takes values of any size: numbers are brought near 1 before they are squared or added, and percentiles never
subtract two values, so neither very large nor very small values overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.order import median_ranks
from assay.stats.sample import Array, enlarge, finite, magnitude, order_by_group, shrink


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a sample; for an empty one, everything but `n` is nan."""

    n: int
    mean: float = nan
    median: float = nan
    std: float = nan
    """With n - 1 in the denominator; 0 for a single value."""
    min: float = nan
    max: float = nan
    p90: float = nan
    p95: float = nan
    p99: float = nan

    @property
    def cv(self) -> float | None:
        """Coefficient of variation; None around zero, and of a single value."""
        return self.std / abs(self.mean) if self.mean and self.n > 1 else None


def summarise(values: ArrayLike) -> Summary:
    sample = finite(values)
    if sample.size == 0:
        return Summary(0)
    low, high = float(sample.min()), float(sample.max())
    if low == high:
        return Summary(sample.size, low, low, 0.0, low, low, low, low, low)
    exponent = magnitude([sample])
    small = shrink(sample, exponent)
    mean, std = (enlarge(float(figure), exponent) for figure in (small.mean(), small.std(ddof=1)))
    median, *tails = _percentiles(sample, (50, 90, 95, 99))
    return Summary(sample.size, mean, median, std, low, high, *tails)


def percentile(values: ArrayLike, q: float) -> float:
    """Linear between neighbours (definition 7 of Hyndman and Fan 1996); nan for an empty sample."""
    sample = finite(values)
    return _percentiles(sample, (q,))[0] if sample.size else nan


def _percentiles(sample: Array, qs: Sequence[float]) -> list[float]:
    """Weighted neighbours rather than steps between them, which overflow where values have opposite signs."""
    places = [(sample.size - 1) * q / 100 for q in qs]
    ordered = np.partition(
        sample, sorted({floor(place) for place in places} | {ceil(place) for place in places})
    )
    neighbours = [(float(ordered[floor(place)]), float(ordered[ceil(place)]), place % 1) for place in places]
    return [min(max(low * (1 - share) + high * share, low), high) for low, high, share in neighbours]


def median_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """The order-statistic interval of the median of an unsorted sample; None when it is too small for one."""
    sample = finite(values)
    ranks = median_ranks(sample.size, level)
    if ranks is None:
        return None
    ordered = np.partition(sample, ranks)
    return float(ordered[ranks[0]]), float(ordered[ranks[1]])


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each value belongs to."""

    names: NDArray[np.int64]
    """Sorted."""
    first_seen: NDArray[np.intp]
    codes: NDArray[np.intp]
    """The place of each value's group in `names`."""
    counts: NDArray[np.intp]


def find_groups(groups: NDArray[np.int64]) -> Groups:
    """Sorted once for all metrics of a trial, which mostly have the same executions."""
    return _find_groups(np.asarray(groups, dtype=np.int64).tobytes())


@lru_cache(maxsize=4)
def _find_groups(groups: bytes) -> Groups:
    found = np.unique(
        np.frombuffer(groups, dtype=np.int64), return_index=True, return_inverse=True, return_counts=True
    )
    for column in found:
        column.setflags(write=False)
    return Groups(*found)


def group_medians(values: Array, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """The groups in the order in which they first appear, and the median of each."""
    found = find_groups(groups)
    ordered = values[order_by_group(values, found.codes)]
    starts = np.cumsum(found.counts) - found.counts
    medians = ordered[starts + (found.counts - 1) // 2] / 2 + ordered[starts + found.counts // 2] / 2
    appearance = np.argsort(found.first_seen)
    return found.names[appearance], medians[appearance]
