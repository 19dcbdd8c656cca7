"""The share of executions that ended well, as a metric: failures are in no other, for only ok executions have figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from assay.analysis.estimate import estimate
from assay.analysis.losses import COMPLETED
from assay.analysis.tally import case_number
from assay.model import (
    Better,
    Comparison,
    Doubt,
    Kind,
    Metric,
    Phase,
    Report,
    RunState,
    Series,
    Status,
    TrialReport,
)
from assay.model.execution import is_incomplete

COMPLETION = f"score.{COMPLETED}"
"""Its name while it is compared: as a part of the score it is compared in points, case by case."""


@dataclass(frozen=True, slots=True)
class WithoutResult:
    """Measured executions of a trial that say nothing about it."""

    planned: int
    missing: int
    """Planned, but never made, or cancelled."""
    harness_errors: int

    @property
    def total(self) -> int:
        return self.missing + self.harness_errors


def count_without_result(trial: TrialReport) -> WithoutResult:
    """A trial that was stopped, that ends by itself or that is recorded planned what it made."""
    plan, errors = trial.stored.trial, trial.counts.get(Status.HARNESS_ERROR, 0)
    made = sum(trial.counts.values())
    if trial.stored.stopped or not plan.is_plan_known:
        return WithoutResult(made, 0, errors)
    missing = max(0, plan.planned_measured - made) + trial.counts.get(Status.CANCELLED, 0)
    return WithoutResult(plan.planned_measured, missing, errors)


def incomplete_trials(report: Report, names: Collection[str]) -> tuple[str, ...]:
    """Those among the named trials that lack too many results: what is missing might be their failures."""
    open_ones = (trial for trial in report.trials if report.run_of(trial).state is RunState.INCOMPLETE)
    counts = {trial.name: count_without_result(trial) for trial in open_ones if trial.name in names}
    return tuple(name for name, found in counts.items() if is_incomplete(found.planned, found.total))


def incomplete_sides(a: Report, b: Report) -> Iterator[Doubt]:
    """Warnings of a comparison about trials of either side that lack too many results."""
    for side, report in (("A", a), ("B", b)):
        lacking = incomplete_trials(report, {trial.name for trial in report.trials})
        for trial in report.trials:
            if trial.name in lacking:
                found = count_without_result(trial)
                yield Doubt(
                    "incomplete",
                    f"{found.total:,} of {found.planned:,} planned executions of {side} have no result, which might be "
                    "its failures: figures are compared without them.",
                    f"Run them: assay run --resume {report.run_of(trial).id}",
                    trial.name,
                )


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
