"""The coefficient of variation of values that come in units, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.stats.resample import resample
from assay.stats.sample import Array
from assay.stats.tails import Units, compute_outside_share

FEWEST_UNITS = 20
"""With fewer units, bootstrap intervals of a spread are too narrow to promise 95 %."""
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Variation:
    """A coefficient of variation; without ends where there are too few units for an interval."""

    value: float
    low: float | None = None
    high: float | None = None


def estimate_variation(
    values: Array, units: Units, groups: Units | None = None, level: float = 0.95
) -> Variation | None:
    """Standard deviation over mean, and the ends of its bootstrap interval over units, of which there must be twenty.

    With groups it is that within them, pooled over all k: √(Σ (x ÷ mean of its group − 1)² ÷ (n − k)), so that groups may differ
    as they like. None where no group has two values, or where a mean is 0.

    The ends are those of ln CV, whose draws lie more evenly around it, reflected (Davison and Hinkley 1997, section 5.2), and
    for so few units as Student's t asks for. Draws are of what the means of the groups leave, made larger for the means that
    were estimated (section 6.2), and so is their spread.
    """
    _, members = np.unique(np.zeros_like(units) if groups is None else groups, return_inverse=True)
    sizes = np.bincount(members)
    means = np.bincount(members, weights=values) / sizes
    free = values.size - sizes.size
    if free < 1 or not means.all():
        return None
    stretch = np.sqrt((values.size - 1) / free)
    scaled = (values / means[members] - 1) * stretch
    value = float(scaled.std(ddof=1))
    names, rows = np.unique(units, return_inverse=True)
    if names.size < FEWEST_UNITS:
        return Variation(value)
    if not value:
        return Variation(0.0, 0.0, 0.0)
    columns = [
        np.bincount(rows, weights=column).astype(np.float64)
        for column in (np.ones(scaled.size), scaled, scaled**2)
    ]
    counts, sums, squares = resample(tuple(map(str, names.tolist())), DRAWS).sums(*columns)
    variances = np.maximum(squares - sums**2 / counts, 0.0) / np.maximum(counts - 1, 1)
    draws = np.log(np.maximum(np.sqrt(variances) / np.abs(1 + sums / counts), 1e-12))
    share = compute_outside_share(level, names.size)
    centre = np.log(value)
    low, high = (centre + stretch * (centre - np.quantile(draws, end)) for end in (1 - share, share))
    return Variation(value, float(np.exp(low)), float(np.exp(high)))
