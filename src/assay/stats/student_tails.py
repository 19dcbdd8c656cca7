"""Student's tails for many values at once: what `means.t_tail` gives for each, bit by bit, in a twentieth of the time.

A leaderboard of 200 agents tests 20,000 pairs on every dimension, and most of that time would go into continued fractions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from assay.stats.sample import Array

_TINY = 1e-300
_CONVERGED = 1e-14
_MOST_TERMS = 300


def t_tails(t: Array, freedom: NDArray[np.int64]) -> Array:
    """Chance of more than each t (t ≥ 0) at its degrees of freedom, by the incomplete beta function.

    >>> t_tails(np.array([2.0, 1.0]), np.array([10, 3])).round(4).tolist()
    [0.0367, 0.1955]
    """
    with np.errstate(over="ignore"):
        x, a, b = freedom / (freedom + t * t), freedom / 2, np.full(len(t), 0.5)
    is_lower = x < (a + 1) / (a + b + 2)
    first, second = np.where(is_lower, a, b), np.where(is_lower, b, a)
    inside = (x > 0) & (x < 1)
    share = np.where(x >= 1, 1.0, 0.0)
    part = (
        _fronts(x[inside], a[inside])
        * _fractions(np.where(is_lower, x, 1 - x)[inside], first[inside], second[inside])
        / first[inside]
    )
    share[inside] = np.where(is_lower[inside], part, 1 - part)
    return np.asarray(0.5 * share)


def _fronts(x: Array, a: Array) -> Array:
    """By the functions of `math`, whose last digits differ from those of numpy."""
    scales = {
        shape: math.lgamma(shape + 0.5) - math.lgamma(shape) - math.lgamma(0.5) for shape in set(a.tolist())
    }
    return np.array(
        [
            math.exp(scales[shape] + shape * math.log(at) + 0.5 * math.log1p(-at))
            for at, shape in zip(x.tolist(), a.tolist(), strict=True)
        ]
    )


def _fractions(x: Array, a: Array, b: Array) -> Array:
    """Lentz's continued fractions, each until it converges; see `means.incomplete_beta`."""
    start = 1 - (a + b) * x / (a + 1)
    c, d = np.ones(len(x)), 1 / np.maximum(np.abs(start), _TINY) * np.copysign(1.0, start)
    result, left = d.copy(), np.arange(len(x))
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            result[left] *= c * d
        goes_on = np.abs(c * d - 1) >= _CONVERGED
        if not goes_on.any():
            break
        left = left[goes_on]
        x, a, b, c, d = (np.asarray(part[goes_on]) for part in (x, a, b, c, d))
    return result


def _nonzero(values: Array) -> Array:
    return np.where(values == 0, _TINY, values)
