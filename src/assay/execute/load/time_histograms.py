"""Histograms of times with few bins, as a chart shows them."""

from __future__ import annotations

import math

import numpy as np

from assay.model.load import TimeHistogram
from assay.stats.histogram import Histogram

_BINS = 40
_WIDE = 20.0
"""Times whose longest 0.1 % begin at more than so many times the shortest 1 % get a logarithmic scale."""
_SHORTEST = 1e-6


def time_histogram(times: Histogram) -> TimeHistogram | None:
    """Up to 40 bins from the shortest time to the P99.9; None where nothing was measured.

    The rest of the tail is counted beyond the last edge: one time of a minute would squeeze all others into the first bin.
    """
    if not times.n:
        return None
    low, high = times.least, times.quantile(0.999)
    short = max(times.quantile(0.01), _SHORTEST)
    is_log = high > _WIDE * short
    if is_log:
        low = max(low, _SHORTEST)
        edges = np.geomspace(min(low, high / 2), high, _BINS + 1)
    else:
        edges = np.linspace(*_with_some_width(low, high), _BINS + 1)
    counts, beyond = times.count_in_bins(edges)
    return TimeHistogram(tuple(edges.tolist()), tuple(counts.tolist()), beyond, is_log)


def _with_some_width(low: float, high: float) -> tuple[float, float]:
    """At least a sixth of the value: bins narrower than 0.4 % would show the buckets that times were counted in, not the times."""
    middle = (low + high) / 2
    half = max((high - low) / 2, middle / 12, _SHORTEST)
    return (low, high) if math.isclose(half, (high - low) / 2) else (max(0.0, middle - half), middle + half)
