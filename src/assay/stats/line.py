"""A straight line through points: slopes of drifts, and exponents of growth on logarithmic scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.means import t_quantile

_FEWEST = 3


@dataclass(frozen=True, slots=True)
class FittedLine:
    """With a 95 % interval of its slope."""

    slope: float
    low: float
    high: float
    level: float
    """At the middle of the points."""


def fitted(x: ArrayLike, y: ArrayLike) -> FittedLine | None:
    """Least squares with Student's interval; None with fewer than three points, or where all are at one x.

    Neighbours that are alike make the error look too small, so it grows by √((1 + r) / (1 − r)), r the lag-1 correlation of
    what the line leaves, in the order of the points given.

    >>> round(fitted([0, 1, 2, 3], [1.0, 3.1, 4.9, 7.0]).slope, 9)
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


def _half(left: np.ndarray[tuple[int], np.dtype[np.float64]], squares: float) -> float:
    freedom = left.size - 2
    total = float(left @ left)
    if total <= 0:
        return 0.0
    likeness = min(0.95, max(0.0, float(left[:-1] @ left[1:]) / total))
    error = math.sqrt(total / freedom / squares * (1 + likeness) / (1 - likeness))
    return t_quantile(0.975, freedom) * error


def growth_exponent(sizes: ArrayLike, values: ArrayLike) -> FittedLine | None:
    """The power of the size by which values grow: 1 where twice the size takes twice as long.

    >>> round(growth_exponent([1, 10, 100, 1000], [3.0, 30.0, 300.0, 3000.0]).slope, 9)
    1.0
    """
    across, up = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    kept = (across > 0) & (up > 0)
    return fitted(np.log(across[kept]), np.log(up[kept]))


def fairness(shares: ArrayLike) -> float | None:
    """Jain's index (1984): 1 where all got alike, 1/n where one of n got everything; None where nobody got anything.

    >>> fairness([5, 5, 5, 5]), fairness([8, 0, 0, 0])
    (1.0, 0.25)
    """
    got = np.asarray(shares, dtype=np.float64)
    squares = float(got @ got)
    return float(got.sum()) ** 2 / (got.size * squares) if squares > 0 else None
