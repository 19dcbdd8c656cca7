"""Which configurations differ in cost or quality, and which of them make up the Pareto front.

Every two configurations are compared on the cases that both did, and the comparison policy (`comparison/policy.py`) decides on all
differences as one family. Costs are compared by their means, because money adds up; `assay compare` shows the median.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.policy import Tolerances, judge
from assay.analysis.comparison.verdict import FEWEST_PAIRS, Contrast, no_effect
from assay.analysis.cost.estimates import CostSubject, Floats
from assay.model import Comparison, Verdict, metric_named
from assay.model.cost import Amount, FrontPlace, FrontStatus
from assay.stats.effect import Effect
from assay.stats.means import mean_difference
from assay.stats.sample import Scale

Bools = NDArray[np.bool_]
_ROUNDED = 1e-6
"""Costs are stored as 32-bit floats: differences that are a smaller share of them are none."""


@dataclass(frozen=True, slots=True)
class Relations:
    """What is significant between every two configurations: row i, column j says something of j seen from i."""

    cheaper: Bools
    """j costs significantly less per task."""
    better: Bools
    """j has a significantly higher mean score."""
    not_dearer: Bools
    """The interval excludes that j costs more than i by more than the tolerance."""
    not_worse: Bools
    """The interval excludes that j scores less than i by more than the tolerance: j keeps the quality of i."""
    quality: Mapping[tuple[int, int], Comparison]
    """i < j; the comparison of their scores, with i as A."""
    cost: Mapping[tuple[int, int], Comparison]

    def saving(self, i: int, j: int) -> Amount:
        """What j costs less than i per task, on the cases that both did."""
        return _difference(self.cost, j, i)

    def quality_gap(self, i: int, j: int) -> Amount:
        """How far the mean score of j is above that of i, on the cases that both did."""
        return _difference(self.quality, i, j)


def _difference(compared: Mapping[tuple[int, int], Comparison], i: int, j: int) -> Amount:
    """The value of j less that of i, whichever way round they were compared."""
    gap = compared.get((min(i, j), max(i, j)))
    if gap is None or gap.difference is None or gap.difference_low is None or gap.difference_high is None:
        return Amount(None, reason="they share too few cases")
    if i < j:
        return Amount(gap.difference, gap.difference_low, gap.difference_high)
    return Amount(-gap.difference, -gap.difference_high, -gap.difference_low)


def relate(subjects: Sequence[CostSubject], tolerances: Tolerances) -> Relations:
    """Compare every two configurations in mean score and mean cost, as one family of tests."""
    pairs = list(combinations(range(len(subjects)), 2))
    contrasts = [
        contrast
        for i, j in pairs
        for contrast in (
            _contrast("score", subjects[i], subjects[j]),
            _contrast("usd", subjects[i], subjects[j]),
        )
    ]
    judged = judge(contrasts, tolerances=tolerances)
    scores, costs = dict(zip(pairs, judged[::2], strict=True)), dict(zip(pairs, judged[1::2], strict=True))
    cheaper, better, not_dearer, not_worse = np.zeros((4, len(subjects), len(subjects)), dtype=np.bool_)
    for i, j in pairs:
        _fill(better, not_worse, i, j, scores[i, j], is_higher_better=True)
        _fill(cheaper, not_dearer, i, j, costs[i, j], is_higher_better=False)
    return Relations(cheaper, better, not_dearer, not_worse, scores, costs)


def _fill(
    certain: Bools, keeps: Bools, i: int, j: int, compared: Comparison, *, is_higher_better: bool
) -> None:
    """Enter what one comparison says of i and j into both tables."""
    certain[i, j] = compared.verdict is Verdict.BETTER
    certain[j, i] = compared.verdict is Verdict.WORSE
    low, high = compared.difference_low, compared.difference_high
    if compared.verdict is None or low is None or high is None:
        return
    if not is_higher_better:
        low, high = -high, -low
    reach = (1.0, 1.0) if is_higher_better else (abs(compared.value_a), abs(compared.value_b))
    keeps[i, j] = low >= -compared.tolerance * reach[0]
    keeps[j, i] = high <= compared.tolerance * reach[1]


def pair_cases(a: CostSubject, b: CostSubject, figure: str) -> tuple[Floats, Floats]:
    """A figure of both on the cases that both did and that have it on both sides."""
    first, second = [np.empty(0)], [np.empty(0)]
    for definition in a.trials.keys() & b.trials.keys():
        trial, other = a.trials[definition], b.trials[definition]
        x, y = a.columns[definition][figure], b.columns[definition][figure]
        if trial.names is not other.names and tuple(trial.names) != tuple(other.names):
            places = {name: place for place, name in enumerate(other.names)}
            shared = [(n, places[name]) for n, name in enumerate(trial.names) if name in places]
            x, y = x[[n for n, _ in shared]], y[[n for _, n in shared]]
        first.append(x)
        second.append(y)
    x, y = np.concatenate(first), np.concatenate(second)
    known = ~np.isnan(x) & ~np.isnan(y)
    return x[known], y[known]


def _contrast(metric_name: str, a: CostSubject, b: CostSubject) -> Contrast:
    metric = metric_named(metric_name)
    x, y = pair_cases(a, b, metric_name)
    value_a, value_b = (float(side.mean()) if side.size else 0.0 for side in (x, y))
    contrast = Contrast(metric, a.name, b.name, value_a, value_b, x.size, y.size, None, True, unit="case")
    if not x.size:
        return replace(
            contrast, refusal=f"'{a.name}' and '{b.name}' have no case with a known {metric_name} in common."
        )
    if np.array_equal(x, y):
        # An effect on the scale of differences, like those below.
        return replace(contrast, effect=no_effect(metric, 0.0))
    return replace(
        contrast, effect=mean_difference(x, y) if metric_name == "score" else compare_mean_costs(x, y)
    )


def compare_mean_costs(a: Floats, b: Floats) -> Effect | None:
    """Mean of b[i] − a[i] in dollars; None with fewer than six pairs.

    A fixed difference in every case is a difference of prices, about which there is nothing to infer. Any other is tested like
    a difference of scores (`stats.means.mean_difference`), scaled to lie between −1 and 1 as those do.
    """
    if a.size < FEWEST_PAIRS:
        return None
    steps = b - a
    steps[np.abs(steps) <= _ROUNDED * np.maximum(np.abs(a), np.abs(b))] = 0.0
    largest = float(np.abs(steps).max())
    if not largest:
        return Effect(Scale.DIFFERENCE, 0.0, 0.0, 0.0, 1.0, "identical values")
    value = float(steps.mean())
    if float(np.ptp(steps)) <= _ROUNDED * float(max(np.abs(a).max(), np.abs(b).max())):
        return Effect(Scale.DIFFERENCE, value, value, value, 0.0, "fixed difference", float(np.sign(value)))
    found = mean_difference(np.zeros(steps.size), steps / largest)
    assert found is not None
    return replace(found, value=value, low=found.low * largest, high=found.high * largest)


def find_places(
    costs: Sequence[float], qualities: Sequence[float], certain: Relations, names: Sequence[str]
) -> list[FrontPlace]:
    """The place of each configuration: off the front only if another is significantly ahead in one and not behind in the other."""
    cost, quality = np.asarray(costs), np.asarray(qualities)
    no_worse = (cost[None, :] <= cost[:, None]) & (quality[None, :] >= quality[:, None])
    ahead = no_worse & ((cost[None, :] < cost[:, None]) | (quality[None, :] > quality[:, None]))
    dominated = ahead & ((certain.cheaper & certain.not_worse) | (certain.better & certain.not_dearer))
    apart = (
        certain.cheaper
        | certain.cheaper.T
        | certain.better
        | certain.better.T
        | np.eye(len(names), dtype=np.bool_)
    )
    places = []
    for i in range(len(names)):
        status = FrontStatus.FRONT
        if dominated[i].any():
            status = FrontStatus.DOMINATED
        elif ahead[i].any():
            status = FrontStatus.TIED
        over = tuple(names[j] for j in np.flatnonzero(dominated[i]).tolist())
        places.append(FrontPlace(status, over, tuple(names[j] for j in np.flatnonzero(~apart[i]).tolist())))
    return places
