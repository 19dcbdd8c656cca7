"""The share of executions that succeeded, as a metric.

Only ok executions have figures, so failures show in no other metric: an agent that crashes on all hard cases would look
faster. Comparisons and gates therefore add this metric to both sides (`with_completion`), compare it like a part of the
score and give it back its own name afterwards (`restore_name`). The module also counts executions without a result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from assay.analysis.comparison.severity import COMPLETED
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
"""Its name while it is compared. As a part of the score it is compared in points, case by case."""


@dataclass(frozen=True, slots=True)
class WithoutResult:
    """How many measured executions of a trial say nothing about the agent, out of those that were planned."""

    planned: int
    missing: int
    """Planned, but never made, or cancelled."""
    harness_errors: int

    @property
    def total(self) -> int:
        return self.missing + self.harness_errors


def count_without_result(trial: TrialReport) -> WithoutResult:
    """Executions of a trial without a result.

    If the plan does not say how many there will be, or a capacity search found its answer, what was executed counts as what
    was planned.
    """
    plan, errors = trial.stored.trial, trial.counts.get(Status.HARNESS_ERROR, 0)
    executed = sum(trial.counts.values())
    if trial.stored.has_searched or not plan.is_plan_known:
        return WithoutResult(executed, 0, errors)
    missing = max(0, plan.number_of_planned_executions - executed) + trial.counts.get(Status.CANCELLED, 0)
    return WithoutResult(plan.number_of_planned_executions, missing, errors)


def incomplete_trials(report: Report, names: Collection[str]) -> tuple[str, ...]:
    """Return those of the named trials that lack too many results to be judged.

    What is missing might be their failures, so a verdict on the rest would flatter them. That holds too where a trial was
    stopped because its agent failed over and over. A completed run may have fewer executions than planned for good reason,
    such as a question that was decided.
    """
    open_ones = (
        trial
        for trial in report.trials
        if trial.stored.cut_short or report.run_of(trial).state is not RunState.COMPLETED
    )
    counts = {trial.name: count_without_result(trial) for trial in open_ones if trial.name in names}
    return tuple(name for name, found in counts.items() if is_incomplete(found.planned, found.total))


def incomplete_sides(a: Report, b: Report) -> Iterator[Doubt]:
    """Warnings of a comparison about trials of either side that lack too many results."""
    for side, report in (("A", a), ("B", b)):
        lacking = incomplete_trials(report, {trial.name for trial in report.trials})
        for trial in report.trials:
            if trial.name in lacking:
                found, run_id = count_without_result(trial), report.run_of(trial).id
                is_final = trial.stored.cut_short is not None
                yield Doubt(
                    "incomplete",
                    f"{found.total:,} of {found.planned:,} planned executions of {side} have no result and may be "
                    "the ones that would have failed: figures are compared without them.",
                    f"See why it stopped: assay show {run_id}"
                    if is_final
                    else f"Run them: assay run --resume {run_id}",
                    trial.name,
                )


def with_completion(a: Report, b: Report, *, always: bool = False) -> tuple[Report, Report]:
    """Add the metric `completed` to both sides; without `always`, only if an execution failed on either side."""
    if not always and not any(
        sum(trial.counts.values()) > trial.ok for report in (a, b) for trial in report.trials
    ):
        return a, b
    first, second = (
        replace(report, trials=tuple(_with_series(trial) for trial in report.trials)) for report in (a, b)
    )
    return first, second


def inner_name(metric: str) -> str:
    return COMPLETION if metric == COMPLETED else metric


def outer_name(metric: str) -> str:
    return COMPLETED if metric == COMPLETION else metric


def restore_name(comparison: Comparison) -> Comparison:
    """The comparison under the metric's own name."""
    return replace(comparison, metric=replace(comparison.metric, name=outer_name(comparison.metric.name)))


def _with_series(trial: TrialReport) -> TrialReport:
    """The trial with completion as a series of 0 and 1, one value for each settled execution."""
    # Every run counts what has no result; only comparisons need numpy, which takes long to import.
    from assay.analysis.estimates.case_results import case_number
    from assay.analysis.estimates.estimate import estimate

    by_case = trial.stored.trial.agent_use is not None or bool(trial.stored.trial.cases)
    counted = [
        execution
        for execution in trial.executions
        if execution.phase is Phase.MEASURED and execution.status.is_settled
    ]
    if not counted:
        return trial
    series = Series(
        [case_number(execution.case) if by_case else execution.process for execution in counted],
        [execution.repetition for execution in counted],
        [float(execution.status == "ok") for execution in counted],
        unit="case" if by_case else "process",
    )
    metric = Metric(COMPLETION, "", Better.HIGHER, Kind.DERIVED)
    return replace(
        trial,
        series={**trial.series, COMPLETION: series},
        estimates=(*trial.estimates, estimate(metric, series)),
    )
