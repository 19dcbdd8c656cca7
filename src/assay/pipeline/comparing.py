"""Two sides beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.analysis import comparable, compare_reports, findings, trial_report
from assay.analysis.tally import case_series
from assay.errors import AssayError
from assay.model import (
    Comparison,
    Doubt,
    Report,
    TrialReport,
)
from assay.pipeline.reporting import report_of, trial_report_of
from assay.report.cases import case_table
from assay.report.document import read_result
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides, put beside each other."""

    a: Report
    b: Report
    comparisons: tuple[Comparison, ...]
    doubts: tuple[Doubt, ...]


def compared(
    store: Store, a: str, b: str, *, metrics: Sequence[str] | None = None, tolerance: float | None = None
) -> Compared:
    side_a, side_b = _side(store, a), _side(store, b)
    return Compared(
        side_a,
        side_b,
        compare_reports(side_a, side_b, metrics=metrics, tolerance=tolerance),
        comparable(side_a, side_b),
    )


def _side(store: Store, ref: str) -> Report:
    path = Path(ref)
    if path.suffix != ".json" and not path.is_file():
        return agent_report(store, ref) or report_of(store, ref)
    if not path.is_file():
        raise AssayError(f"There is no result file '{ref}'.")
    read = read_result(path)
    return findings(read.run, [_estimated_again(trial) for trial in read.trials])


def _estimated_again(trial: TrialReport) -> TrialReport:
    """A trial that was read from a file, with estimates by the method of today."""
    return trial_report(
        trial.stored,
        series=trial.series if trial.ratings is None else case_series(case_table(trial.executions)),
        counts=trial.counts,
        failures=trial.failures,
        executions=trial.executions,
        applied=trial.applied,
        artifacts=trial.artifacts,
        metrics={estimate.metric.name: estimate.metric for estimate in trial.estimates},
        ratings=trial.ratings,
    )


def agent_report(store: Store, ref: str) -> Report | None:
    """The latest trials of an agent, or of `agent@version`, as one report; None where no agent is called so."""
    name, _, version = ref.partition("@")
    latest = [
        one for one in store.latest_trials() if one.agent == name and version in ("", one.agent_version)
    ]
    if not name or not latest:
        return None
    newest = max(latest, key=lambda one: one.ended or one.started)
    chosen = [one for one in latest if one.suite == newest.suite]
    trials = []
    for one in chosen:
        stored = next(t for t in store.run(one.run_id).trials if t.id == one.trial_id)
        trials.append(trial_report_of(store, stored, store.suite_of(one.run_id)))
    return findings(store.run(newest.run_id), trials)
