"""Rows of tables compared two by two, column by column: agents on the cases that they have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.stats.means import FEW_INFORMATIVE, sign_flip_p, t_tail
from assay.stats.sample import Array

HOPELESS = 0.2
"""From here on p values are not worked out."""
_CELLS = 2_000_000
"""Differences that are held at a time."""


@dataclass(frozen=True, slots=True)
class PairedRows:
    """Square tables over all pairs of rows."""

    gap: Array
    """How far the row is above the column, in the mean over tables of the mean over columns; NaN where they share none."""
    p: Array
    """Two-sided, not corrected for the number of pairs; 1 where they are too close or share too little."""


def compare_rows(tables: Sequence[Array], *, is_continuous: bool = False) -> PairedRows:
    """Differences between rows; each table counts alike, NaN is a column that a row does not have.

    Student's t with the degrees of freedom of Satterthwaite (1946) over tables; sign flips where fewer than 30
    columns differ, unless values are continuous. A table in which two rows share a single column says nothing of how these
    differ.
    """
    rows = tables[0].shape[0] if tables else 0
    gap, p = np.full((rows, rows), np.nan), np.ones((rows, rows))
    np.fill_diagonal(gap, 0.0)
    upper, lower = np.triu_indices(rows, 1)
    size = max(1, _CELLS // max((1, *(table.shape[1] for table in tables))))
    for start in range(0, upper.size, size):
        a, b = upper[start : start + size], lower[start : start + size]
        steps = [table[a] - table[b] for table in tables]
        block = _compare_steps(steps, is_continuous)
        gap[a, b], p[a, b] = block.gap, block.p
        gap[b, a], p[b, a] = -block.gap, block.p
    return PairedRows(gap, p)


def _compare_steps(steps: Sequence[Array], is_continuous: bool) -> PairedRows:
    """Of pairs, given their differences in each table."""
    moments = [_moments(step) for step in steps]
    usable, total, error2, moved = (
        np.sum([getattr(table, name) for table in moments], axis=0)
        for name in ("usable", "mean", "error2", "moved")
    )
    spread = np.sum([table.error2**2 / np.maximum(table.size - 1, 1) for table in moments], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, freedom, gap = np.abs(total) / np.sqrt(error2), error2**2 / spread, total / usable
    p = np.array([_student_p(*each) for each in zip(t, freedom, moved, strict=True)])
    for pair in [] if is_continuous else np.flatnonzero((moved < FEW_INFORMATIVE) & (p < HOPELESS)):
        p[pair] = sign_flip_p(_shares(steps, moments, int(pair)))
    return PairedRows(gap, np.minimum(p, 1.0))


@dataclass(frozen=True, slots=True)
class _Moments:
    """Of the differences in one table, for each pair; all 0 where fewer than two columns are shared."""

    usable: NDArray[np.bool_]
    size: NDArray[np.int64]
    mean: Array
    error2: Array
    moved: NDArray[np.int64]


def _moments(steps: Array) -> _Moments:
    there = ~np.isnan(steps)
    size = there.sum(axis=1)
    usable, count = size >= 2, np.maximum(size, 1)
    known = np.where(there, steps, 0.0)
    mean = known.sum(axis=1) / count
    squares = (np.where(there, steps - mean[:, None], 0.0) ** 2).sum(axis=1)
    error2 = squares / np.maximum(size - 1, 1) / count
    # Differences that are all alike leave a rounding error, which is no spread.
    error2[error2 <= (1e-7 * mean) ** 2] = 0.0
    return _Moments(usable, size, mean * usable, error2 * usable, (known != 0).sum(axis=1) * usable)


def _student_p(t: float, freedom: float, moved: int) -> float:
    """Where all differences are alike, that of so many of one kind."""
    # Student's tails are heavier than the normal ones, which take no time.
    if not moved or np.isnan(t) or math.erfc(t / math.sqrt(2)) > HOPELESS:
        return 1.0
    return float(2.0 ** (1 - moved)) if np.isinf(t) else 2 * t_tail(float(t), max(1, int(freedom)))


def _shares(steps: Sequence[Array], moments: Sequence[_Moments], pair: int) -> Array:
    """The differences of one pair that are not 0, weighted as in the gap."""
    largest = max(int(table.size[pair]) for table in moments)
    parts = [
        step[pair] * (largest / table.size[pair])
        for step, table in zip(steps, moments, strict=True)
        if table.usable[pair]
    ]
    whole = np.nan_to_num(np.concatenate(parts))
    return np.asarray(whole[whole != 0])
