"""Slow drift: a ramp that explains what would otherwise be a staircase of steps, or was too slow for any.

The cuts of `change.cuts` come in, and at most one ramp comes out. A memory leak or a growing table moves a level a little
with every version; the kernel approximates that by several steps in one direction, which never happened. For each such
staircase a ramp (level, straight line, level) is fitted by least absolute distances, and it replaces the steps where its
likelihood, with fewer parameters to pay for, is at least as good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.stats.change.cuts import LEAST_SHARE, LEAST_SIGMAS
from assay.stats.change.evidence import inflation, likeness, residuals
from assay.stats.means import t_tail
from assay.stats.sample import Array, quantile
from assay.stats.trend import trend

FEWEST_FOR_DRIFT = 16
"""Points below which a drift cannot be told from a step."""

LONGEST_STEP = 20
"""Points; in a history of 40 points or more, whatever takes fewer is a step."""

_LARGEST_P = 1e-4
_LARGEST_P_WITHIN = 0.5
_ROUNDS = 8
_MOST_STEPS = 12
_MOST_STAIRCASES = 128
_BLOCKS = 256
_PRICE = 1.25
_CORNER_PRICE = 0.75
_STEP_PRICE = 1.5
"""What a ramp, each of its corners within the history, and a step must gain in log likelihood, times ln n."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A level until `start`, another from `end` on, and a straight line between; replaces the cuts of a staircase."""

    start: int
    end: int
    """The last point of the drift."""
    before: float
    after: float
    low: float
    """Ends of the 95 % interval of after - before."""
    high: float
    p: float
    replaces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fit:
    start: int
    end: int
    before: float
    after: float
    misfit: float
    """Sum of the absolute distances from the line."""
    corners: int
    """How many of start and end lie within the series."""


def find_ramp(series: Array, cuts: Sequence[int], *, is_log: bool) -> Ramp | None:
    """The drift that replaces most steps; without steps, that of the whole series."""
    if series.size < FEWEST_FOR_DRIFT:
        return None
    if not cuts:
        return _fit_whole(series, is_log=is_log)
    longest_first = sorted(_staircases(series, cuts), key=len, reverse=True)[:_MOST_STAIRCASES]
    ramps = (_replace_staircase(series, list(edges)) for edges in longest_first)
    return next((ramp for ramp in ramps if ramp is not None), None)


def _staircases(series: Array, cuts: Sequence[int]) -> Iterator[Sequence[int]]:
    """Edges of neighbouring segments whose levels only rise or only fall."""
    edges = [0, *cuts, series.size]
    levels = [float(np.median(series[start:stop])) for start, stop in pairwise(edges)]
    signs = np.sign(np.diff(levels))
    for first in range(len(cuts)):
        for count in range(1, min(_MOST_STEPS, len(cuts) - first) + 1):
            if signs[first + count - 1] != signs[first]:
                break
            yield edges[first : first + count + 2]


def _replace_staircase(series: Array, edges: list[int]) -> Ramp | None:
    """The ramp that explains these points better than the steps between them, fewer parameters counted in its favour."""
    first, last = edges[0], edges[-1]
    span, cuts = series[first:last], [edge - first for edge in edges[1:-1]]
    steps = residuals(span, cuts)
    price = math.log(span.size) * inflation(likeness(steps))
    gains = [
        (_log_likelihood_gain(float(np.abs(steps).sum()), fit.misfit, span.size) - price * demand, fit)
        for fit in _fits(span, cuts, series.size)
        for demand in [_PRICE + _CORNER_PRICE * fit.corners - _STEP_PRICE * len(cuts)]
    ]
    best, fit = max(gains, key=lambda gain: gain[0], default=(-math.inf, None))
    if fit is None or best < 0:
        return None
    # The segments themselves must go the way of the steps between them, as far as they are part of the ramp.
    places = np.arange(fit.start, fit.end + 1)
    within = trend(span[places], np.searchsorted(cuts, places, "right"))
    if within is None or within.p > _LARGEST_P_WITHIN or within.rho * (fit.after - fit.before) <= 0:
        return None
    ramp = _with_certainty(span, fit, first, tuple(edges[1:-1]))
    return ramp if ramp.p <= _LARGEST_P else None


def _log_likelihood_gain(steps: float, ramp: float, n: int) -> float:
    """Return the gain of a ramp over steps, from their sums of absolute distances, to first order."""
    if ramp <= 0:
        return math.inf if steps > 0 else 0.0
    return n * (steps / ramp - 1)


def _fits(span: Array, cuts: list[int], n: int) -> Iterator[_Fit]:
    """Ramps that begin within the first segment and end within the last."""
    shortest = min(LONGEST_STEP, max(3 * FEWEST_FOR_DRIFT // 4, n // 2))
    for start in _quarters(0, cuts[0]):
        for stop in _quarters(cuts[-1], span.size):
            if stop - start >= shortest:
                yield _fit(span, start, stop)


def _quarters(low: int, high: int) -> list[int]:
    return sorted({low + (high - low) * quarter // 4 for quarter in range(5)})


def _fit(span: Array, start: int, stop: int) -> _Fit:
    """Least absolute distances, by least squares weighted anew each round."""
    slope = np.clip((np.arange(span.size) - start) / max(1, stop - 1 - start), 0.0, 1.0)
    tiny = max(1e-6 * float(np.ptp(span)), 1e-300)
    weights = np.ones(span.size)
    before = rise = 0.0
    for _ in range(_ROUNDS):
        total = weights.sum()
        centre, level = float(weights @ slope / total), float(weights @ span / total)
        away = slope - centre
        rise = float((weights * away) @ (span - level) / ((weights * away) @ away))
        before = level - rise * centre
        weights = 1.0 / np.maximum(np.abs(span - before - rise * slope), tiny)
    misfit = float(np.abs(span - before - rise * slope).sum())
    return _Fit(start, stop - 1, before, before + rise, misfit, (start > 0) + (stop < span.size))


def _fit_whole(series: Array, *, is_log: bool) -> Ramp | None:
    """The line through all points, where it is certain, large enough, and explains them better than any single step."""
    fit = _fit(series, 0, series.size)
    share = LEAST_SHARE * (1.0 if is_log else max(abs(fit.before), abs(fit.after)))
    sigma = 1.2533 * fit.misfit / series.size
    if abs(fit.after - fit.before) < max(share, LEAST_SIGMAS * sigma):
        return None
    ramp = _with_certainty(series, fit, 0, ())
    if ramp.p > _LARGEST_P:
        return None
    # Too few points on one side of a step leave it unproven, but do not make it a drift.
    points = _block_medians(series)[0]
    best_step = min(float(np.abs(residuals(points, [cut])).sum()) for cut in range(2, points.size - 1))
    return ramp if _fit(points, 0, points.size).misfit < best_step else None


def _with_certainty(span: Array, fit: _Fit, first: int, replaces: tuple[int, ...]) -> Ramp:
    low, high, p = _certainty(span[fit.start : fit.end + 1], fit.after - fit.before)
    return Ramp(first + fit.start, first + fit.end, fit.before, fit.after, low, high, p, replaces)


def _certainty(rising: Array, rise: float) -> tuple[float, float, float]:
    """Interval of the rise: Sen's (1968) slopes at the ranks of Kendall's test; p: Spearman's correlation by Student's t,
    which unlike Kendall's z has no upper limit in short series. Both pay for neighbours that are alike."""
    points, times = _block_medians(rising)
    n = points.size
    first, second = np.triu_indices(n, 1)
    slopes = np.sort((points[second] - points[first]) / (times[second] - times[first]))
    rest = points - np.median(slopes) * times
    # The line makes neighbours look less alike than they are, by about 1/n.
    raw = likeness(rest - np.median(rest))
    variance_inflation = inflation(min(0.95, raw + (1 + 4 * raw) / n) if raw > 0 else 0.0)
    reach = quantile(0.975) * math.sqrt(n * (n - 1) * (2 * n + 5) / 18 * variance_inflation)
    low, high = (round((slopes.size + sign * reach) / 2) for sign in (-1, 1))
    return (
        min(rise, float(slopes[max(0, low)])),
        max(rise, float(slopes[min(slopes.size - 1, high)])),
        _trend_p(points, variance_inflation),
    )


def _trend_p(points: Array, variance_inflation: float) -> float:
    """Never below the chance that all points are in order, which no statistic can be more certain than."""
    n, drift = points.size, trend(points)
    rho = 0.0 if drift is None else drift.rho
    t = abs(rho) * math.sqrt((n - 2) / max(1 - rho * rho, 1e-12) / variance_inflation)
    in_order = 2 * math.exp(-math.lgamma(n + 1))
    return min(1.0, max(2 * t_tail(t, n - 2), in_order))


def _block_medians(rising: Array) -> tuple[Array, Array]:
    """Points and their times from 0 to 1; of many points, medians of blocks."""
    blocks = np.array_split(np.arange(rising.size), min(_BLOCKS, rising.size))
    points = np.array([float(np.median(rising[block])) for block in blocks])
    return points, np.array([float(block.mean()) for block in blocks]) / (rising.size - 1)
