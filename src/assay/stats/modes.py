"""A hint that a sample has two modes rather than one.

Times of an agent with a cache, or of a server with two paths, gather around two values. Their median then describes
neither, so the analysis warns and names both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.outliers import outliers
from assay.stats.sample import Array, comparable_scale, finite
from assay.stats.summary import percentile

SMALLEST_SAMPLE = 30
SMALLEST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Modes:
    low: float
    high: float
    share_high: float
    separation: float
    """Distance of the two medians in standard deviations (from the MAD) of the sides."""


def two_modes(values: ArrayLike) -> Modes | None:
    """The two modes of a sample, or None when one is enough.

    The sorted values, as logarithms where possible, are split in two where the sum of squares within the sides is least
    (Otsu 1979), each side keeping a fifth; the sides are modes when their medians are far apart compared with their
    spread (Ashman, Bird and Zepf 1994). Cutting a normal, uniform or exponential sample in two yields 2.3 to 2.8; the
    limit of 4 + 80/n was set by simulation: single-peaked samples exceed it in about one case in a hundred at most.
    """
    sample = finite(values)
    # Outliers would make up the smaller side; where they are a fifth of the sample they are a mode themselves.
    is_outlier = outliers(sample)
    if is_outlier.sum() < SMALLEST_SHARE * sample.size:
        sample = sample[~is_outlier]
    sample = np.sort(sample)
    if sample.size < SMALLEST_SAMPLE or sample[0] == sample[-1]:
        return None
    (ordered,) = comparable_scale(sample).samples
    cut = _best_cut(ordered)
    low, high = ordered[:cut], ordered[cut:]
    spread = math.hypot(_sigma(low), _sigma(high)) / math.sqrt(2)
    distance = float(np.median(high) - np.median(low))
    separation = distance / spread if spread > 0 else (math.inf if distance > 0 else 0.0)
    if separation < 4 + 80 / sample.size:
        return None
    return Modes(
        percentile(sample[:cut], 50), percentile(sample[cut:], 50), 1 - cut / sample.size, separation
    )


def _best_cut(ordered: Array) -> int:
    """Size of the lower side; the split with the greatest variance between the sides."""
    centred = ordered - ordered.mean()
    margin = math.ceil(SMALLEST_SHARE * ordered.size)
    sizes = np.arange(margin, ordered.size - margin + 1)
    below = np.cumsum(centred)[sizes - 1]
    between = below**2 / sizes + below**2 / (ordered.size - sizes)
    return int(sizes[np.argmax(between)])


def _sigma(side: Array) -> float:
    return 1.4826 * float(np.median(np.abs(side - np.median(side))))
