"""Outliers are labelled, never deleted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.sample import Array, comparable_scale

FENCE = 1.5
MODIFIED_Z = 3.5


def outliers(values: ArrayLike) -> NDArray[np.bool_]:
    """Which values lie outside Tukey's fences or have a modified z above 3.5, on logarithms when all are positive.

    Tukey (1977): 1.5 interquartile ranges beyond the quartiles. Iglewicz and Hoaglin (1993): 0.6745 |x - median| / MAD;
    where more than half of the values are equal, the mean absolute deviation stands in for the MAD that is zero.
    """
    sample = np.asarray(values, dtype=np.float64).ravel()
    if sample.size < 3 or sample.min() == sample.max():
        return np.zeros(sample.size, dtype=np.bool_)
    (scaled,) = comparable_scale(sample).samples
    return np.asarray(_beyond_fences(scaled) | _far_from_median(scaled))


def _beyond_fences(values: Array) -> NDArray[np.bool_]:
    lower, upper = np.percentile(values, [25, 75])
    reach = FENCE * (upper - lower)
    if reach == 0:
        return np.zeros(values.size, dtype=np.bool_)
    return np.asarray((values < lower - reach) | (values > upper + reach))


def _far_from_median(values: Array) -> NDArray[np.bool_]:
    distances = np.abs(values - np.median(values))
    mad = np.median(distances)
    sigma = mad / 0.6745 if mad > 0 else 1.253314 * distances.mean()
    return np.asarray(distances > MODIFIED_Z * sigma)
