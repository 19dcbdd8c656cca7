"""Two samples whose values come in blocks, such as the machines that they were measured on: B against A within blocks.

A machine that is half as fast moves all of its values alike, so a difference is taken only between values of one block. Which share
of either sample a block holds does not matter: a sample that lies mostly on the fast machine gains nothing by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from assay.stats import rank_distributions
from assay.stats.effect import Effect, normal_p, rank_sum_variance, twice_above
from assay.stats.random_effects import ErrorPart
from assay.stats.sample import Array, comparable_scale


@dataclass(frozen=True, slots=True)
class Blocked:
    """Values, and for each the name of its block."""

    values: Array
    blocks: Sequence[str]

    def within(self, block: str) -> Array:
        return self.values[[name == block for name in self.blocks]]


def compare_within_blocks(a: Blocked, b: Blocked, level: float = 0.95) -> Effect | None:
    """The sum of the Mann–Whitney statistics of all blocks, and the median of all differences within blocks.

    Without a difference, each block deals its own values to A and B by chance, whatever the blocks differ by: the distribution of
    the sum is the convolution of those of the blocks. The test is van Elteren's (1960) with equal weights, and is inverted for the
    interval as in `effect`. With one block it is the Mann–Whitney test. None where no block has values of both.
    """
    scaled = comparable_scale(a.values, b.values)
    first, second = (
        Blocked(values, side.blocks) for values, side in zip(scaled.samples, (a, b), strict=True)
    )
    pairs = list(_pair_blocks(first, second))
    if not pairs:
        return None
    total = sum(x.size * y.size for x, y in pairs)
    doubled = sum(twice_above(x, y) for x, y in pairs)
    has_ties = any(np.unique(np.concatenate(pair)).size < sum(map(len, pair)) for pair in pairs)
    if total <= rank_distributions.EXACT_PAIRS:
        cdf = _convolve_rank_sums(pairs)
        rank = rank_distributions.interval_rank(cdf, level)
    else:
        error = math.sqrt(sum(x.size * y.size * (x.size + y.size + 1) / 12 for x, y in pairs))
        rank = rank_distributions.normal_interval_rank(total / 2, error, level)
    if total <= rank_distributions.EXACT_PAIRS and not has_ties:
        p, name = rank_distributions.symmetric_p(cdf, doubled // 2), "exact Mann–Whitney"
    else:
        p = normal_p(doubled / 2 - total / 2, sum(rank_sum_variance(x, y) for x, y in pairs))
        name = "Mann–Whitney (normal approximation)"
    steps = np.sort(np.concatenate([(y[:, None] - x[None, :]).ravel() for x, y in pairs]))
    ends = (-math.inf, math.inf) if rank < 0 else (float(steps[rank]), float(steps[total - 1 - rank]))
    value, low, high = (scaled.back(number) for number in (float(np.median(steps)), *ends))
    method = f"{name} within nodes, Hodges–Lehmann {scaled.scale}"
    return Effect(scaled.scale, value, low, high, p, method, doubled / total - 1)


@dataclass(frozen=True, slots=True)
class BlockedDifference:
    """B − A within blocks, and its error."""

    value: float
    part: ErrorPart
    units_a: int
    """Values of A in blocks that have values of B, too."""
    units_b: int


def mean_difference_within_blocks(a: Blocked, b: Blocked) -> BlockedDifference | None:
    """The least-squares difference of the additive model value = side + block + rest, with the error of its residuals.

    Block k counts with n·m ÷ (n + m), and the residuals have one degree of freedom for each value less those of the blocks and the
    side (two-way analysis of variance, Scheffé 1959, chapter 4). None where no block has both sides, or nothing is left to
    estimate the error from.
    """
    pairs = list(_pair_blocks(a, b))
    sizes = [(x.size, y.size) for x, y in pairs]
    freedom = sum(n + m - 1 for n, m in sizes) - 1
    if freedom < 1:
        return None
    weights = np.array([n * m / (n + m) for n, m in sizes])
    steps = np.array([y.mean() - x.mean() for x, y in pairs])
    value = float((weights * steps).sum() / weights.sum())
    within = sum(float(((side - side.mean()) ** 2).sum()) for pair in pairs for side in pair)
    rest = within + float((weights * (steps - value) ** 2).sum())
    error = math.sqrt(rest / freedom / float(weights.sum()))
    return BlockedDifference(
        value, ErrorPart(error, freedom), sum(n for n, _ in sizes), sum(m for _, m in sizes)
    )


def _pair_blocks(a: Blocked, b: Blocked) -> Iterator[tuple[Array, Array]]:
    """The values of both sides, block by block, of the blocks that have both."""
    for block in sorted({*a.blocks} & {*b.blocks}):
        yield a.within(block), b.within(block)


def _convolve_rank_sums(pairs: Sequence[tuple[Array, Array]]) -> Array:
    chances = np.ones(1)
    for x, y in pairs:
        cdf = rank_distributions.rank_sum_cdf(*sorted((x.size, y.size)))
        chances = np.convolve(chances, np.diff(cdf, prepend=0.0))
    return np.asarray(np.cumsum(chances))
