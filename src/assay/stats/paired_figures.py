"""Figures of pairs with intervals, also of very few pairs: ratios, differences and levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.effect import Effect, compare_paired
from assay.stats.means import t_quantile, t_tail
from assay.stats.sample import Array, Scale, finite

_LEVELS = {"t of log ratios": "t of logarithms", "one pair": "one pair"}
FEWEST_RANKED = 6
"""Below this no result of signed ranks is significant at 95 %, so they have no interval."""


def ratio_of_pairs(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Effect | None:
    """B ÷ A, all of them positive: Walsh averages of log ratios, of two to five pairs Student's t of them.

    >>> found = ratio_of_pairs([1, 2, 4, 8], [2, 4, 8, 16])
    >>> round(found.value, 3), found.method
    (2.0, 't of log ratios')
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    whole = np.isfinite(first) & np.isfinite(second) & (first > 0) & (second > 0)
    first, second = first[whole], second[whole]
    if first.size >= FEWEST_RANKED:
        return compare_paired(first, second, level)
    return _compare_few_pairs(np.log(second) - np.log(first), Scale.RATIO, level, "t of log ratios")


def level_of(values: ArrayLike, level: float = 0.95) -> Effect | None:
    """The typical one of positive values, as `ratio_of_pairs` with 1 has it."""
    sample = finite(values)
    effect = ratio_of_pairs(np.ones(sample.size), sample, level)
    return effect and replace(effect, method=_LEVELS.get(effect.method, "Walsh averages of logarithms"))


def difference_of_pairs(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Effect | None:
    """B − A: Walsh averages of differences, of two to five pairs Student's t of them."""
    steps = finite(np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64))
    if steps.size >= FEWEST_RANKED:
        # Zeros keep it on the scale of differences.
        return compare_paired(np.zeros(steps.size), steps, level)
    return _compare_few_pairs(steps, Scale.DIFFERENCE, level, "t of differences")


def _compare_few_pairs(steps: Array, scale: Scale, level: float, method: str) -> Effect | None:
    """A single pair has a value and no interval."""
    if not steps.size:
        return None
    back: Callable[[float], float] = math.exp if scale is Scale.RATIO else float
    value = float(steps.mean())
    if steps.size == 1:
        ends = (0.0, math.inf) if scale is Scale.RATIO else (-math.inf, math.inf)
        return Effect(scale, back(value), *ends, 1.0, "one pair")
    error = float(steps.std(ddof=1)) / math.sqrt(steps.size)
    half = t_quantile((1 + level) / 2, steps.size - 1) * error
    p = 2 * t_tail(abs(value) / error, steps.size - 1) if error else float(value == 0)
    return Effect(scale, back(value), _safe(back, value - half), _safe(back, value + half), p, method)


def _safe(back: Callable[[float], float], value: float) -> float:
    try:
        return back(value)
    except OverflowError:
        return math.inf
