from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.model.metric import SCORE_TOLERANCE, Metric, is_score


class Verdict(StrEnum):
    """Of B against the reference A."""

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
        """Coefficient of variation; None around zero."""
        return self.std / abs(self.mean) if self.mean else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, a metric, the ratio B ÷ A with its interval, a verdict."""

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
    """None where nobody asked about the metric, so that it is shown only."""
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
        one.value_b < one.value_a
        and (one.verdict is not Verdict.SAME or one.value_a - one.value_b > SCORE_TOLERANCE)
        for one in comparisons
        if one.verdict is not None and (is_score(one.metric) or one.metric.name == "completed")
    )
