"""The difference between side B and side A of a comparison as text.

Times and counts change by percentages, scores by points, and values that may be zero by amounts in their own unit. Every
format takes its texts from here, so that one change reads the same everywhere.
"""

from __future__ import annotations

from assay.model import Comparison, Metric
from assay.report.figures import NOTHING
from assay.units import drop_rounding_error, format_signed, percent, show, significant


def change_text(comparison: Comparison) -> str:
    """`+25 % [+21, +29]`; of scores in points; of values that may be zero, in their own unit."""
    if comparison.difference is not None:
        return _difference(comparison)
    if comparison.ratio is None:
        return NOTHING
    low, high = comparison.low, comparison.high
    ends = "" if low is None or high is None else f" [{percent_change(low)}, {percent_change(high)}]"
    return f"{percent_change(comparison.ratio)} %{ends}"


def sides_name(comparison: Comparison) -> str:
    """The two trials in one name: what they have in common, then what differs."""
    a, b = comparison.trial_a, comparison.trial_b
    if a == b:
        return b
    (place_a, dot, agent_a), (place_b, _, agent_b) = a.partition(" · "), b.partition(" · ")
    return f"{place_a}: {agent_a} → {agent_b}" if dot and place_a == place_b else f"{a} → {b}"


def percent_change(ratio: float) -> str:
    """
    >>> percent_change(1.254), percent_change(0.5), percent_change(1.0), percent_change(37.2)
    ('+25.4', '−50', '0', '+3,620')
    """
    return format_signed(drop_rounding_error(ratio - 1, 1.0) * 100)


def in_points(metric: Metric) -> bool:
    """Whether it is a share of 1, which changes by points and not by percentages of itself."""
    return metric.name in ("score", "completed") or metric.name.startswith("score.")


def tolerance_text(comparison: Comparison) -> str:
    if not in_points(comparison.metric):
        return percent(comparison.tolerance)
    return f"{significant(comparison.tolerance * 100)} point{'s' * (comparison.tolerance != 0.01)}"


def _difference(comparison: Comparison) -> str:
    """A difference in points for shares, and in the unit of the metric for everything else."""
    numbers = (comparison.difference, comparison.difference_low, comparison.difference_high)
    value, low, high = (0.0 if number is None else number for number in numbers)
    metric = comparison.metric
    if in_points(metric):
        return (
            f"{format_signed(value * 100)} points [{format_signed(low * 100)}, {format_signed(high * 100)}]"
        )
    value_text, *ends = (_format_signed_amount(number, metric.unit) for number in (value, low, high))
    return f"{value_text} [{', '.join(ends)}]"


def _format_signed_amount(value: float, unit: str) -> str:
    text = show(abs(value), unit)
    return text if text == show(0.0, unit) else f"{'+' if value > 0 else '−'}{text}"
