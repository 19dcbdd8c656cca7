"""Slow drift: a ramp that explains what would otherwise be a staircase of steps, or was too slow for any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.stats.change.cuts import LEAST_SHARE, LEAST_SIGMAS
from assay.stats.change.evidence import inflation, likeness, residuals
from assay.stats.sample import Array, quantile, two_sided
from assay.stats.trend import trend

SHORTEST_RAMP = 20
"""Points; what rises faster is a step."""

_LEAST_P = 1e-4
_LEAST_P_WITHIN = 0.5
_ROUNDS = 8
_MOST_STEPS = 12
_BLOCKS = 256


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


def find_ramp(series: Array, cuts: Sequence[int], *, is_log: bool) -> Ramp | None:
    """The drift that gains most over the steps it replaces; without steps, that of the whole series."""
    if series.size < 2 * SHORTEST_RAMP:
        return None
    if not cuts:
        return _of_whole(series, is_log=is_log)
    staircases = (_of_staircase(series, list(edges)) for edges in _staircases(series, cuts))
    won = [found for found in staircases if found is not None]
    return max(won, key=lambda found: found[0])[1] if won else None


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


def _of_staircase(series: Array, edges: list[int]) -> tuple[float, Ramp] | None:
    first, last = edges[0], edges[-1]
    span, cuts = series[first:last], [edge - first for edge in edges[1:-1]]
    if not _rises_within(span, cuts):
        return None
    fit = _best_fit(span, cuts)
    if fit is None or fit.misfit == 0:
        return None
    steps = residuals(span, cuts)
    unit = fit.misfit / span.size * inflation(likeness(steps))
    gain = (float(np.abs(steps).sum()) - fit.misfit) / unit
    if gain < (2.5 - 1.5 * len(cuts)) * math.log(span.size):
        return None
    ramp = _ramp(span, fit, first, tuple(edges[1:-1]))
    return (len(cuts), ramp) if ramp.p <= _LEAST_P else None


def _rises_within(span: Array, cuts: list[int]) -> bool:
    """Whether the segments themselves go the way of the steps between them."""
    found = trend(span, np.searchsorted(cuts, np.arange(span.size), "right"))
    way = float(np.median(span[cuts[-1] :]) - np.median(span[: cuts[0]]))
    return found is not None and found.p <= _LEAST_P_WITHIN and found.rho * way > 0


def _best_fit(span: Array, cuts: list[int]) -> _Fit | None:
    """Among ramps that begin within the first segment and end within the last."""
    corners = [
        (start, stop)
        for start in _quarters(0, cuts[0])
        for stop in _quarters(cuts[-1], span.size)
        if stop - start >= SHORTEST_RAMP
    ]
    return min((_fit(span, *corner) for corner in corners), key=lambda fit: fit.misfit, default=None)


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
    return _Fit(start, stop - 1, before, before + rise, misfit)


def _of_whole(series: Array, *, is_log: bool) -> Ramp | None:
    found = trend(series)
    if found is None or found.p > _LEAST_P:
        return None
    fit = _fit(series, 0, series.size)
    share = LEAST_SHARE * (1.0 if is_log else max(abs(fit.before), abs(fit.after)))
    sigma = 1.2533 * fit.misfit / series.size
    if abs(fit.after - fit.before) < max(share, LEAST_SIGMAS * sigma):
        return None
    return _ramp(series, fit, 0, ())


def _ramp(span: Array, fit: _Fit, first: int, replaces: tuple[int, ...]) -> Ramp:
    low, high, p = _certainty(span[fit.start : fit.end + 1], fit.after - fit.before)
    return Ramp(first + fit.start, first + fit.end, fit.before, fit.after, low, high, p, replaces)


def _certainty(rising: Array, rise: float) -> tuple[float, float, float]:
    """Interval of the rise, and p: Sen's (1968) slopes at the ranks of Kendall's test, with the variance of neighbours
    that are alike; of many points, medians of blocks."""
    blocks = np.array_split(np.arange(rising.size), min(_BLOCKS, rising.size))
    points = np.array([float(np.median(rising[block])) for block in blocks])
    times, n = np.array([float(block.mean()) for block in blocks]) / (rising.size - 1), len(blocks)
    first, second = np.triu_indices(n, 1)
    slopes = np.sort((points[second] - points[first]) / (times[second] - times[first]))
    rest = points - np.median(slopes) * times
    alike = inflation(likeness(rest - np.median(rest)))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18 * alike)
    reach = quantile(0.975) * deviation
    low, high = (round((slopes.size + sign * reach) / 2) for sign in (-1, 1))
    z = float(np.sign(slopes).sum()) / deviation
    return (
        min(rise, float(slopes[max(0, low)])),
        max(rise, float(slopes[min(slopes.size - 1, high)])),
        two_sided(z),
    )
