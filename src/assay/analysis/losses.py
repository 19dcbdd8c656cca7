"""How much worse, and what that is called."""

from __future__ import annotations

from assay.model import Better, Comparison, Kind, Metric, Status, TrialReport
from assay.model.metric import is_score
from assay.model.regression import Loss, Severity

COMPLETED = "completed"
"""The share of executions that ended well, as a metric."""

_SEVERITIES = ((0.3, Severity.CRITICAL), (0.2, Severity.MAJOR), (0.1, Severity.MODERATE))
_SAME_EVERYWHERE = frozenset({"", "usd", "tokens", "calls"})
_DIMENSIONS = {
    "s": "speed",
    "ms": "speed",
    "µs": "speed",
    "ns": "speed",
    "1/s": "speed",
    "usd": "cost",
}


def depends_on_machine(metric: Metric) -> bool:
    """Whether another machine gives another value: times and memory, not scores, tokens or prices.

    Recorded times are what they are, wherever they are compared: no rounds and no runs of this machine are behind them.
    """
    return metric.unit not in _SAME_EVERYWHERE and metric.kind is not Kind.RECORDED


def dimension_of(metric: Metric) -> str:
    """Where a metric counts: time is speed, but processor time, like tokens and memory, is efficiency."""
    if metric.name == COMPLETED:
        return "reliability"
    if is_score(metric):
        return "accuracy"
    return "efficiency" if metric.name.startswith("cpu") else _DIMENSIONS.get(metric.unit, "efficiency")


def loss_of(comparison: Comparison) -> Loss | None:
    """None where there is no interval, or no direction."""
    if comparison.metric.better is Better.UNKNOWN:
        return None
    if comparison.difference is not None:
        return _of_difference(comparison)
    if comparison.ratio is None or comparison.low is None or comparison.high is None:
        return None
    return loss_of_ratio(comparison.metric, comparison.ratio, comparison.low, comparison.high)


def loss_of_ratio(metric: Metric, ratio: float, low: float, high: float) -> Loss:
    """Of B ÷ A: 1.25 of what is better lower is a loss of 25 %, 0.75 of what is better higher, too."""
    if metric.better is Better.LOWER:
        return Loss(ratio - 1, low - 1, high - 1)
    return Loss(1 - ratio, 1 - high, 1 - low)


def loss_of_difference(metric: Metric, value: float, low: float, high: float, reach: float) -> Loss:
    if metric.better is Better.LOWER:
        return Loss(value / reach, low / reach, high / reach)
    return Loss(-value / reach, -high / reach, -low / reach)


def reach_of(metric: Metric, before: float, after: float) -> float:
    """What a difference is a share of: of nothing for scores, which are points; of the new value where the old is 0."""
    return 1.0 if in_points(metric) else abs(before) or abs(after) or 1.0


def in_points(metric: Metric) -> bool:
    """Whether it goes from 0 to 1, so that a loss of it is told in points."""
    return is_score(metric) or metric.name == COMPLETED


def _of_difference(comparison: Comparison) -> Loss | None:
    value, low, high = comparison.difference, comparison.difference_low, comparison.difference_high
    if value is None or low is None or high is None:
        return None
    reach = reach_of(comparison.metric, comparison.value_a, comparison.value_b)
    return loss_of_difference(comparison.metric, value, low, high, reach)


def is_broken(first: TrialReport, second: TrialReport) -> bool:
    """Whether something of the first worked, and every execution of the second went wrong by the subject's own fault."""
    failures = (number for status, number in second.counts.items() if Status(status).is_settled)
    return bool(first.ok and not second.ok and sum(failures))


def severity_of(loss: Loss) -> Severity:
    """By the end of the interval that is certain."""
    return next((severity for above, severity in _SEVERITIES if loss.low > above), Severity.MINOR)
