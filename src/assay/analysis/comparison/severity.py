"""Says how much worse a metric got, and what that is called.

A `Loss` is a share, positive if it got worse, whatever the metric's unit and direction: 0.25 is 25 % slower, or 25 points of a
score. Severities are levels of the loss. The module also says which rating a metric belongs to and whether it depends on the
machine. Types that only annotations need are imported lazily, because many commands import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model import Better, Comparison, Kind, Metric, Status, TrialReport
from assay.model.metric import is_score

if TYPE_CHECKING:
    from assay.model.regression import Loss, Severity

COMPLETED = "completed"
"""The share of executions that ended well, as a metric."""

_SAME_EVERYWHERE = frozenset({"", "usd", "tokens", "calls"})
"""Units of metrics that do not depend on the machine."""
_DIMENSIONS = {
    "s": "speed",
    "ms": "speed",
    "µs": "speed",
    "ns": "speed",
    "1/s": "speed",
    "usd": "cost",
}


def depends_on_machine(metric: Metric) -> bool:
    """Whether another machine gives a different value: times and memory do, scores, tokens and prices do not.

    Recorded times do not depend on this machine either: none of its rounds and runs are behind them.
    """
    return metric.unit not in _SAME_EVERYWHERE and metric.kind is not Kind.RECORDED


def dimension_of(metric: Metric) -> str:
    """The rating dimension of a metric: time is speed, but processor time, like tokens and memory, is efficiency."""
    if metric.name == COMPLETED:
        return "reliability"
    if is_score(metric):
        return "accuracy"
    return "efficiency" if metric.name.startswith("cpu") else _DIMENSIONS.get(metric.unit, "efficiency")


def loss_of(comparison: Comparison) -> Loss | None:
    """The loss of B against A; None if there is no interval, or if the metric has no direction."""
    if comparison.metric.better is Better.UNKNOWN:
        return None
    if comparison.difference is not None:
        if comparison.difference_low is None or comparison.difference_high is None:
            return None
        return loss_of_difference(
            comparison.metric,
            comparison.difference,
            comparison.difference_low,
            comparison.difference_high,
            reach_of(comparison.metric, comparison.value_a, comparison.value_b),
        )
    if comparison.ratio is None or comparison.low is None or comparison.high is None:
        return None
    return loss_of_ratio(comparison.metric, comparison.ratio, comparison.low, comparison.high)


def loss_of_ratio(metric: Metric, ratio: float, low: float, high: float) -> Loss:
    """The loss by a ratio B ÷ A: 1.25 is a loss of 25 % if lower is better, and so is 0.75 if higher is better."""
    from assay.model.regression import Loss

    if metric.better is Better.LOWER:
        return Loss(ratio - 1, low - 1, high - 1)
    return Loss(1 - ratio, 1 - high, 1 - low)


def loss_of_difference(metric: Metric, value: float, low: float, high: float, reach: float) -> Loss:
    """The loss by a difference B − A, as a share of `reach` (see `reach_of`)."""
    from assay.model.regression import Loss

    if metric.better is Better.LOWER:
        return Loss(value / reach, low / reach, high / reach)
    return Loss(-value / reach, -high / reach, -low / reach)


def reach_of(metric: Metric, before: float, after: float) -> float:
    """What a difference is a share of: the old value, or the new one if the old is 0; 1 for scores, which count in points."""
    return 1.0 if in_points(metric) else abs(before) or abs(after) or 1.0


def in_points(metric: Metric) -> bool:
    """Whether the metric goes from 0 to 1, so that a loss of it is given in points."""
    return is_score(metric) or metric.name == COMPLETED


def is_broken(first: TrialReport, second: TrialReport) -> bool:
    """Whether something worked in the first trial, and every execution of the second failed by the agent's own fault."""
    failures = (number for status, number in second.counts.items() if Status(status).is_settled)
    return bool(first.ok and not second.ok and sum(failures))


def severity_of(loss: Loss) -> Severity:
    """The severity by the lower end of the interval, that is by the loss that is certain."""
    from assay.model.regression import Severity

    levels = ((0.3, Severity.CRITICAL), (0.2, Severity.MAJOR), (0.1, Severity.MODERATE))
    return next((severity for above, severity in levels if loss.low > above), Severity.MINOR)
