"""The middle half of several results, and how far it would move with other cases (Agarwal et al. 2021).

A mean over benchmarks is swayed by one that all agents solve or none does; a median hears only one of them. The
interquartile mean leaves a quarter out at each end and hears the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.stats.resample import Resample
from assay.stats.sample import Array

DRAWS = 2000
_CLIPPED = (0.0, 1.0)


def interquartile_mean(values: Array) -> Array:
    """Over the last axis; a value that a quarter ends within counts by the part of it that is inside.

    >>> interquartile_mean(np.array([[0.0, 1.0, 2.0, 9.0], [4.0, 4.0, 6.0, 6.0]])).tolist()
    [1.5, 5.0]
    """
    number = values.shape[-1]
    edges = np.arange(number + 1) / number
    inside = np.clip(edges[1:], 0.25, 0.75) - np.clip(edges[:-1], 0.25, 0.75)
    weighted: Array = np.sort(values, axis=-1) @ (2 * inside)
    return weighted


def draw_interquartile_means(values: Array, marks: Sequence[Array], names: Sequence[Sequence[str]]) -> Array:
    """Interquartile means of each row of `values` when the cases of each column are drawn again; draws × rows.

    `marks` has a table for each column, with what every case of it says of every row. Rows share the draws, so that
    they can be compared in each; NaN is a case that a row does not have.
    """
    resamples = [Resample(of, DRAWS) for of in names]
    # Row by row: the draws of all rows at once would take gigabytes for many agents.
    rows = (
        [_draw(value, table[row], by) for value, table, by in zip(values[row], marks, resamples, strict=True)]
        for row in range(len(values))
    )
    return np.stack([interquartile_mean(np.stack(row, axis=-1)) for row in rows], axis=-1)


def _draw(value: float, cases: Array, resample: Resample) -> Array:
    """A value in every draw, which moves by as much as the mean of its cases does."""
    known = ~np.isnan(cases)
    number = int(known.sum())
    middle = float(cases[known].mean()) if number else 0.0
    means = resample.ratios(np.where(known, cases, 0.0), known.astype(np.float64), middle)
    # Draws of n cases spread by a little less than samples of n do.
    wider = np.sqrt(number / (number - 1)) if number > 1 else 1.0
    return np.clip(value + (means - middle) * wider, *_CLIPPED)
