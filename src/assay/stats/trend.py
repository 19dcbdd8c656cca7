"""Tests that depend on the order of values: drift and autocorrelation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.sample import Array, order_by_group, two_sided
from assay.stats.summary import percentile

_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Trend:
    """Spearman's correlation of value with order, its p value, and medians of the first and last third."""

    rho: float
    p: float
    first: float
    last: float


def autocorrelation(values: ArrayLike) -> float:
    """Lag 1, of ranks, so that one spike neither makes nor hides it; 0 for constants and fewer than three values."""
    sample = np.asarray(values, dtype=np.float64)
    ranks = _compute_centred_ranks(sample, _put_into_one_group(sample))
    total = float(ranks @ ranks)
    return float(ranks[:-1] @ ranks[1:]) / total if sample.size >= _FEWEST and total > 0 else 0.0


def trend(values: ArrayLike, groups: ArrayLike | None = None) -> Trend | None:
    """Drift of values with their order, pooled over groups (processes); None with fewer than three values.

    Within a group the covariance S of ranks and order has variance Σr²·Σt² / (n - 1) when the order is random (Kendall
    and Gibbons 1990), and groups add up. Neighbours that are alike make trends of nothing, so the variance grows by
    (1 + r) / (1 - r), r the lag-1 correlation of what remains after the trend (the first term of Hamed and Rao 1998).
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < _FEWEST:
        return None
    label = (
        _put_into_one_group(sample) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    )
    order = np.argsort(label, kind="stable")
    sample, label = sample[order], label[order]
    ranks, times = _compute_centred_ranks(sample, label), _compute_centred_times(label)
    z, rho = _compute_pooled_trend(ranks, times, label)
    # Times run from −1/2 to 1/2 of each group, so a third of it lies beyond 1/6 on either side.
    share = times / np.bincount(label)[label]
    first, last = percentile(sample[share <= -1 / 6], 50), percentile(sample[share >= 1 / 6], 50)
    return Trend(rho, two_sided(z), first, last)


def _compute_pooled_trend(ranks: Array, times: Array, label: NDArray[np.intp]) -> tuple[float, float]:
    covariance = np.bincount(label, ranks * times)
    ranks_squared, times_squared = np.bincount(label, ranks**2), np.bincount(label, times**2)
    variance = ranks_squared * times_squared / np.maximum(np.bincount(label) - 1, 1)
    total = float(variance.sum())
    if total == 0:
        return 0.0, 0.0
    slopes = covariance / np.maximum(times_squared, 0.5)
    likeness = _likeness(ranks - slopes[label] * times, label)
    z = float(covariance.sum()) / math.sqrt(total * (1 + likeness) / (1 - likeness))
    return z, float(covariance.sum() / np.sqrt(ranks_squared * times_squared).sum())


def _likeness(residuals: Array, label: NDArray[np.intp]) -> float:
    """Lag-1 correlation within groups, never negative; a fitted trend makes the raw one too small by about 2/n."""
    together = label[1:] == label[:-1]
    squares = float(residuals @ residuals)
    if squares == 0:
        return 0.0
    raw = float((residuals[1:] * residuals[:-1])[together].sum()) / squares
    longest = int(np.bincount(label).max())
    return min(max(0.0, raw + (1 + 4 * raw) / longest), 0.99) if raw > 0 else 0.0


def _compute_centred_times(label: NDArray[np.intp]) -> Array:
    counts = np.bincount(label)
    starts = np.cumsum(counts) - counts
    return np.asarray(np.arange(label.size) - starts[label] - (counts[label] - 1) / 2, dtype=np.float64)


def _compute_centred_ranks(sample: Array, label: NDArray[np.intp]) -> Array:
    """Ranks within each group, equal values sharing theirs, minus their mean; `label` is sorted."""
    order = order_by_group(sample, label)
    ordered, group = sample[order], label[order]
    starts_run = np.ones(sample.size, dtype=np.bool_)
    starts_run[1:] = (ordered[1:] != ordered[:-1]) | (group[1:] != group[:-1])
    run = np.cumsum(starts_run) - 1
    positions = _compute_centred_times(group)
    ranks = np.empty(sample.size)
    ranks[order] = (np.bincount(run, positions) / np.bincount(run))[run]
    return ranks


def _put_into_one_group(sample: Array) -> NDArray[np.intp]:
    return np.zeros(sample.size, dtype=np.intp)
