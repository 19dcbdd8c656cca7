"""Estimates whose error has several sources, such as rounds of a run, cases and sessions of a machine.

The variances of the sources add up, each divided by the number of its own units. Many cases therefore do
not help against a machine that differs from session to session: the error stays above that of each single
source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from assay.stats.means import t_quantile, t_tail
from assay.stats.sample import Array

_SMALLEST_P, _LARGEST_P = 1e-12, 1 - 1e-9
_MOST_STEPS = 60
_CLOSE = 1e-10


@dataclass(frozen=True, slots=True)
class ErrorPart:
    """One source of error: the standard error that it gives the estimate, with its degrees of freedom."""

    error: float
    freedom: int


def half_width(parts: Sequence[ErrorPart], share: float = 0.975) -> float:
    """Half an interval around the estimate: the half widths of all parts, added in quadrature.

    Each part keeps its own degrees of freedom (Graybill and Wang 1980). Degrees of freedom of the sum (Satterthwaite)
    would be too many where the part with few of them happens to come out small.
    """
    return math.hypot(*(t_quantile(share, part.freedom) * part.error for part in parts if part.error))


def two_sided_p(value: float, parts: Sequence[ErrorPart]) -> float:
    """The level at which the interval of `half_width` just reaches 0."""
    known = [part for part in parts if part.error]
    if not known or not value:
        return 1.0 if not value else _SMALLEST_P
    if len(known) == 1:
        return max(_SMALLEST_P, 2 * t_tail(abs(value) / known[0].error, known[0].freedom))
    # The interval is at least as wide as that of each part, and at most as that of parts which are all as large as the largest.
    low, high = (
        max(2 * t_tail(abs(value) / (part.error * wider), part.freedom) for part in known)
        for wider in (1, math.sqrt(len(known)))
    )
    return max(_SMALLEST_P, _level_reaching(abs(value), known, (low, high)))


def _level_reaching(value: float, parts: Sequence[ErrorPart], ends: tuple[float, float]) -> float:
    """False position (Illinois) on the logarithm of the level, between two ends that bracket it."""
    low, high = (math.log(min(max(end, _SMALLEST_P), _LARGEST_P)) for end in ends)

    def excess(level: float) -> float:
        return math.log(half_width(parts, 1 - math.exp(level) / 2) / value)

    at_low, at_high = excess(low), excess(high)
    if at_low <= 0 or at_high >= 0:
        return math.exp(low if at_low <= 0 else high)
    middle, side = low, 0
    for _ in range(_MOST_STEPS):
        middle = low + (high - low) * at_low / (at_low - at_high)
        at_middle = excess(middle)
        if abs(at_middle) < _CLOSE:
            break
        # An end that stays twice counts half, or the other one would creep.
        if at_middle > 0:
            low, at_low, at_high, side = middle, at_middle, at_high / (2 if side > 0 else 1), 1
        else:
            high, at_high, at_low, side = middle, at_middle, at_low / (2 if side < 0 else 1), -1
    return math.exp(middle)


def combine_p(*ps: float) -> float:
    """p of one estimate from the p values that it has against each of several sources of error alone.

    Each p is turned into the standard error that a normal estimate would have; these are added in quadrature.
    """
    inverse = 0.0
    for p in ps:
        if p >= 1:
            return 1.0
        inverse += NormalDist().inv_cdf(max(p, 1e-300) / 2) ** -2
    return math.erfc(math.sqrt(0.5 / inverse))


@dataclass(frozen=True, slots=True)
class SampleCentre:
    """The middle of a sample, with its standard error."""

    value: float
    part: ErrorPart


def compute_trimmed_mean(values: Array) -> SampleCentre:
    """Without a quarter at each end (Tukey and McLaughlin 1963; the winsorised error of Yuen 1974).

    Of fewer than four values it is the mean; of one value, no error is known, which is 0 with 0 degrees of freedom.
    """
    ordered = np.sort(values)
    size = ordered.size
    cut = size // 4
    middle = ordered[cut : size - cut]
    if size < 2:
        return SampleCentre(float(middle.mean()), ErrorPart(0.0, 0))
    winsorised = np.concatenate(([middle[0]] * cut, middle, [middle[-1]] * cut))
    kept = middle.size
    error = math.sqrt(float(((winsorised - winsorised.mean()) ** 2).sum()) / (kept * (kept - 1)))
    return SampleCentre(float(middle.mean()), ErrorPart(error, kept - 1))


def compute_trimmed_means(values: Array, groups: NDArray[np.integer]) -> Array:
    """The trimmed mean of each group; groups are numbered from 0 and none is empty."""
    sizes = np.bincount(groups)
    ends = np.cumsum(sizes)
    grouped = values[np.argsort(groups, kind="stable")]
    for begin, end in zip(ends - sizes, ends, strict=True):
        grouped[begin:end].sort()
    sums = np.concatenate(([0.0], np.cumsum(grouped)))
    first, last = ends - sizes + sizes // 4, ends - sizes // 4
    return np.asarray((sums[last] - sums[first]) / (last - first))


@dataclass(frozen=True, slots=True)
class PairErrors:
    """Square tables over all pairs of rows: standard error of the difference of their means; NaN where unknown."""

    error: Array
    freedom: Array


def layout_errors(table: Array) -> PairErrors:
    """Return the errors of rows measured in the same columns (agents in rounds), from the residuals of the two-way layout.

    The residual variance is pooled over all rows, because three columns alone give a pair of rows two degrees of freedom.
    Rows may be unequally noisy: a pair's variance is at least that of its own two rows, and the degrees of freedom fall as
    that exceeds the pooled one. Of two rows it is the paired t.
    """
    rows, columns = table.shape
    left = table - table.mean(axis=1, keepdims=True)
    left -= left.mean(axis=0)
    of_row = (left**2).sum(axis=1) / ((columns - 1) * (1 - 1 / rows))
    pooled = 2 * float(of_row.mean())
    variance = np.maximum(of_row[:, None] + of_row[None, :], pooled)
    excess = variance / pooled if pooled else np.ones_like(variance)
    freedom = np.maximum(columns - 1, (rows - 1) * (columns - 1) / excess)
    return PairErrors(np.sqrt(variance / columns), np.floor(freedom))
