"""Which values of a sample are outliers. They are labelled for reports and charts, never deleted from a result."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.sample import comparable_scale

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
    lower, upper = np.percentile(scaled, [25, 75])
    reach = FENCE * (upper - lower)
    # Where the middle half is one value, the fences would label everything else.
    is_beyond_fences = (reach > 0) & ((scaled < lower - reach) | (scaled > upper + reach))
    distances = np.abs(scaled - np.median(scaled))
    mad = np.median(distances)
    sigma = mad / 0.6745 if mad > 0 else 1.253314 * distances.mean()
    return np.asarray(is_beyond_fences | (distances > MODIFIED_Z * sigma))
