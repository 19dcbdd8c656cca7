"""Counts of positive values in buckets that are a thousandth wide, so that millions of values take little room.

Histograms of several processes or of several stretches of time are added up without loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.stats.sample import Array

Counts = NDArray[np.int32]

_PARTS = 1024
"""Buckets in each power of two."""
_LEAST = -30
"""Values below 2 to the power of this are counted as nothing: with seconds, a nanosecond."""
_MOST = 40
_BUCKETS = (_MOST - _LEAST) * _PARTS + 1
_FINER_BITS = 52 - 10
"""The bits of a number's 52 bits of fraction that do not matter within a bucket."""
_LEAST_BITS = (1022 + _LEAST) * _PARTS


@dataclass(frozen=True, slots=True)
class Histogram:
    """Sparse: only buckets that hold something. Values below 0 count as 0."""

    buckets: NDArray[np.int32]
    counts: Counts
    n: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    def quantile(self, share: float) -> float:
        """The value that this share of all values does not exceed; exact at both ends, elsewhere within a thousandth.

        >>> histogram(np.array([1.0, 2.0, 3.0])).quantile(1.0)
        3.0
        """
        if not self.n:
            return math.nan
        rank = min(max(1, math.ceil(share * self.n - 1e-9)), self.n)
        if rank in (1, self.n):
            return self.most if rank == self.n else self.least
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(min(max(_middle(int(self.buckets[place])), self.least), self.most))

    def curve(self) -> tuple[Array, Array]:
        """Values and the share of all that each is not exceeded by."""
        middles = np.array([_middle(int(bucket)) for bucket in self.buckets])
        return middles, np.cumsum(self.counts) / max(self.n, 1)

    def count_in_bins(self, edges: Array) -> tuple[NDArray[np.int64], int]:
        """How many values lie between each edge and the next, and how many beyond the last; those below the first are in the first bin.

        >>> histogram(np.array([1.0, 2.0, 2.1, 9.0])).count_in_bins(np.array([0.5, 1.5, 2.5]))
        (array([1, 2]), 1)
        """
        middles = np.array([_middle(int(bucket)) for bucket in self.buckets])
        middles = np.clip(middles, self.least, self.most) if self.n else middles
        places = np.maximum(np.searchsorted(edges, middles, side="left") - 1, 0)
        is_beyond = middles > edges[-1] * (1 + 1 / _PARTS)
        places = np.minimum(places, len(edges) - 2)
        counts = np.bincount(
            places[~is_beyond], self.counts[~is_beyond].astype(float), minlength=len(edges) - 1
        )
        return counts.astype(np.int64), int(self.counts[is_beyond].sum())


NOTHING = Histogram(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))


def histogram(values: Array) -> Histogram:
    values = values[np.isfinite(values)]
    if not values.size:
        return NOTHING
    # The exponent of a number and the first bits of its fraction stand side by side, and are its bucket.
    places = (values.view(np.int64) >> _FINER_BITS) - _LEAST_BITS
    places = np.where(places < _PARTS, 0, np.minimum(places, _BUCKETS - 1))
    buckets, counts = np.unique(places, return_counts=True)
    return Histogram(
        buckets.astype(np.int32),
        counts.astype(np.int32),
        int(values.size),
        float(values.sum()),
        float(values.min()),
        float(values.max()),
    )


def zeros(n: int) -> Histogram:
    """As `histogram` of so many values of 0, whatever their number.

    >>> zeros(3) == histogram(np.zeros(3)), zeros(0) is NOTHING
    (True, True)
    """
    if not n:
        return NOTHING
    return Histogram(np.zeros(1, dtype=np.int32), np.array([n], dtype=np.int32), n, 0.0, 0.0, 0.0)


def merge_histograms(parts: Iterable[Histogram]) -> Histogram:
    """All values of all parts in one."""
    filled = [part for part in parts if part.n]
    if len(filled) < 2:
        return filled[0] if filled else NOTHING
    buckets, places = np.unique(np.concatenate([part.buckets for part in filled]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([part.counts for part in filled])).astype(np.int32)
    return Histogram(
        buckets.astype(np.int32),
        counts,
        sum(part.n for part in filled),
        math.fsum(part.total for part in filled),
        min(part.least for part in filled),
        max(part.most for part in filled),
    )


def _middle(bucket: int) -> float:
    if bucket == 0:
        return 0.0
    exponent, part = divmod(bucket, _PARTS)
    return float(math.ldexp(0.5 + (part + 0.5) / (2 * _PARTS), exponent + _LEAST))
