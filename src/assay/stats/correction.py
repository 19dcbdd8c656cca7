"""Corrections for many p values at once: a comparison of twenty metrics would otherwise find a change in one by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.sample import Array


def holm(p_values: ArrayLike) -> Array:
    """Corrected p values that keep the chance of any false alarm in the family (Holm 1979)."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    return _restore_order(np.minimum(stepped, 1.0), order)


def benjamini_hochberg(p_values: ArrayLike) -> Array:
    """q values: the share of false alarms among what is called a finding (Benjamini and Hochberg 1995)."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    return _restore_order(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def _restore_order(ordered: Array, order: NDArray[np.intp]) -> Array:
    result = np.empty_like(ordered)
    result[order] = ordered
    return result
