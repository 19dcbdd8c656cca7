"""What speaks for a cut: the ranks of the points on both sides, the distance of their levels, the noise
around them.

The evidence is gathered on a window on both sides of the cut, since points far away say little about
whether the level changed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.stats.sample import Array

WINDOW = 60
"""Points a side that a cut is judged by: enough to be sure, few enough for what lies far back not to matter."""

_SIGMA = 1.4826
_TAME = 3.0
_MOST_ALIKE = 0.95


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of the points nearest to a cut, at most `WINDOW` a side."""

    z: float
    """z of the rank sum, corrected for ties; positive when the later points are larger."""
    shift: float
    """Median of the differences of a later point and an earlier one (Hodges and Lehmann 1963)."""
    sigma: float
    """Noise around the two levels, from the median absolute deviation."""
    gain: float
    """Twice the gain in log likelihood of a shift over none, where neighbours may be alike in both."""
    level: float
    """The larger of the two levels in size."""
    before: int
    after: int

    @property
    def distance(self) -> float:
        """The shift in standard errors; unlike z it has no upper limit when the sides are short."""
        error = self.sigma * math.sqrt(1 / self.before + 1 / self.after)
        return abs(self.shift) / error if error > 0 else math.inf

    @property
    def is_apart(self) -> bool:
        """Whether every later point lies beyond every earlier one, so that z is as large as it can be."""
        pairs = self.before * self.after
        return abs(self.z) >= 0.999 * math.sqrt(3 * pairs / (self.before + self.after + 1))


def evidence(series: Array, start: int, cut: int, stop: int) -> Evidence:
    """Weigh the evidence for a cut between the segments that begin at `start` and end before `stop`."""
    before, after = series[max(start, cut - WINDOW) : cut], series[cut : min(stop, cut + WINDOW)]
    levels = [float(np.median(side)) for side in (before, after)]
    rest = np.concatenate((before - levels[0], after - levels[1]))
    sigma = _SIGMA * float(np.median(np.abs(rest)))
    return Evidence(
        z=rank_sum_z(before, after),
        shift=float(np.median(np.subtract.outer(after, before))),
        sigma=sigma,
        gain=_gain(np.clip(rest, -_TAME * sigma, _TAME * sigma), before.size, levels[1] - levels[0]),
        level=max(map(abs, levels)),
        before=before.size,
        after=after.size,
    )


def _gain(rest: Array, size: int, step: float) -> float:
    """Return the gain in likelihood between two first-order autoregressive models, one around two levels and one around none; `size` points come first.

    Noise whose neighbours are alike strays from its level, so that a rank test finds two levels in it. The straying is part
    of the model without a shift here, and what speaks for a shift is only what it cannot explain: the sharp edge.
    """
    around = rest.copy()
    around[:size] -= around[:size].mean()
    around[size:] -= around[size:].mean()
    whole = around.copy()
    whole[size:] += step
    with_shift, without = _innovations(around), _innovations(whole - whole.mean())
    if with_shift <= 0:
        return math.inf if without > 0 else 0.0
    return (rest.size - 1) * math.log(without / with_shift)


def _innovations(values: Array) -> float:
    """Sum of squares of what the value before does not predict."""
    past, present = values[:-1], values[1:]
    squares = float(past @ past)
    memory = min(0.99, max(0.0, float(past @ present) / squares)) if squares > 0 else 0.0
    left = present - memory * past
    return float(left @ left)


def rank_sum_z(x: Array, y: Array) -> float:
    """The standardised statistic of Mann and Whitney, positive when y is the larger; 0 when all values are equal."""
    ordered = np.sort(x)
    above = np.searchsorted(ordered, y, "left") + np.searchsorted(ordered, y, "right")
    counts = np.unique(np.concatenate((x, y)), return_counts=True)[1].astype(np.float64)
    pairs, total = x.size * y.size, x.size + y.size
    ties = float((counts**3 - counts).sum()) / (total * (total - 1))
    variance = pairs / 12 * (total + 1 - ties)
    return (float(above.sum()) - pairs) / 2 / math.sqrt(variance) if variance > 1e-9 else 0.0


def compute_best_cut_p(z: float, points: int, shortest: int) -> float:
    """Chance that without any change the best cut of so many points, none nearer to an end than `shortest`, has such a z.

    A p value at the best cut must pay for the search. This is the approximation of Miller and Siegmund (1982), used
    for ranks by Lausen and Schumacher (1992); on short series it errs on the safe side. It needs z > 1.
    """
    if z <= 1:
        return 1.0
    share = shortest / points
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    crossings = density * ((z - 1 / z) * 2 * math.log((1 - share) / share) + 4 / z)
    return min(1.0, crossings)


def residuals(series: Array, cuts: Sequence[int]) -> Array:
    """Distances from the median of the own segment."""
    return np.concatenate([part - np.median(part) for part in np.split(series, list(cuts))])


def likeness(rest: Array) -> float:
    """Lag-1 correlation of residuals, which are cut off at three sigma so that a single spike neither creates nor hides it; 0 to 0.95."""
    sigma = _SIGMA * float(np.median(np.abs(rest)))
    if sigma == 0:
        return 0.0
    tame = np.clip(rest, -_TAME * sigma, _TAME * sigma) / sigma
    return min(_MOST_ALIKE, max(0.0, float(tame[1:] @ tame[:-1]) / float(tame @ tame)))


def inflation(correlation: float) -> float:
    """Compute by how much correlated neighbours raise the variance of a level, to first order.

    For lag-1 correlation r it is (1 + r) ÷ (1 − r).
    """
    return (1 + correlation) / (1 - correlation)
