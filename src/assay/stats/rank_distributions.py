"""Exact distributions of the rank statistics when there is no difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from assay.stats.sample import Array, quantile

EXACT_PAIRS = 2500
"""Largest n·m with an exact rank-sum distribution: 50 a side takes some ten milliseconds, once."""
EXACT_TIED = 400
"""The same where values are tied, for then the distribution belongs to these values alone and serves once."""
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
def compute_signed_rank_cdf(n: int) -> Array:
    """P(T <= t) for t = 0 … n(n+1)/2: each rank is added or not with chance one half (Wilcoxon 1945)."""
    return np.asarray(np.cumsum(sums_of_coins(range(1, n + 1))))


def sums_of_coins(weights: Iterable[int], most: int | None = None) -> Array:
    """Chances of the sums 0, 1, … when each weight is added or not by the toss of a coin; only of sums up to `most`."""
    tossed = list(weights)
    whole = sum(tossed)
    kept = whole if most is None else most
    # Halved at the end instead of at every toss: up to a thousand tosses, a power of two changes no digit of any chance.
    at_once = 1000
    chances = np.zeros(kept + 1)
    chances[0], reached = 1.0, 0
    for number, weight in enumerate(tossed, start=1):
        end = min(reached, kept - weight) + 1
        if end > 0:
            chances[weight : weight + end] += chances[:end].copy()
        reached = min(reached + weight, kept)
        if number % at_once == 0:
            chances *= 2.0**-at_once
    return np.asarray(chances * 2.0 ** -(len(tossed) % at_once))


def tied_rank_sum_cdf(doubled_ranks: Sequence[int], chosen: int) -> Array:
    """P(R <= r) for r = 0, 1, …: the sum of so many ranks, drawn from these, which are doubled to make shared ones whole."""
    return np.asarray(np.cumsum(chances_of_draws(doubled_ranks, chosen)))


def chances_of_draws(values: Sequence[int], chosen: int) -> Array:
    """Chances of the sums 0, 1, … of so many values, drawn without replacement."""
    largest = sum(sorted(values)[-chosen:])
    ways = np.zeros((chosen + 1, largest + 1))
    ways[0, 0] = 1.0
    for value in values:
        ways[1:, value:] += ways[:-1, : largest + 1 - value]
    return np.asarray(ways[chosen] / math.comb(len(values), chosen))


def interval_rank(cdf: Array, level: float) -> int:
    """The largest statistic that a two-sided test at this level rejects; -1 when it rejects none."""
    return int(np.searchsorted(cdf, (1 - level) / 2 * (1 + 1e-9), side="right")) - 1


def normal_interval_rank(mean: float, std: float, level: float) -> int:
    """The same by the normal approximation with continuity correction."""
    return max(-1, math.floor(mean - 0.5 - quantile((1 + level) / 2) * std))


def exact_p(cdf: Array, statistic: int) -> float:
    """Two-sided: twice the smaller tail."""
    above = 1 - float(cdf[statistic - 1]) if statistic else 1.0
    return min(1.0, 2 * min(float(cdf[statistic]), above))


def symmetric_p(cdf: Array, statistic: int) -> float:
    """The same where both tails are alike: read from the lower one, which keeps its digits."""
    return min(1.0, 2 * float(cdf[min(statistic, cdf.size - 1 - statistic)]))


def fewest_units(alpha: float, *, is_paired: bool) -> int:
    """Pairs, or units a side, at which the most extreme ranks are significant at all.

    >>> fewest_units(0.05, is_paired=True), fewest_units(0.05, is_paired=False)
    (6, 4)
    """
    n = 1
    while (2 ** (1 - n) if is_paired else 2 / math.comb(2 * n, n)) >= alpha:
        n += 1
    return n
