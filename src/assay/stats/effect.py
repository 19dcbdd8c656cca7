"""Two samples: how far B is from A, with an interval and a p value, by rank tests.

Both tests are inverted for their interval, so interval and p agree: the interval excludes "no difference" exactly when
p is at most 1 - level (Lehmann 1963; Hollander and Wolfe 1999, chapters 3 and 4). With ties or zeros, p comes from the
distribution of just these ranks and the interval from the wider one without ties. Large samples use the normal
approximation with corrections for ties and continuity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.stats import rank_distributions
from assay.stats.sample import Array, Scale, Scaled, comparable_scale, finite, two_sided
from assay.stats.selection import differences_at, walsh_averages_at


@dataclass(frozen=True, slots=True)
class Effect:
    """B against A, as a ratio B ÷ A or a difference B − A."""

    scale: Scale
    value: float
    low: float
    """Unbounded (0 or -inf), like `high` (inf), when no result of so few observations would be significant."""
    high: float
    p: float
    method: str
    dominance: float = 0.0
    """Chance that B is above A less the chance that it is below (Cliff 1993); of pairs, where they are paired."""

    @property
    def neutral(self) -> float:
        return 1.0 if self.scale is Scale.RATIO else 0.0

    @property
    def excludes_neutral(self) -> bool:
        return not self.low <= self.neutral <= self.high


def compare_unpaired(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Effect | None:
    """Mann–Whitney test and Hodges–Lehmann estimate of two independent samples; None when one is empty."""
    first, second = finite(a), finite(b)
    if not first.size or not second.size:
        return None
    scaled = comparable_scale(first, second)
    x, y = scaled.samples
    test = _rank_sum(first, second)
    n, m = x.size, y.size
    if n * m <= rank_distributions.EXACT_PAIRS:
        rank = rank_distributions.interval_rank(rank_distributions.rank_sum_cdf(*sorted((n, m))), level)
    else:
        rank = rank_distributions.normal_interval_rank(n * m / 2, math.sqrt(n * m * (n + m + 1) / 12), level)
    picked = _pick(n * m, rank, lambda ranks: differences_at(x, y, ranks))
    return _effect(scaled, picked, test, f"Hodges–Lehmann {scaled.scale}")


def compare_paired(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Effect | None:
    """Wilcoxon's signed-rank test and Walsh-average estimate of pairs a[i], b[i]; None when there are none."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    whole = np.isfinite(first) & np.isfinite(second)
    if not whole.any():
        return None
    scaled = comparable_scale(first[whole], second[whole])
    steps = _tie_equal_steps(*scaled.samples)
    test = _compute_signed_rank(steps)
    n = steps.size
    if n <= rank_distributions.EXACT_SIGNED:
        rank = rank_distributions.interval_rank(rank_distributions.compute_signed_rank_cdf(n), level)
    else:
        mean = n * (n + 1) / 4
        rank = rank_distributions.normal_interval_rank(mean, math.sqrt(mean * (2 * n + 1) / 6), level)
    picked = _pick(n * (n + 1) // 2, rank, lambda ranks: walsh_averages_at(steps, ranks))
    return _effect(scaled, picked, test, f"Walsh-average {scaled.scale}")


def _tie_equal_steps(x: Array, y: Array) -> Array:
    """y − x, where steps that differ only by rounding have the same size, and those that are only rounding are 0.

    Equal ratios such as 2 ÷ 1 and 0.6 ÷ 0.3 are ties, but the differences of their logarithms differ in the last digits.
    """
    steps = y - x
    sizes = np.abs(steps)
    # Each value, its logarithm and their difference are rounded once.
    error = _ROUNDINGS * np.finfo(np.float64).eps * np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))
    sizes[sizes <= error] = 0.0
    order = np.argsort(sizes, kind="stable")
    starts = np.diff(sizes[order], prepend=-1.0) > error[order]
    tied = np.empty_like(sizes)
    tied[order] = sizes[order][starts][np.cumsum(starts) - 1]
    return np.copysign(tied, steps)


_ROUNDINGS = 4


@dataclass(frozen=True, slots=True)
class _Picked:
    value: float
    low: float
    high: float


def _pick(total: int, rank: int, at: Callable[[Sequence[int]], list[float]]) -> _Picked:
    """The median of all pairs, and the pairs at the interval's ranks where there are such."""
    centre = [(total - 1) // 2, total // 2]
    below, above, *ends = at(centre if rank < 0 else [*centre, rank, total - 1 - rank])
    low, high = ends or (-math.inf, math.inf)
    return _Picked(below / 2 + above / 2, low, high)


@dataclass(frozen=True, slots=True)
class _Test:
    p: float
    name: str
    dominance: float


def _effect(scaled: Scaled, picked: _Picked, test: _Test, estimate: str) -> Effect:
    value, low, high = (scaled.back(number) for number in (picked.value, picked.low, picked.high))
    return Effect(scaled.scale, value, low, high, test.p, f"{test.name}, {estimate}", test.dominance)


def twice_above(x: Array, y: Array) -> int:
    """Twice the number of pairs with y above x, of which equal ones count half."""
    ordered = np.sort(x)
    return int(np.searchsorted(ordered, y, "left").sum() + np.searchsorted(ordered, y, "right").sum())


def _rank_sum(x: Array, y: Array) -> _Test:
    """On the values themselves: logarithms keep the ranks, but may make ties of neighbours."""
    doubled = twice_above(x, y)
    _, place, ties = np.unique(np.concatenate((x, y)), return_inverse=True, return_counts=True)
    pairs = x.size * y.size
    dominance = doubled / pairs - 1
    if ties.max() == 1 and pairs <= rank_distributions.EXACT_PAIRS:
        p = rank_distributions.symmetric_p(
            rank_distributions.rank_sum_cdf(*sorted((x.size, y.size))), doubled // 2
        )
        return _Test(p, "exact Mann–Whitney", dominance)
    if pairs <= rank_distributions.EXACT_TIED:
        # From every way to deal these ranks, of which the first are A's; the smaller side is dealt.
        ranks = (2 * np.cumsum(ties) - ties + 1)[place]
        side = ranks[: x.size] if x.size <= y.size else ranks[x.size :]
        p = rank_distributions.exact_p(
            rank_distributions.tied_rank_sum_cdf(ranks.tolist(), side.size), int(side.sum())
        )
        return _Test(p, "exact Mann–Whitney", dominance)
    p = normal_p(doubled / 2 - pairs / 2, rank_sum_variance(x, y))
    return _Test(p, "Mann–Whitney (normal approximation)", dominance)


def rank_sum_variance(x: Array, y: Array) -> float:
    """The variance of the Mann–Whitney statistic when these values, with their ties, are dealt to both sides by chance."""
    _, ties = np.unique(np.concatenate((x, y)), return_counts=True)
    counts, total = ties.astype(np.float64), x.size + y.size
    tied = float((counts**3 - counts).sum()) / (total * (total - 1))
    return x.size * y.size / 12 * (total + 1 - tied)


def _compute_signed_rank(steps: Array) -> _Test:
    """Zeros are left out of the ranking, as Wilcoxon did."""
    moved = steps[steps != 0]
    if moved.size == 0:
        return _Test(1.0, "exact Wilcoxon signed rank", 0.0)
    dominance = float(np.sign(moved).sum()) / steps.size
    _, place, ties = np.unique(np.abs(moved), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[place]
    statistic = int(doubled[moved > 0].sum())
    if moved.size > rank_distributions.EXACT_SIGNED:
        variance = float((doubled.astype(np.float64) ** 2).sum()) / 16
        p = normal_p(statistic / 2 - float(doubled.sum()) / 4, variance)
        return _Test(p, "Wilcoxon signed rank (normal approximation)", dominance)
    if ties.max() == 1:
        p = rank_distributions.symmetric_p(
            rank_distributions.compute_signed_rank_cdf(moved.size), statistic // 2
        )
    else:
        p = rank_distributions.symmetric_p(
            np.cumsum(rank_distributions.sums_of_coins(doubled.tolist())), statistic
        )
    return _Test(p, "exact Wilcoxon signed rank", dominance)


def normal_p(deviation: float, variance: float) -> float:
    """Two-sided, with the continuity correction of one half."""
    if variance <= 0:
        return 1.0
    return min(1.0, two_sided(max(0.0, abs(deviation) - 0.5) / math.sqrt(variance)))
