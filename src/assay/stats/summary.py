"""What a sample is like: centre, spread, extremes, percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.order import median_ranks
from assay.stats.sample import Array, finite, grown, magnitude, shrunk


@dataclass(frozen=True, slots=True)
class Summary:
    """Of an empty sample everything but `n` is nan."""

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
        """Coefficient of variation; None around zero."""
        return self.std / abs(self.mean) if self.mean else None


def summarise(values: ArrayLike) -> Summary:
    sample = finite(values)
    if sample.size == 0:
        return Summary(0)
    low, high = float(sample.min()), float(sample.max())
    if low == high:
        return Summary(sample.size, low, low, 0.0, low, low, low, low, low)
    exponent = magnitude([sample])
    small = shrunk(sample, exponent)
    figures = (small.mean(), np.median(small), small.std(ddof=1), small.min(), small.max())
    tails = np.percentile(small, [90, 95, 99])
    return Summary(sample.size, *(grown(float(figure), exponent) for figure in (*figures, *tails)))


def percentile(values: ArrayLike, q: float) -> float:
    """Linear between neighbours (definition 7 of Hyndman and Fan 1996); nan for an empty sample."""
    sample = finite(values)
    if sample.size == 0:
        return nan
    exponent = magnitude([sample])
    return grown(float(np.percentile(shrunk(sample, exponent), q)), exponent)


def median_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """The order-statistic interval of the median of an unsorted sample; None when it is too small for one."""
    sample = finite(values)
    ranks = median_ranks(sample.size, level)
    if ranks is None:
        return None
    ordered = np.partition(sample, ranks)
    return float(ordered[ranks[0]]), float(ordered[ranks[1]])


def group_medians(values: Array, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """The groups in the order in which they first appear, and the median of each."""
    order = np.lexsort((values, groups))
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    ordered = values[order]
    medians = ordered[starts + (counts - 1) // 2] / 2 + ordered[starts + counts // 2] / 2
    names, first_seen = np.unique(groups, return_index=True)
    appearance = np.argsort(first_seen)
    return names[appearance], medians[appearance]
