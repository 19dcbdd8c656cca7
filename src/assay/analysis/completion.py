"""The share of executions that ended well, as a metric: failures are in no other, for only ok executions have figures."""

from __future__ import annotations

from dataclasses import replace

from assay.analysis.estimate import estimate
from assay.analysis.losses import COMPLETED
from assay.analysis.tally import case_number
from assay.model import Better, Comparison, Kind, Metric, Phase, Report, Series, TrialReport

COMPLETION = f"score.{COMPLETED}"
"""Its name while it is compared: as a part of the score it is compared in points, case by case."""


def with_completion(a: Report, b: Report, *, always: bool = False) -> tuple[Report, Report]:
    """Both sides with that metric; without where nothing failed on either, for then there is nothing to tell."""
    if not always and not any(
        sum(trial.counts.values()) > trial.ok for report in (a, b) for trial in report.trials
    ):
        return a, b
    return _added(a), _added(b)


def inner_name(metric: str) -> str:
    return COMPLETION if metric == COMPLETED else metric


def outer_name(metric: str) -> str:
    return COMPLETED if metric == COMPLETION else metric


def named(comparison: Comparison) -> Comparison:
    """Under its own name once it has been compared."""
    return replace(comparison, metric=replace(comparison.metric, name=outer_name(comparison.metric.name)))


def _added(report: Report) -> Report:
    return replace(report, trials=tuple(_with_series(trial) for trial in report.trials))


def _with_series(trial: TrialReport) -> TrialReport:
    by_case = trial.stored.trial.agent_use is not None or bool(trial.stored.trial.cases)
    counted = [one for one in trial.executions if one.phase is Phase.MEASURED and one.status.is_settled]
    if not counted:
        return trial
    series = Series(
        [case_number(one.case) if by_case else one.process for one in counted],
        [one.repetition for one in counted],
        [float(one.status == "ok") for one in counted],
        unit="case" if by_case else "process",
    )
    metric = Metric(COMPLETION, "", Better.HIGHER, Kind.DERIVED)
    return replace(
        trial,
        series={**trial.series, COMPLETION: series},
        estimates=(*trial.estimates, estimate(metric, series)),
    )
