"""Chosen order statistics of all pairs of two samples, without writing the pairs down where there are too many.

The Hodges–Lehmann and Walsh estimates of `effect` and their intervals are order statistics of n·m differences or n(n+1)/2
averages. Up to a million pairs are written out and partitioned. Beyond that a limit is found by halving: how many
pairs lie below a limit takes one binary search for each value of one sample. A guess from a thinned sample saves most of
the halvings, and the last few pairs are written out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.stats.sample import Array

_WRITTEN_OUT = 1_000_000
_HALVINGS = 80
_GUESSED_FROM = 500
"""Values of each sample, evenly spread over its order, whose pairs tell roughly where a rank lies."""
_MARGIN = 0.006
"""How far off such a guess may be, as a share of all pairs."""


def differences_at(x: Array, y: Array, ranks: Sequence[int]) -> list[float]:
    """The values at these positions, from 0, among the sorted differences y - x of all pairs."""
    if x.size * y.size <= _WRITTEN_OUT:
        return _select_ranks(np.subtract.outer(y, x).ravel(), ranks)
    x, y = np.sort(x), np.sort(y)
    pairs = _Pairs(-x[::-1], -y, 1)
    guess = np.subtract.outer(_thin(y), _thin(x)).ravel()
    return pairs.at(ranks, x.size * y.size, guess, (float(y[0] - x[-1]), float(y[-1] - x[0])))


def walsh_averages_at(x: Array, ranks: Sequence[int]) -> list[float]:
    """The values at these positions, from 0, among the sorted averages of all pairs, each value with itself included."""
    total = x.size * (x.size + 1) // 2
    if total <= _WRITTEN_OUT:
        return _select_ranks(_walsh_averages(x), ranks)
    x = np.sort(x)
    pairs = _Pairs(x, -x, 2)
    return pairs.at(ranks, total, _walsh_averages(_thin(x)), (float(x[0]), float(x[-1])))


def _walsh_averages(x: Array) -> Array:
    first, second = np.triu_indices(x.size)
    return np.asarray((x[first] + x[second]) / 2)


def _thin(x: Array) -> Array:
    return x[:: max(1, x.size // _GUESSED_FROM)]


def _select_ranks(values: Array, ranks: Sequence[int]) -> list[float]:
    ordered = np.partition(values, sorted(set(ranks)))
    return [float(ordered[rank]) for rank in ranks]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of a row and a value, without a list of them.

    A pair is below a limit where value ≤ weight × limit + row. Since the values are sorted, counting the
    pairs below a limit takes one binary search for each row. The smallest limit with a given number of
    pairs below it is found by halving an interval until few pairs are left in it, which are then looked
    at one by one. This needs memory for the rows and values only, where a table of all pairs would need
    their product.
    """

    values: Array
    """Sorted."""
    rows: Array
    weight: int
    """1 for differences, 2 for averages, where values and rows are one sample and every pair is met twice."""
    counts: dict[float, int] = field(default_factory=dict)
    """How many pairs lie below the limits that were looked at."""

    def at(self, ranks: Sequence[int], total: int, guess: Array, ends: tuple[float, float]) -> list[float]:
        shares = [rank / total for rank in ranks]
        shares_to_try = [min(max(share + step, 0.0), 1.0) for share in shares for step in (-_MARGIN, _MARGIN)]
        for limit in _select_ranks(guess, [round(share * (guess.size - 1)) for share in shares_to_try]):
            self._count(limit)
        return [self._smallest(*ends, rank) for rank in ranks]

    def _count_below(self, limit: float) -> NDArray[np.intp]:
        """How many values each row has below the limit."""
        return np.searchsorted(self.values, self.weight * limit + self.rows, side="right")

    def _count(self, limit: float) -> int:
        if limit not in self.counts:
            self.counts[limit] = int(self._count_below(limit).sum())
        return self.counts[limit]

    def _is_beyond(self, rank: int, limit: float, count: int) -> bool:
        """Whether more than `rank` pairs lie below a limit."""
        if self.weight == 1:
            return count > rank
        return (count + int(np.searchsorted(self.values, limit, side="right"))) // 2 > rank

    def _smallest(self, low: float, high: float, rank: int) -> float:
        """Find the smallest limit with more than `rank` pairs below it, by halving.

        Counts of limits that were looked at before narrow the interval at no cost. Once few pairs are
        left in it, they are looked at one by one.
        """
        known = [(limit, self._is_beyond(rank, limit, count)) for limit, count in self.counts.items()]
        below = max((limit for limit, is_beyond in known if not is_beyond), default=low)
        beyond = min((limit for limit, is_beyond in known if is_beyond), default=high)
        for done in range(_HALVINGS):
            middle = low + (high - low) / 2
            if middle in (low, high):
                break
            is_beyond = middle >= beyond or (
                middle > below and self._is_beyond(rank, middle, self._count(middle))
            )
            low, high = (low, middle) if is_beyond else (middle, high)
            is_counted = low in self.counts and high in self.counts
            if is_counted and self.counts[high] - self.counts[low] <= 4 * self.rows.size:
                return self._smallest_between(low, high, rank, _HALVINGS - done - 1)
        return high

    def _smallest_between(self, low: float, high: float, rank: int, halvings: int) -> float:
        """The same over the pairs between two limits, which are written out."""
        start, stop = self._count_below(low), self._count_below(high)
        sizes = stop - start
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        values, rows = self.values[np.repeat(start, sizes) + within], np.repeat(self.rows, sizes)
        count = int(start.sum())
        for _ in range(halvings):
            middle = low + (high - low) / 2
            if middle in (low, high):
                break
            is_below = values <= self.weight * middle + rows
            number = int(np.count_nonzero(is_below))
            if self._is_beyond(rank, middle, count + number):
                high = middle
            else:
                low, count, is_below = middle, count + number, ~is_below
            values, rows = values[is_below], rows[is_below]
        return high
