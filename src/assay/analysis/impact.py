"""What a regression does to those who use the agent."""

from __future__ import annotations

from collections.abc import Mapping

from assay.analysis.completion import COMPLETION
from assay.analysis.losses import COMPLETED, dimension_of, in_points, loss_of_difference, reach_of
from assay.analysis.replication import observed
from assay.analysis.tally import case_number
from assay.model import WEIGHTS, Comparison, Metric, Ratings, Rubric, TrialReport
from assay.model.regression import Impact

_ADDITIVE = frozenset({"s", "usd", "tokens", "calls"})
"""Units of what a thousand tasks use up a thousand times; memory is not among them."""
_TASKS = 1000


def impact_of(one: Comparison, first: TrialReport, second: TrialReport, rubric: Rubric) -> Impact:
    return Impact(
        cases=_worse_cases(one, first, second),
        overall=_share_of_overall(one, first.ratings, second.ratings, {**WEIGHTS, **rubric.weights}),
        per_1000=per_1000(one.metric, one.value_a, one.value_b),
        usd_per_1000=_price(first.ratings, second.ratings),
    )


def per_1000(metric: Metric, before: float, after: float) -> float | None:
    """Of scores, tasks that are solved no longer."""
    if in_points(metric):
        return _TASKS * (before - after)
    return _TASKS * (after - before) if metric.unit in _ADDITIVE else None


def _price(first: Ratings | None, second: Ratings | None) -> float | None:
    before, after = (None if one is None else one.usd_per_solved for one in (first, second))
    return None if before is None or after is None else _TASKS * (after - before)


def _share_of_overall(
    one: Comparison, first: Ratings | None, second: Ratings | None, weights: Mapping[str, float]
) -> float | None:
    """By how much the rating of its dimension pulls the overall rating down; nothing where it rose."""
    if first is None or second is None:
        return None
    name = dimension_of(one.metric)
    before, after = first.dimensions.get(name), second.dimensions.get(name)
    if before is None or after is None or before.value is None or after.value is None:
        return None
    rated = [dimension for dimension, rating in second.dimensions.items() if rating.value is not None]
    total = sum(weights[dimension] for dimension in rated)
    return max(0.0, weights[name] / total * (before.value - after.value)) if total else None


def _worse_cases(one: Comparison, first: TrialReport, second: TrialReport) -> tuple[str, ...]:
    """Cases beyond tolerance on their own, the worst first; nothing where the units are processes."""
    name = COMPLETION if one.metric.name == COMPLETED else one.metric.name
    before, after = _by_case(first, name), _by_case(second, name)
    losses = {
        case: loss_of_difference(
            one.metric, after[key] - value, 0, 0, reach_of(one.metric, value, after[key])
        ).value
        for case in second.stored.trial.cases
        if (value := before.get(key := case_number(case))) is not None and key in after
    }
    worse = {case: loss for case, loss in losses.items() if loss > one.tolerance}
    return tuple(sorted(worse, key=lambda case: (-worse[case], case)))


def _by_case(trial: TrialReport, name: str) -> Mapping[int, float]:
    series = trial.series.get(name)
    if series is None or series.unit != "case":
        return {}
    seen = observed(series)
    return seen.means if name.startswith("score") else seen.by_process
