"""The level at which a growing quantity reaches 1, from noisy measurements of it at chosen levels.

Near the crossing the logarithm of the quantity's mean is taken to be a line over the logarithm of the level: a log-linear
model, fitted by quasi-likelihood (R. W. M. Wedderburn, Biometrika 61, 1974), whose dispersion is that of the measurements. Where
the quantity jumps instead, all that is known is between which two levels: isotonic regression (M. Ayer et al., Annals of
Mathematical Statistics 26, 1955) finds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.stats.means import t_quantile

_NEAR = 0.3
"""Logarithms of levels: the line is fitted to measurements so near to the crossing."""
_SLOPE, _SLOPE_SPREAD = 20.0, 20.0
"""What is expected of the line before anything was measured, and how little that is known."""
_LEAST_SLOPE, _MOST_SLOPE = 3.0, 80.0
_STEPS = 50
_LITTLE = 0.2
_FARTHEST = 0.3
_SHIFT = 0.1

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LevelMeasurement:
    level: float
    value: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the curve reaches 1, with its 95 % interval; an end is None where nothing was measured beyond it."""

    level: float
    low: float | None
    high: float | None
    below: float | None
    """The next level below that was measured and lies below 1, and the next above that does not."""
    above: float | None


def find_crossing(points: Sequence[LevelMeasurement]) -> Crossing:
    ordered = sorted(points, key=lambda point: point.level)
    levels = np.log([point.level for point in ordered])
    values = np.array([point.value for point in ordered])
    weights = np.array([point.weight for point in ordered])
    fitted = isotonic(values, weights)
    under, over = levels[fitted < 1], levels[fitted >= 1]
    below = float(under.max()) if under.size else None
    above = float(over.min()) if over.size else None
    at, half = _fit(levels, values, weights, _middle(below, above))
    if below is None or above is None:
        at = _middle(below, above)
    elif np.all(values[levels <= below] < 1) and np.all(values[levels >= above] >= 1):
        # No measurement speaks against it: the crossing lies in between.
        at = min(max(at, below), above)
        is_jump = np.all((values <= _LITTLE) | (values >= 1 / _LITTLE))
        at, half = (_middle(below, above), 0.0) if is_jump else (at, half)
    low = min(at - half, at if below is None else below)
    high = max(at + half, at if above is None else above)
    return Crossing(
        level=math.exp(at),
        low=None if below is None else math.exp(low),
        high=None if above is None else math.exp(high),
        below=None if below is None else math.exp(below),
        above=None if above is None else math.exp(above),
    )


def _middle(below: float | None, above: float | None) -> float:
    ends = [end for end in (below, above) if end is not None]
    return sum(ends) / len(ends)


def _fit(levels: Floats, values: Floats, weights: Floats, middle: float) -> tuple[float, float]:
    """Where the line through the logarithm of the mean reaches 0, and half of that place's 95 % interval."""
    near = np.abs(levels - middle) <= _NEAR
    x, y = levels[near] - middle, values[near]
    share = weights[near] / weights[near].mean()
    rows = np.stack([np.ones_like(x), x], axis=1)
    line = np.array([0.0, _SLOPE])
    for _ in range(_STEPS):
        mean = np.exp(np.clip(rows @ line, -6.0, 4.0))
        gradient = rows.T @ (share * (y - mean))
        gradient[1] -= (line[1] - _SLOPE) / _SLOPE_SPREAD**2
        curvature = (rows.T * (share * mean)) @ rows + np.diag([1e-6, 1 / _SLOPE_SPREAD**2])
        step = np.clip(np.linalg.solve(curvature, gradient), [-0.5, -5.0], [0.5, 5.0])
        line = line + step
        line[1] = min(max(line[1], _LEAST_SLOPE), _MOST_SLOPE)
        if np.abs(step).max() < 1e-6:
            break
    off = float(np.clip(-line[0] / line[1], -_FARTHEST, _FARTHEST))
    freedom = max(1, x.size - 2)
    dispersion = float(np.sum(share * (y - mean) ** 2 / np.maximum(mean, _SHIFT))) / freedom
    covariance = np.linalg.inv(curvature) * max(dispersion, _SHIFT)
    along = np.array([1.0, off])
    error = math.sqrt(max(0.0, float(along @ covariance @ along))) / line[1]
    return middle + off, min(_FARTHEST, t_quantile(0.975, freedom) * error)


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The growing sequence that is nearest to the values.

    >>> isotonic(np.array([1.0, 3.0, 2.0]), np.ones(3)).tolist()
    [1.0, 2.5, 2.5]
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = value, weight, 1
        while blocks and blocks[-1][0] > block[0]:
            before, heavy, number = blocks.pop()
            whole = heavy + block[1]
            block = (before * heavy + block[0] * block[1]) / whole, whole, number + block[2]
        blocks.append(block)
    return np.repeat([value for value, _, _ in blocks], [number for _, _, number in blocks])
