"""Says what a regression does to those who use the agent.

The result is an `Impact`: which cases got worse, what the regression costs the overall rating, and what a thousand tasks
now cost in seconds, tokens or dollars. `history/regressions.py` attaches it to each regression.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.analysis.comparison.severity import (
    COMPLETED,
    dimension_of,
    in_points,
    loss_of_difference,
    reach_of,
)
from assay.analysis.estimates.case_results import case_number
from assay.analysis.estimates.completion import COMPLETION
from assay.analysis.estimates.replication import observe
from assay.model import WEIGHTS, Comparison, Metric, Ratings, Rubric, TrialReport
from assay.model.regression import Impact

_ADDITIVE = frozenset({"s", "usd", "tokens", "calls"})
"""Units of quantities that add up over tasks. Memory does not: a thousand tasks one after the other need it once."""
_TASKS = 1000


def impact_of(comparison: Comparison, first: TrialReport, second: TrialReport, rubric: Rubric) -> Impact:
    """The impact of a worse metric; `first` and `second` are the trials that were compared, `rubric` weighs the ratings."""
    usd_before, usd_after = (
        None if trial.ratings is None else trial.ratings.usd_per_solved for trial in (first, second)
    )
    weights = {**WEIGHTS, **rubric.weights}
    return Impact(
        cases=_worse_cases(comparison, first, second),
        overall=_share_of_overall(comparison, first.ratings, second.ratings, weights),
        per_1000=per_1000(comparison.metric, comparison.value_a, comparison.value_b),
        usd_per_1000=None if usd_before is None or usd_after is None else _TASKS * (usd_after - usd_before),
    )


def per_1000(metric: Metric, before: float, after: float) -> float | None:
    """What a thousand tasks take more than before, in the metric's unit; None where that does not add up.

    For scores it is the number of tasks out of a thousand that are no longer solved.
    """
    if in_points(metric):
        return _TASKS * (before - after)
    return _TASKS * (after - before) if metric.unit in _ADDITIVE else None


def _share_of_overall(
    comparison: Comparison, first: Ratings | None, second: Ratings | None, weights: Mapping[str, float]
) -> float | None:
    """By how much the metric's dimension pulls the overall rating down: weight share × fall of its rating, at least 0."""
    if first is None or second is None:
        return None
    name = dimension_of(comparison.metric)
    before, after = first.dimensions.get(name), second.dimensions.get(name)
    if before is None or after is None or before.value is None or after.value is None:
        return None
    rated = [dimension for dimension, rating in second.dimensions.items() if rating.value is not None]
    total = sum(weights[dimension] for dimension in rated)
    return max(0.0, weights[name] / total * (before.value - after.value)) if total else None


def _worse_cases(comparison: Comparison, first: TrialReport, second: TrialReport) -> tuple[str, ...]:
    """Cases that lost more than the tolerance on their own, the worst first; empty where the units are processes."""
    metric = comparison.metric
    name = COMPLETION if metric.name == COMPLETED else metric.name
    before, after = _by_case(first, name), _by_case(second, name)
    losses = {
        case: loss_of_difference(metric, after[key] - value, 0, 0, reach_of(metric, value, after[key])).value
        for case in second.stored.trial.cases
        if (value := before.get(key := case_number(case))) is not None and key in after
    }
    worse = {case: loss for case, loss in losses.items() if loss > comparison.tolerance}
    return tuple(sorted(worse, key=lambda case: (-worse[case], case)))


def _by_case(trial: TrialReport, name: str) -> Mapping[int, float]:
    series = trial.series.get(name)
    if series is None or series.unit != "case":
        return {}
    observed = observe(series)
    return observed.means if name.startswith("score") else observed.by_process
