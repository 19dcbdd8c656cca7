"""Bootstrap draws of the rows of a table, such as cases. Names and arrays in, arrays out."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_LIMITS = 256
MOST_ROWS = 500
"""Where there are more, groups of them drawn by lot are resampled instead: sums of those spread as widely."""

_STRIDE = 16
_BLOCK = 64
"""Draws that are worked on at a time, so that the steps in between take little memory. A multiple of the rows that BLAS takes
together: it then sums the rows of a block in the same order as it would those of all draws."""


@lru_cache(maxsize=4)
def resample(names: tuple[str, ...], draws: int) -> Resample:
    """Drawn once for tables of the same names, such as those of several agents on one benchmark."""
    return Resample(names, draws)


class Resample:
    """Bootstrap draws that are the same for every table whose rows have the same names.

    Results that are computed from the same draws are paired row by row, so a difference between two
    agents keeps what their cases have in common. The seed is derived from the names, so that a result
    does not change when it is computed again. Of very many rows, groups are drawn instead of single rows;
    which rows are in a group is chance.
    """

    def __init__(self, names: Sequence[str], draws: int) -> None:
        # The same names give the same draws, so that a result does not change when it is computed again.
        seed = int.from_bytes(sha256("\0".join(names).encode("utf-8", "replace")).digest()[:8], "big")
        chance = random.Random(seed)
        self._rows, size = len(names), min(len(names), MOST_ROWS)
        order = np.argsort(_draw_numbers(chance, self._rows), kind="stable")
        self._group = np.empty(self._rows, dtype=np.int64)
        self._group[order] = np.arange(self._rows) % max(size, 1)
        self._one_of_each = order[:size]
        # How often each row is in each draw: as small numbers, an eighth of the size of floats.
        self._weights = np.empty((draws, size), dtype=np.uint8)
        for block in self._blocks():
            rows = (_draw_numbers(chance, block.size) * np.uint64(size)) >> np.uint64(32)
            chosen = rows.astype(np.intp).reshape(block.shape) + size * np.arange(len(block))[:, None]
            block[:] = np.bincount(chosen.ravel(), minlength=block.size).reshape(block.shape)

    def _blocks(self) -> Iterator[NDArray[np.uint8]]:
        return (self._weights[first : first + _BLOCK] for first in range(0, len(self._weights), _BLOCK))

    def _weigh(self, groups: NDArray[Any]) -> Floats:
        """The sum of the groups in each draw; of a table, of each of its columns."""
        return np.concatenate([block.astype(np.float64) @ groups for block in self._blocks()])

    def sums(self, *columns: Floats) -> list[Floats]:
        """The sum of each column in each draw."""
        size = self._weights.shape[1]
        grouped = [np.bincount(self._group, weights=column, minlength=size) for column in columns]
        return [self._weigh(group) for group in grouped]

    def ratios(self, totals: Floats, counts: Floats, otherwise: float) -> Floats:
        """Σ totals ÷ Σ counts in each draw; `otherwise` where the counts are 0."""
        above, below = self.sums(totals, counts)
        return np.where(below > 0, above / np.where(below > 0, below, 1.0), otherwise)

    def medians(self, values: Floats) -> Floats:
        """The median in each draw, of the rows that have a value; with many rows, from one row of each group."""
        chosen = values[self._one_of_each]
        is_known = ~np.isnan(chosen)
        order = np.argsort(chosen[is_known], kind="stable")
        ordered = chosen[is_known][order]
        middle = float(np.nanmedian(values))
        if not len(ordered):
            return np.full(len(self._weights), middle)
        places = np.flatnonzero(is_known)[order]
        draws = np.concatenate(
            [
                _compute_weighted_medians(ordered, block[:, places].astype(np.float64))
                for block in self._blocks()
            ]
        )
        shrink = math.sqrt(len(self._one_of_each) / self._rows)
        spread = np.where(np.isnan(draws), 0.0, draws - float(np.median(ordered)))
        return middle + spread * shrink

    def quantiles(self, values: Floats, rows: NDArray[np.intp], q: float) -> Floats:
        """The q-th percentile in each draw of values of which each row has several: the first limit that it stays below.

        Limits are the values themselves, thinned where there are very many, from a place that no draw falls below.
        """
        start = max(0, math.floor(values.size * (1 - 4 * (1 - q / 100))) - 1)
        ordered = np.sort(np.partition(values, start)[start:])
        limits = ordered[:: -(-ordered.size // MOST_LIMITS)]
        size = self._weights.shape[1]
        place = np.searchsorted(limits, values) + (limits.size + 1) * self._group[rows]
        counts = np.bincount(place, minlength=size * (limits.size + 1)).reshape(size, -1)
        first = self._first_reaching(counts.cumsum(axis=1).astype(np.float64), q / 100)
        return np.asarray(np.append(limits, ordered[-1])[first], dtype=np.float64)

    def _first_reaching(self, running: Floats, share: float) -> NDArray[np.intp]:
        """In each draw the first column with this share of the last one, or the last; of running sums by group.

        Few columns first, then only those between them that a draw may stop at: sums of whole numbers are exact, so this is
        what all columns would give.
        """
        last = running.shape[1] - 1
        needed = share * (self._weigh(running[:, last]))[:, None]
        coarse = np.append(np.arange(_STRIDE - 1, last, _STRIDE), last)
        block = _first_true(self._weigh(running[:, coarse]) >= needed, coarse.size - 1)
        start = int(max(coarse[block.min()] - _STRIDE + 1, 0))
        stop = int(coarse[block.max()])
        fine = _first_true(self._weigh(running[:, start:stop]) >= needed, stop - start)
        return np.asarray(start + fine, dtype=np.intp)


def _draw_numbers(chance: random.Random, how_many: int) -> NDArray[np.uint64]:
    """Draw from 0 to 2³² - 1. Not with `numpy.random`, which only this would load in a process that rates a suite: 2.5 MB."""
    return np.frombuffer(chance.randbytes(4 * how_many), dtype="<u4").astype(np.uint64)


def _first_true(rows: NDArray[np.bool_], otherwise: int) -> NDArray[np.intp]:
    return np.asarray(np.where(rows.any(axis=1), rows.argmax(axis=1), otherwise), dtype=np.intp)


def _compute_weighted_medians(ordered: Floats, weights: Floats) -> Floats:
    """NaN in draws in which none of the values is."""
    running = weights.cumsum(axis=1)
    total = running[:, -1:]
    lower = ordered[(running > (total - 1) // 2).argmax(axis=1)]
    upper = ordered[(running > total // 2).argmax(axis=1)]
    return np.where(total[:, 0] > 0, (lower + upper) / 2, np.nan)
