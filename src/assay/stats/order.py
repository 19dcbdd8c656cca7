"""The order-statistic interval of a median, in pure Python: a worker asks for it after every execution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

_ROUNDING = 1e-12


@lru_cache(maxsize=4096)
def median_ranks(n: int, level: float = 0.95) -> tuple[int, int] | None:
    """Positions, from 0, of the two sorted values that enclose the median; None when n is too small for the level.

    How many values lie below the median is binomial with chance one half, so the k-th smallest and largest, counted
    from 0, enclose it with probability P(k < X < n - k) (Conover 1999, section 3.2). That is summed outwards from the
    centre and reaches the level within about sqrt(n) terms: exact, and quick for any n.

    >>> median_ranks(5), median_ranks(6), median_ranks(10)
    (None, (0, 5), (1, 8))
    """
    k = (n - 1) // 2
    mass = 0.0 if n % 2 else _binomial(n, n // 2)
    term = _binomial(n, k)
    while k >= 0 and mass < level - _ROUNDING:
        mass += 2 * term
        term *= k / (n - k + 1)
        k -= 1
    return (k, n - 1 - k) if k >= 0 else None


def median_interval(sorted_values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """
    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    (1.0, 6.0)
    """
    ranks = median_ranks(len(sorted_values), level)
    return None if ranks is None else (sorted_values[ranks[0]], sorted_values[ranks[1]])


def _binomial(n: int, k: int) -> float:
    """Chance of k heads among n coins; by logarithms, since the coefficient alone overflows beyond n = 1029."""
    if k < 0:
        return 0.0
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
