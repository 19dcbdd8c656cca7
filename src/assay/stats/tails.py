"""Intervals of high percentiles for values grouped in units, by resampling whole units.

A unit is what was replicated, such as a round or a process. Values of one unit are alike, so the interval of a P95 over all
values must come from resampling units, not values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.stats.resample import Resample
from assay.stats.sample import Array, comparable_scale, quantile, two_sided
from assay.stats.summary import percentile

if TYPE_CHECKING:
    from assay.stats.effect import Effect

BEYOND = 10
"""Values that must lie beyond a percentile before it is told."""
FEWEST_UNITS = 6
DRAWS = 1000

Units = NDArray[np.int64]


def is_enough(n: int, q: float) -> bool:
    """Whether so many values tell a percentile.

    >>> [is_enough(n, 95) for n in (199, 200)]
    [False, True]
    """
    return n * (100 - q) >= 100 * BEYOND


def compute_values_needed(q: float) -> int:
    """Values at which a percentile can be told."""
    return math.ceil(100 * BEYOND / (100 - q))


def tail_intervals(
    values: Array, units: Units, qs: Sequence[float], level: float = 0.95
) -> dict[float, tuple[float, float]]:
    """The interval of each percentile over all values.

    A percentile with fewer than ten values beyond it has none; with fewer than six units, no percentile has one.
    """
    supported = [q for q in qs if is_enough(values.size, q)]
    names = np.unique(units) if supported else units
    if not supported or names.size < FEWEST_UNITS:
        return {}
    if names.size == values.size:
        return {q: _order_statistics(values, q / 100, level) for q in supported}
    scaled, draws = comparable_scale(values), _resample(tuple(names.tolist()))
    rows = np.searchsorted(names, units)
    share = compute_outside_share(level, names.size)
    ends = {q: _compute_drawn_ends(draws, scaled.samples[0], rows, q, share) for q in supported}
    return {q: (scaled.back(low), scaled.back(high)) for q, (low, high) in ends.items()}


def _compute_drawn_ends(
    draws: Resample, values: Array, rows: NDArray[np.intp], q: float, share: float
) -> tuple[float, float]:
    """A drawn percentile is one of the values, and the true one lies between it and the next."""
    nearest = draws.quantiles(values, rows, q)
    next_one = draws.quantiles(values, rows, min(100.0, q + 100 / values.size))
    return float(np.quantile(nearest, share)), float(np.quantile(next_one, 1 - share))


def tail_effect(
    a: tuple[Array, Units], b: tuple[Array, Units], q: float, *, is_paired: bool, level: float = 0.95
) -> Effect | None:
    """B's percentile against A's; paired units, the same on both sides, are drawn together."""
    from assay.stats.effect import Effect
    from assay.stats.means import t_tail

    (first, units_a), (second, units_b) = a, b
    names_a, names_b = np.unique(units_a), np.unique(units_b)
    fewest = min(names_a.size, names_b.size)
    if fewest < FEWEST_UNITS or not (is_enough(first.size, q) and is_enough(second.size, q)):
        return None
    scaled = comparable_scale(first, second)
    x, y = scaled.samples
    draws_a = _resample(tuple(names_a.tolist()))
    draws_b = draws_a if is_paired else _resample(tuple(names_b.tolist()), "b")
    draws = draws_b.quantiles(y, np.searchsorted(names_b, units_b), q)
    draws = draws - draws_a.quantiles(x, np.searchsorted(names_a, units_a), q)
    value, share = percentile(y, q) - percentile(x, q), compute_outside_share(level, fewest)
    low, high = (float(np.quantile(draws, place)) for place in (share, 1 - share))
    ends = [scaled.back(number) for number in (value, min(low, value), max(high, value))]
    # p is that of the interval that just touches zero.
    beyond = min(np.count_nonzero(draws <= 0), np.count_nonzero(draws >= 0))
    tail = min(0.5, (float(beyond) + 0.5) / (draws.size + 1))
    p = min(1.0, 2 * t_tail(-quantile(tail) / _widening(fewest), fewest - 1))
    return Effect(scaled.scale, ends[0], ends[1], ends[2], p, f"bootstrap of P{q:g} over units")


@lru_cache(maxsize=8)
def _resample(names: tuple[int, ...], side: str = "") -> Resample:
    return Resample([f"{side}{name}" for name in names], DRAWS)


def _widening(units: int) -> float:
    """Drawing n units again shows a spread that is too small by (n − 1) / n."""
    return math.sqrt(units / (units - 1))


def compute_outside_share(level: float, units: int) -> float:
    """The share of draws beyond either end: of the normal, at Student's distance for so few units."""
    # Imported here, because estimates of few executions have no such intervals and are made sooner without it.
    from assay.stats.means import t_quantile

    return two_sided(t_quantile((1 + level) / 2, units - 1) * _widening(units)) / 2


def _order_statistics(values: Array, share: float, level: float) -> tuple[float, float]:
    """Where every value is a unit of its own: how many lie below a percentile is binomial (Conover 1999, section 3.2)."""
    n = values.size
    middle, reach = n * share - 0.5, quantile((1 + level) / 2) * math.sqrt(n * share * (1 - share))
    ranks = (math.floor(middle - reach), min(math.ceil(middle + reach), n - 1))
    ordered = np.partition(values, ranks)
    return float(ordered[ranks[0]]), float(ordered[ranks[1]])
