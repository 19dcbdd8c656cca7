"""Rows of tables compared two by two by trimmed means: agents on the cases that they have in common, stragglers aside.

It is used for times, of which a few on each side are far off for reasons that have nothing to do with the agent. A quarter of the
differences is trimmed at each end, and the error of what remains comes from the winsorised variance. `pairs` does the same
with plain means, for scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from assay.stats.pairs import HOPELESS, PairedRows
from assay.stats.sample import Array
from assay.stats.student_tails import t_tails

_CELLS = 2_000_000
"""Differences that are held at a time."""


def compare_trimmed_rows(tables: Sequence[Array]) -> PairedRows:
    """As `pairs.compare_rows`, with the trimmed mean of the differences and Yuen's (1974) t in the place of Student's.

    Tables in which two rows share fewer than two columns do not count for them.
    """
    rows = tables[0].shape[0] if tables else 0
    gap, p = np.full((rows, rows), np.nan), np.ones((rows, rows))
    np.fill_diagonal(gap, 0.0)
    upper, lower = np.triu_indices(rows, 1)
    size = max(1, _CELLS // max((1, *(table.shape[1] for table in tables))))
    for start in range(0, upper.size, size):
        a, b = upper[start : start + size], lower[start : start + size]
        gap[a, b], p[a, b] = _compare([table[a] - table[b] for table in tables])
        gap[b, a], p[b, a] = -gap[a, b], p[a, b]
    return PairedRows(gap, p)


def _compare(steps: Sequence[Array]) -> tuple[Array, Array]:
    """Mean over tables, and p, of pairs given their differences in each table."""
    total, error2, spread, usable, columns = (np.zeros(len(steps[0])) for _ in range(5))
    for step in steps:
        value, variance, freedom, number = _trim(step)
        total += value
        error2 += variance
        spread += variance**2 / np.maximum(freedom, 1)
        usable += number > 1
        columns += number * (number > 1)
    gap = np.where(usable > 0, total / np.maximum(usable, 1), np.nan)
    return gap, np.where(usable > 0, _ps_of(total, error2, spread, columns), 1.0)


def _ps_of(total: Array, error2: Array, spread: Array, columns: Array) -> Array:
    """Two-sided, by Student's t; where all differences are alike, the chance of so many with the same sign."""
    p = np.ones(len(total))
    alike = (total != 0) & (spread == 0)
    p[alike] = 2.0 ** (1 - np.minimum(columns[alike], 1000))
    usual = np.flatnonzero((total != 0) & (spread != 0))
    t = np.abs(total[usual]) / np.sqrt(error2[usual])
    # Student's tails are heavier than the normal ones, which take no time.
    is_close = np.array(
        [math.erfc(statistic / math.sqrt(2)) <= HOPELESS for statistic in t.tolist()], dtype=np.bool_
    )
    usual, t = usual[is_close], t[is_close]
    freedom = np.maximum(1, (error2[usual] ** 2 / spread[usual]).astype(np.int64))
    p[usual] = 2 * t_tails(t, freedom)
    return p


def _trim(steps: Array) -> tuple[Array, Array, Array, Array]:
    """Return for each row: trimmed mean, its squared error, degrees of freedom, and columns; 0 with fewer than two columns."""
    number = (~np.isnan(steps)).sum(axis=1)
    if not steps.shape[1]:
        return np.zeros(len(steps)), np.zeros(len(steps)), np.zeros(len(steps)), number
    ordered = np.sort(steps, axis=1)
    centre = np.where(number > 0, np.nan_to_num(ordered[:, 0]), 0.0)
    known = np.nan_to_num(ordered - centre[:, None])
    zero = np.zeros((len(steps), 1))
    sums, squares = (np.hstack((zero, np.cumsum(x, axis=1))) for x in (known, known**2))
    row = np.arange(len(steps))
    cut = number // 4
    kept = np.maximum(number - 2 * cut, 1)
    last = np.maximum(number - cut, 1)
    inner = sums[row, last] - sums[row, cut]
    low, high = known[row, np.minimum(cut, last - 1)], known[row, last - 1]
    mean = (inner + cut * (low + high)) / np.maximum(number, 1)
    square = squares[row, last] - squares[row, cut] + cut * (low**2 + high**2)
    left = np.maximum(square - np.maximum(number, 1) * mean**2, 0.0)
    # Differences that are all alike leave a rounding error, which is no spread.
    left[left <= 1e-13 * square] = 0.0
    usable = number > 1
    error2 = np.where(usable, left / (kept * np.maximum(kept - 1, 1)), 0.0)
    return np.where(usable, centre + inner / kept, 0.0), error2, np.where(usable, kept - 1.0, 0.0), number
