"""A straight line through points: slopes of drifts, and exponents of growth on logarithmic scales.

The slope is that of a line fitted to all points at once. It comes with an interval, because a slope
without one says nothing about whether there is a drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.means import t_quantile

Floats = NDArray[np.float64]
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class FittedLine:
    """With a 95 % interval of its slope."""

    slope: float
    low: float
    high: float
    level: float
    """At the middle of the points."""


def fit_line(x: ArrayLike, y: ArrayLike) -> FittedLine | None:
    """Least squares with Student's interval; None with fewer than three points, or where all are at one x.

    Neighbours that are alike make the error look too small, so it grows by √((1 + r) / (1 − r)), r the lag-1 correlation of
    what the line leaves, in the order of the points given.

    >>> round(fit_line([0, 1, 2, 3], [1.0, 3.1, 4.9, 7.0]).slope, 9)
    1.98
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    kept = np.isfinite(across) & np.isfinite(up)
    across, up = across[kept], up[kept]
    if across.size < _FEWEST:
        return None
    centred = across - across.mean()
    squares = float(centred @ centred)
    if squares <= 0:
        return None
    if up.min() == up.max():
        return FittedLine(0.0, 0.0, 0.0, float(up[0]))
    slope = float(centred @ up) / squares
    left = up - up.mean() - slope * centred
    half = _half(left, squares)
    return FittedLine(slope, slope - half, slope + half, float(up.mean()))


def _half(left: Floats, squares: float) -> float:
    freedom = left.size - 2
    total = float(left @ left)
    if total <= 0:
        return 0.0
    likeness = min(0.95, max(0.0, float(left[:-1] @ left[1:]) / total))
    error = math.sqrt(total / freedom / squares * (1 + likeness) / (1 - likeness))
    return t_quantile(0.975, freedom) * error


def growth_exponent(sizes: ArrayLike, values: ArrayLike) -> FittedLine | None:
    """The power k of the size by which values grow: 1 where twice the size takes twice as long.

    Fits a + b·sizeᵏ with a, b ≥ 0 by relative errors, as every input pays a fixed cost that hides the growth of small ones. The
    interval is that of the profile: every k whose sum of squares is not worse than the best by more than Student's t allows.
    Where the largest takes hardly longer than the smallest there is no power to find, and the slope of the logarithms is given.

    >>> round(growth_exponent([1, 10, 100, 1000], [3.0, 30.0, 300.0, 3000.0]).slope, 9)
    1.0
    >>> round(growth_exponent([1, 10, 100, 1000], [10 + 2e-3 * size**2 for size in (1, 10, 100, 1000)]).slope, 9)
    2.0
    """
    across, up = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    kept = (across > 0) & (up > 0) & np.isfinite(up)
    across, up = across[kept], up[kept]
    straight = fit_line(np.log(across), np.log(up))
    if straight is None or across.size <= _PARAMETERS:
        return straight
    smallest, largest = (np.median(up[across == size]) for size in (across.min(), across.max()))
    if largest <= _HARDLY * smallest:
        return straight
    squares = np.array([_compute_power_residual(across / across.max(), up, power) for power in _POWERS])
    freedom = across.size - _PARAMETERS
    best = int(squares.argmin())
    allowed = max(float(squares[best]), freedom * _RESOLUTION**2) * (
        1 + t_quantile(0.975, freedom) ** 2 / freedom
    )
    possible = _POWERS[squares <= allowed]
    return FittedLine(float(_POWERS[best]), float(possible.min()), float(possible.max()), straight.level)


_PARAMETERS = 3
_POWERS = np.round(np.arange(0.05, 4.001, 0.01), 2)
_RESOLUTION = 0.005
"""Relative error below which no measured time is known."""
_HARDLY = 1.5


def _compute_power_residual(sizes: Floats, values: Floats, power: float) -> float:
    """The sum of the squares of the relative errors of the best a + b·sizeᵏ for this k."""
    fixed, grown = 1 / values, sizes**power / values
    aa, ab, bb, a, b = fixed @ fixed, fixed @ grown, grown @ grown, fixed.sum(), grown.sum()
    determinant = aa * bb - ab * ab
    cost = (a * bb - b * ab) / determinant if determinant > 0 else 0.0
    rate = (b * aa - a * ab) / determinant if determinant > 0 else b / bb
    if cost < 0:
        cost, rate = 0.0, b / bb
    elif rate < 0:
        cost, rate = a / aa, 0.0
    errors = cost * fixed + rate * grown - 1
    return float(errors @ errors)


def fairness(shares: ArrayLike) -> float | None:
    """Jain's index (1984): 1 where all got alike, 1/n where one of n got everything; None where none got anything.

    >>> fairness([5, 5, 5, 5]), fairness([8, 0, 0, 0])
    (1.0, 0.25)
    """
    got = np.asarray(shares, dtype=np.float64)
    squares = float(got @ got)
    return float(got.sum()) ** 2 / (got.size * squares) if squares > 0 else None
