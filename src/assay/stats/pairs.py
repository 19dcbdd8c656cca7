"""Rows of tables compared two by two, column by column: agents on the cases that they have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from assay.stats.means import FEW_INFORMATIVE, sign_flip_p
from assay.stats.sample import Array
from assay.stats.student_tails import t_tails

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
    """Compare pairs, given their differences in each table."""
    moments = [_moments(step) for step in steps]
    usable, total, error2, moved = (
        np.sum([getattr(table, name) for table in moments], axis=0)
        for name in ("usable", "mean", "error2", "moved")
    )
    spread = np.sum([table.error2**2 / np.maximum(table.size - 1, 1) for table in moments], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, freedom, gap = np.abs(total) / np.sqrt(error2), error2**2 / spread, total / usable
    p = _student_ps(t, freedom, moved)
    if not is_continuous:
        few = np.flatnonzero((moved < FEW_INFORMATIVE) & (p < HOPELESS))
        p[few] = _sign_flip_ps(steps, moments, few)
    return PairedRows(gap, np.minimum(p, 1.0))


@dataclass(frozen=True, slots=True)
class _Moments:
    """Moments of the differences in one table, for each pair; all 0 where fewer than two columns are shared."""

    usable: NDArray[np.bool_]
    size: NDArray[np.int64]
    mean: Array
    error2: Array
    moved: NDArray[np.int64]


def _moments(steps: Array) -> _Moments:
    is_known = ~np.isnan(steps)
    size = is_known.sum(axis=1)
    usable, count = size >= 2, np.maximum(size, 1)
    known = np.where(is_known, steps, 0.0)
    mean = known.sum(axis=1) / count
    squares = (np.where(is_known, steps - mean[:, None], 0.0) ** 2).sum(axis=1)
    error2 = squares / np.maximum(size - 1, 1) / count
    # Differences that are all alike leave a rounding error, which is no spread.
    error2[error2 <= (1e-7 * mean) ** 2] = 0.0
    return _Moments(usable, size, mean * usable, error2 * usable, (known != 0).sum(axis=1) * usable)


def _student_ps(t: Array, freedom: Array, moved: NDArray[np.int64]) -> Array:
    """Where all differences are alike, that of so many of one kind."""
    p = np.ones(len(t))
    # Student's tails are heavier than the normal ones, which take no time.
    is_close = [math.erfc(statistic / math.sqrt(2)) <= HOPELESS for statistic in t.tolist()]
    chosen = (moved > 0) & np.array(is_close, dtype=np.bool_)
    alike = chosen & np.isinf(t)
    p[alike] = 2.0 ** (1 - moved[alike])
    usual = chosen & np.isfinite(t)
    p[usual] = 2 * t_tails(t[usual], np.maximum(1, freedom[usual].astype(np.int64)))
    return p


def _sign_flip_ps(
    steps: Sequence[Array], moments: Sequence[_Moments], pairs: NDArray[np.intp]
) -> list[float]:
    """By flipping signs; where all differences are one step up or down, once for so many steps with such a sum."""
    known = [np.nan_to_num(step[pairs]) for step in steps]
    are_units = np.logical_and.reduce([((step == 0) | (np.abs(step) == 1)).all(axis=1) for step in known])
    sizes = np.array([np.where(table.usable[pairs], table.size[pairs], 0) for table in moments])
    are_units &= ((sizes == 0) | (sizes == sizes.max(axis=0))).all(axis=0)
    used = [step * (size > 0)[:, None] for step, size in zip(known, sizes, strict=True)]
    number = np.sum([(step != 0).sum(axis=1) for step in used], axis=0)
    total = np.abs(np.sum([step.sum(axis=1) for step in used], axis=0)).astype(np.int64)
    return [
        _unit_flip_p(int(number[n]), int(total[n])) if is_unit else sign_flip_p(_shares(steps, moments, int(pair)))
        for n, (pair, is_unit) in enumerate(zip(pairs, are_units.tolist(), strict=True))
    ]  # fmt: skip


@cache
def _unit_flip_p(number: int, total: int) -> float:
    """`sign_flip_p` of so many differences of 1 or -1 with this sum; there are few such numbers."""
    return sign_flip_p(np.where(np.arange(number) < (number + total) // 2, 1.0, -1.0))


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
