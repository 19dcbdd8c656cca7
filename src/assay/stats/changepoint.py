"""Where a history shifts: one value a version in, the change points that stand, and a slow drift, out.

The recipe: logarithms where all values are positive; optimal partitioning with a Gaussian kernel, as wide as the noise
within segments; each cut put in its place by the levels around it; backward elimination of cuts that a rank test, or
autoregressive noise without any shift, explains as well, and of shifts too small to matter; steps that a ramp explains
better become a drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.stats.change.cuts import Cut, Progress, Sieve, ignore_progress, propose, refine_cuts
from assay.stats.change.evidence import compute_best_cut_p
from assay.stats.change.kernel import SHORTEST
from assay.stats.change.ramp import Ramp, find_ramp
from assay.stats.sample import Array, Scale, Scaled, comparable_scale, enlarge
from assay.stats.summary import percentile

FEWEST = 16
"""Points below which nothing is found: ranks of seven points beside eight are never clear enough for a step, and a drift
cannot be distinguished from a step."""
SETTLED = 5
"""Points that a new level needs to count as settled."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    index: int
    """The first point of the new level."""
    before: float
    after: float
    """Medians of all points from the change before, and up to the next."""
    change: float | None
    """after ÷ before - 1; see `relative_change` for levels that are not positive."""
    p_value: float
    """Pays for the search over all places."""
    is_pending: bool
    """Younger than five points: more may take it back."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow way from one level to another, instead of steps that never happened."""

    start: int
    end: int
    """First and last point of the drift."""
    before: float
    after: float
    change: float | None
    """In total, like that of a change point."""
    low: float | None
    high: float | None
    """Its 95 % interval."""
    p_value: float


@dataclass(frozen=True, slots=True)
class History:
    change_points: tuple[ChangePoint, ...]
    drift: Drift | None
    n: int
    reason: str = ""
    """Why nothing can be found, where that is so."""


def detect(values: Sequence[float], report: Progress = ignore_progress) -> History:
    """Change points and slow drift of a history; raises ValueError at the first value that is not a finite number.

    >>> found = detect([10.0, 10.2, 9.9, 10.1, 10.0, 9.8, 10.1, 9.9, 10.0, 10.1] + [12.0, 12.1, 11.9, 12.2, 12.0] * 2)
    >>> [(point.index, point.before, point.after) for point in found.change_points]
    [(10, 10.0, 12.0)]
    """
    series = _check_series(values)
    if series.size < FEWEST:
        return History(
            (),
            None,
            series.size,
            f"{series.size} point{'s' * (series.size != 1)}, but at least {FEWEST} are needed",
        )
    scaled = comparable_scale(series)
    (points,) = scaled.samples
    is_log = scaled.scale is Scale.RATIO
    cuts = Sieve(points, refine_cuts(points, propose(points, report)), is_log=is_log).sift()
    ramp = find_ramp(points, [cut.place for cut in cuts], is_log=is_log)
    steps = [cut for cut in cuts if ramp is None or cut.place not in ramp.replaces]
    return History(_change_points(series, steps), _drift(ramp, scaled), series.size)


def relative_change(before: float, after: float) -> float | None:
    """after ÷ before - 1 of two positive levels; otherwise the difference in units of the larger level, so -2 to 2.

    >>> relative_change(4.0, 5.0), relative_change(0.0, 5.0), relative_change(-2.0, -1.0), relative_change(0.0, 0.0)
    (0.25, 1.0, 0.5, None)
    """
    if before > 0 and after > 0:
        ratio = after / before
        return ratio - 1 if math.isfinite(ratio) else None
    largest = max(abs(before), abs(after))
    return after / largest - before / largest if largest > 0 else None


def _check_series(values: Sequence[float]) -> Array:
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1:
        raise ValueError("A history is a flat list of numbers.")
    faults = np.flatnonzero(~np.isfinite(series))
    if faults.size:
        raise ValueError(f"The value at position {faults[0]} is {series[faults[0]]}, not a finite number.")
    return series


def _change_points(series: Array, cuts: Sequence[Cut]) -> tuple[ChangePoint, ...]:
    edges = [0, *(cut.place for cut in cuts), series.size]
    levels = [percentile(series[start:stop], 50) for start, stop in pairwise(edges)]
    return tuple(
        ChangePoint(
            index=cut.place,
            before=before,
            after=after,
            change=relative_change(before, after),
            p_value=compute_best_cut_p(cut.z, cut.evidence.before + cut.evidence.after, SHORTEST),
            is_pending=series.size - cut.place < SETTLED,
        )
        for cut, (before, after) in zip(cuts, pairwise(levels), strict=True)
    )


def _drift(ramp: Ramp | None, scaled: Scaled) -> Drift | None:
    if ramp is None:
        return None
    is_log = scaled.scale is Scale.RATIO
    before, after = (
        scaled.back(level) if is_log else enlarge(level, scaled.exponent)
        for level in (ramp.before, ramp.after)
    )
    low, high = (_share(rise, scaled, before, after) for rise in (ramp.low, ramp.high))
    return Drift(ramp.start, ramp.end, before, after, relative_change(before, after), low, high, ramp.p)


def _share(rise: float, scaled: Scaled, before: float, after: float) -> float | None:
    """An end of the interval of a drift, in the unit of its change."""
    if scaled.scale is Scale.RATIO:
        return scaled.back(rise) - 1
    unit = before if before > 0 and after > 0 else max(abs(before), abs(after))
    share = scaled.back(rise) / unit if unit > 0 else math.inf
    return share if math.isfinite(share) else None
