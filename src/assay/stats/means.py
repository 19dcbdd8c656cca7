"""Paired differences of means, as of case scores: Student's t, and sign flips where there are too few for it."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.effect import Effect
from assay.stats.sample import Array, Scale

FEW_INFORMATIVE = 30
EXACT_FLIPS = 14
FLIPS = 20_000
MOST_STEPS = 50


def mean_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Effect | None:
    """Mean of b[i] − a[i] for shares between 0 and 1, with its t interval; p by sign flips when fewer than 30 pairs differ.

    None without two pairs. Where all differ by the same there is no error to be seen: the interval is then that of
    the pairs that may differ otherwise though none of these does (the rule of three).
    """
    steps = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    steps = steps[np.isfinite(steps)]
    if steps.size < 2:
        return None
    value = float(steps.mean())
    error = float(steps.std(ddof=1)) / math.sqrt(steps.size)
    half = t_quantile((1 + level) / 2, steps.size - 1) * error or 1 - (1 - level) ** (1 / steps.size)
    moved = steps[steps != 0]
    if moved.size < FEW_INFORMATIVE or not error:
        p, method = sign_flip_p(moved), "sign flips of case means"
    else:
        p, method = 2 * t_tail(abs(value) / error, steps.size - 1), "paired t of case means"
    low, high = max(-1.0, value - half), min(1.0, value + half)
    return Effect(Scale.DIFFERENCE, value, low, high, min(1.0, p), method)


def sign_flip_p(moved: Array) -> float:
    """Chance of a mean as far from 0 if every difference could as well have had the other sign."""
    n = moved.size
    if n == 0:
        return 1.0
    seen = abs(float(moved.sum())) - 1e-12
    if n <= EXACT_FLIPS:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float((np.abs(signs @ moved) >= seen).mean())
    signs = np.random.default_rng(n).choice((-1.0, 1.0), size=(FLIPS, n))
    return float((np.count_nonzero(np.abs(signs @ moved) >= seen) + 1) / (FLIPS + 1))


def t_quantile(share: float, freedom: int) -> float:
    """Student's t quantile; closed forms for 1 and 2 degrees, else the Cornish–Fisher expansion and Newton's steps.

    >>> round(t_quantile(0.975, 10), 4), round(t_quantile(0.975, 4), 4)
    (2.2281, 2.7764)
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) * math.sqrt(2 / (4 * share * (1 - share)))
    z = NormalDist().inv_cdf(share)
    v = freedom
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    for _ in range(MOST_STEPS):
        step = (t_tail(t, v) - (1 - share)) / _t_density(t, v)
        t += step
        if abs(step) < 1e-12 * t:
            break
    return t


def t_tail(t: float, freedom: int) -> float:
    """Chance of more than t (t ≥ 0), by the incomplete beta function."""
    return 0.5 * _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _t_density(t: float, v: int) -> float:
    scale = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
    return math.exp(scale - (v + 1) / 2 * math.log1p(t * t / v))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised, by Lentz's continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1 / max(abs(1 - (a + b) * x / (a + 1)), tiny) * math.copysign(1, 1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return result
