"""Exact distributions of the rank statistics when there is no difference."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from assay.stats.sample import Array, quantile

EXACT_PAIRS = 2500
"""Largest n·m with an exact rank-sum distribution: 50 a side takes some ten milliseconds, once."""
EXACT_SIGNED = 50


@lru_cache(maxsize=256)
def rank_sum_cdf(n: int, m: int) -> Array:
    """P(U <= u) for u = 0 … n·m, by the recurrence of Mann and Whitney (1947) on probabilities.

    The largest of all values belongs to the first sample with chance i / (i + j), and then exceeds j others.
    """
    row = [np.ones(1)] * (m + 1)
    for i in range(1, n + 1):
        above, row = row, [np.ones(1)]
        for j in range(1, m + 1):
            chances = np.zeros(i * j + 1)
            chances[j:] = above[j] * (i / (i + j))
            chances[: row[-1].size] += row[-1] * (j / (i + j))
            row.append(chances)
    return np.asarray(np.cumsum(row[m]))


@lru_cache(maxsize=256)
def signed_rank_cdf(n: int) -> Array:
    """P(T <= t) for t = 0 … n(n+1)/2: each rank is added or not with chance one half (Wilcoxon 1945)."""
    chances = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(chances.size + rank)
        longer[: chances.size] = chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return np.asarray(np.cumsum(chances))


def interval_rank(cdf: Array, level: float) -> int:
    """The largest statistic that a two-sided test at this level rejects; -1 when it rejects none."""
    return int(np.searchsorted(cdf, (1 - level) / 2 * (1 + 1e-9), side="right")) - 1


def normal_interval_rank(mean: float, std: float, level: float) -> int:
    """The same by the normal approximation with continuity correction."""
    return max(-1, math.floor(mean - 0.5 - quantile((1 + level) / 2) * std))


def exact_p(cdf: Array, statistic: float) -> float:
    """Two-sided: twice the smaller tail; the distribution is symmetric."""
    smaller = min(int(statistic), cdf.size - 1 - int(statistic))
    return min(1.0, 2 * float(cdf[smaller]))
