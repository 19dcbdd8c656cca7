"""Figures with intervals: a metric over one trial (`Estimate`), and a metric of two trials compared (`Comparison`).

`analysis.estimates` and `analysis.comparison` compute them, and docs/method.md explains how. Intervals are at 95 % unless a `level`
says otherwise; values are in the unit of the metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.model.metric import SCORE_TOLERANCE, Metric, is_score


class Verdict(StrEnum):
    """The verdict on B against the reference A.

    `better` and `worse` need evidence that the difference lies beyond the tolerance, and `same` needs evidence that it lies
    within. Everything else is `unsure`, which is not the same as `same`.
    """

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric over a trial, with its interval."""

    metric: Metric
    n: int
    """Executions behind it."""
    units: int
    """Independent observations behind the interval: processes, or executions when there was one process."""
    mean: float
    median: float
    std: float
    min: float
    max: float
    p90: float
    p95: float
    p99: float
    low: float | None
    """Interval of the median at `level`; None when there are too few units for one."""
    high: float | None
    level: float
    outliers: int
    median_without_outliers: float
    insufficient: tuple[str, ...] = ()
    """Percentiles with fewer than ten executions beyond them: not enough data to be shown."""
    doubts: tuple[str, ...] = ()
    tails: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    """Intervals of `p95` and `p99` over the units; only of those that have one."""
    mean_low: float | None = None
    """Interval of the mean, of scores only: there the mean is the figure, and a median would be all or nothing."""
    mean_high: float | None = None

    @property
    def cv(self) -> float | None:
        """Coefficient of variation; None around zero, and of a single value."""
        return self.std / abs(self.mean) if self.mean and self.n > 1 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of two sides: the ratio B ÷ A or the difference B − A with its interval, and a verdict.

    Ratios are used where all values are positive, differences for scores and where values may be 0 or negative; the fields of the
    other one are None. `p` is that of this comparison alone, `p_corrected` pays for all comparisons of the family (Holm).
    """

    metric: Metric
    trial_a: str
    trial_b: str
    value_a: float
    value_b: float
    units_a: int
    units_b: int
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    tolerance: float
    verdict: Verdict | None
    """None where the metric is not judged by default and was not requested, so that it is shown only."""
    method: str
    difference: float | None = None
    """B − A with its interval, where differences are compared: scores, and values that are not all positive."""
    difference_low: float | None = None
    difference_high: float | None = None
    q: float | None = None
    """The share of false alarms to expect among findings with this p or a smaller one, over the family."""
    effect_size: float | None = None
    """Chance that B is above A less the chance that it is below: −1 to 1, 0 where neither side leads."""
    reason: str = ""
    """For *unsure*: what is missing, and what would settle it."""


def have_scores_fallen(comparisons: Iterable[Comparison]) -> bool:
    """Whether a mean score, or the share of executions that completed, is lower in B and not proved to be the same.

    A wide tolerance lets a lower score pass; as the next baseline it would let the score sink step by step.
    """
    return any(
        comparison.value_b < comparison.value_a
        and (
            comparison.verdict is not Verdict.SAME
            or comparison.value_a - comparison.value_b > SCORE_TOLERANCE
        )
        for comparison in comparisons
        if comparison.verdict is not None
        and (is_score(comparison.metric) or comparison.metric.name == "completed")
    )
