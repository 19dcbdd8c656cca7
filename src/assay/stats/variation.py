"""The coefficient of variation of values that come in units, with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assay.stats.resample import resample
from assay.stats.sample import Array
from assay.stats.tails import compute_outside_share

FEWEST_UNITS = 20
"""With fewer units, bootstrap intervals of a spread are too narrow to promise 95 %."""
DRAWS = 2000


def cv_interval(
    values: Array, units: NDArray[np.int64], level: float = 0.95
) -> tuple[float, float, float] | None:
    """Standard deviation over mean, and the ends of its bootstrap interval over units; None with fewer than twenty units.

    The ends are those of ln CV, whose draws lie more evenly around it, reflected (Davison and Hinkley 1997, section 5.2), and
    for so few units as Student's t asks for.
    """
    names, rows = np.unique(units, return_inverse=True)
    mean = float(values.mean()) if values.size else 0.0
    if names.size < FEWEST_UNITS or not mean:
        return None
    scaled = values / mean - 1
    columns = [
        np.bincount(rows, weights=column).astype(np.float64)
        for column in (np.ones(scaled.size), scaled, scaled**2)
    ]
    value = float(scaled.std(ddof=1))
    if not value:
        return 0.0, 0.0, 0.0
    counts, sums, squares = resample(tuple(map(str, names.tolist())), DRAWS).sums(*columns)
    variances = np.maximum(squares - sums**2 / counts, 0.0) / np.maximum(counts - 1, 1)
    drawn = np.log(np.maximum(np.sqrt(variances) / np.abs(1 + sums / counts), 1e-12))
    share = compute_outside_share(level, names.size)
    low, high = (float(np.quantile(drawn, place)) for place in (share, 1 - share))
    centre = np.log(value)
    return value, float(np.exp(2 * centre - high)), float(np.exp(2 * centre - low))
