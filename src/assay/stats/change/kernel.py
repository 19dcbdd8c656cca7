"""Optimal partitioning of a series by a Gaussian kernel: the cuts that leave segments most alike within themselves.

A segment of m points costs m - (sum of k(x, y) over all its pairs) / m with k = exp(-gamma (x - y)²), and every cut
costs a penalty (Harchaoui and Cappé 2007; Arlot, Celisse and Harchaoui 2019). In one dimension the kernel matrix has
few dimensions that count, so each point becomes a short vector and the sum over pairs the squared length of a
difference of cumulated vectors: nothing of size n² is stored, and matrix products do nearly all the work.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from assay.stats.sample import Array
from assay.stats.selection import differences_at

SHORTEST = 4
"""Points of the shortest segment."""

_EXACT = 1e-4
_MOST_FEATURES = 64
_REACH = 4.0
"""Widths beyond which two points have nothing in common: k < 2e-7."""
_ROWS = 4 * SHORTEST
_PRODUCT = 200_000
"""Multiplications in a matrix product: few enough for BLAS to stay in this thread, where it is quickest."""
FINEST = 1e-9
_TOO_NEAR = np.triu(np.full((SHORTEST, SHORTEST - 1), np.inf))


def bandwidth(series: Array) -> float:
    """The median distance of two points, of two different ones where most are equal; 0 for a constant."""
    levels, counts = np.unique(series, return_counts=True)
    if levels.size < 2:
        return 0.0
    pairs, equal = (int((size * (size - 1) // 2).sum()) for size in (np.array(series.size), counts))
    skipped = equal if equal > pairs // 2 else 0
    middle = pairs + series.size + skipped + (pairs - skipped) // 2
    # Among the differences of all ordered pairs come first the negative ones and each point with itself.
    (distance,) = differences_at(series, series, [middle])
    return max(distance, FINEST * float(levels[-1] - levels[0]))


class Partition:
    """The partition of one series; the sums serve any number of penalties. `width` is gamma to the power of -1/2."""

    def __init__(self, series: Array, width: float | None = None) -> None:
        scale = bandwidth(series) if width is None else width
        can_be_cut = series.size >= 2 * SHORTEST and scale > 0
        self._sums = _compute_running_sums(series / scale) if can_be_cut else None

    def cuts(self, penalty: float) -> list[int]:
        """First points of all segments but the first, where these and the penalties cost least."""
        return [] if self._sums is None else _trace_cuts(_best_last_cuts(self._sums, penalty))


def _compute_running_sums(points: Array) -> Array:
    """Column t holds the sums over the first t points of their features, and of what the features leave out."""
    levels, place, counts = np.unique(points, return_inverse=True, return_counts=True)
    features, left_out = _features(levels, counts)
    sums = np.zeros((len(features) + 1, points.size + 1))
    np.cumsum(features[:, place], axis=1, out=sums[:-1, 1:])
    np.cumsum(left_out[place], out=sums[-1, 1:])
    return sums


def _features(levels: Array, counts: NDArray[np.intp]) -> tuple[Array, Array]:
    """Vectors whose products are the kernel, by pivoted Cholesky decomposition; and what is missing of k(x, x) = 1.

    A point far from all others is orthogonal to them, so it needs no feature; where there are more features than we
    take, the points with most neighbours come first.
    """
    below = np.concatenate(([0], np.cumsum(counts)))
    first, stop = (np.searchsorted(levels, levels + reach) for reach in (-_REACH, _REACH))
    near = below[stop] - below[first] - 1
    features = np.zeros((min(levels.size, _MOST_FEATURES), levels.size))
    missing = np.ones(levels.size)
    for row in range(features.shape[0]):
        pivot = int(np.argmax(missing * near))
        if missing[pivot] * near[pivot] < _EXACT:
            return features[:row], missing
        feature = np.exp(-np.square(levels - levels[pivot]))
        feature -= np.einsum("i,ij->j", features[:row, pivot], features[:row])
        feature /= math.sqrt(missing[pivot])
        features[row] = feature
        missing = np.maximum(missing - feature * feature, 0.0)
    return features, missing


def _best_last_cuts(sums: Array, penalty: float) -> NDArray[np.intp]:
    """For every prefix of the series, where its last segment starts in the cheapest partition.

    This is the dynamic programme of optimal partitioning (Jackson et al. 2005): the best partition of a prefix ends in some
    segment, and what comes before that is the best partition of a shorter prefix. Prefixes are worked on in blocks, so that
    the likeness of all their possible last segments is one matrix product.
    """
    n = sums.shape[1] - 1
    starts, ends = _sides(sums)
    costs = np.full(n + 1, np.inf)
    costs[0] = -penalty
    last = np.zeros(n + 1, dtype=np.intp)
    likenesses, scratch = np.empty((_ROWS, n + 1)), np.empty((SHORTEST, n + 1))
    shares = 1.0 / np.maximum(np.arange(n, -_ROWS - 1, -1, dtype=np.float64), 1.0)
    for first in range(SHORTEST, n + 1, _ROWS):
        block = ends[first : first + _ROWS]
        rows = likenesses[: len(block), : first + len(block)]
        width = max(1, _PRODUCT // block.size)
        for left in range(0, rows.shape[1], width):
            right = min(left + width, rows.shape[1])
            np.matmul(block, starts[:, left:right], out=rows[:, left:right])
        rows *= _by_length(shares, n - first, rows.shape)
        # A segment is no shorter than four points, so four ends can be judged before any becomes a start.
        for row in range(0, len(block), SHORTEST):
            _judge(first + row, rows[row : row + SHORTEST], scratch, costs, last, penalty)
    return last


def _judge(
    end: int, likenesses: Array, scratch: Array, costs: Array, last: NDArray[np.intp], penalty: float
) -> None:
    """Best starts for the ends from `end` on; `costs` counts from the length, so what is added is minus the likeness."""
    ends = slice(end, end + len(likenesses))
    totals = np.subtract(costs[:end], likenesses[:, :end], out=scratch[: len(likenesses), :end])
    totals[:, end - SHORTEST + 1 :] += _TOO_NEAR[: len(likenesses)]
    last[ends] = np.argmin(totals, axis=1)
    costs[ends] = totals[np.arange(len(likenesses)), last[ends]] + penalty


def _sides(sums: Array) -> tuple[Array, Array]:
    """Two matrices whose product is, for every end and start, |P_end - P_start|² plus what the features left out."""
    features, left_out = sums[:-1], sums[-1:]
    squares = np.square(features).sum(axis=0, keepdims=True)
    ones = np.ones_like(squares)
    starts = np.vstack((features, ones, squares - left_out))
    ends = np.vstack((-2.0 * features, squares + left_out, ones))
    return starts, np.ascontiguousarray(ends.T)


def _by_length(shares: Array, skipped: int, shape: tuple[int, ...]) -> Array:
    """1 / (end - start) for rows of ends and columns of starts, as a view of one row."""
    step = shares.strides[0]
    return np.lib.stride_tricks.as_strided(shares[skipped:], shape, (-step, step), writeable=False)


def _trace_cuts(last: NDArray[np.intp]) -> list[int]:
    cuts: list[int] = []
    end = last.size - 1
    while end > 0:
        end = int(last[end])
        cuts.append(end)
    return cuts[-2::-1]
