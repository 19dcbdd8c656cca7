"""One trial's estimates with what is behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from assay.analysis.estimate import estimate
from assay.model import (
    Artifact,
    Estimate,
    Execution,
    Kind,
    Metric,
    Ratings,
    Series,
    StoredTrial,
    TrialReport,
    metric_named,
)
from assay.model.rating import Judging


def trial_report(
    stored: StoredTrial,
    series: Mapping[str, Series],
    counts: Mapping[str, int],
    failures: tuple[Execution, ...],
    executions: Iterable[Execution],
    applied: Mapping[str, object],
    artifacts: tuple[Artifact, ...],
    metrics: Mapping[str, Metric],
    *,
    watched: Collection[str] = (),
    ratings: Ratings | None = None,
    judging: Judging | None = None,
    definition: str = "",
) -> TrialReport:
    """`metrics` tells unit and direction where a name does not; `watched` names those that instruments gave."""
    names = sorted(
        (name for name in series if len(series[name].values)), key=lambda name: _place(name, watched)
    )
    report = TrialReport(
        stored=stored,
        estimates=tuple(_estimated(name, series[name], metrics, watched) for name in names),
        counts=counts,
        series=series,
        failures=failures,
        executions=executions,
        applied=applied,
        artifacts=artifacts,
        watched=frozenset(watched),
        ratings=ratings,
        judging=judging,
        definition=definition,
    )
    return (
        replace(report, estimates=tuple(map(_made_up, report.estimates))) if report.is_simulated else report
    )


def _estimated(
    name: str, series: Series, metrics: Mapping[str, Metric], watched: Collection[str]
) -> Estimate:
    """Doubts are kept to what was asked about: an instrument's figures come along, nobody decides by them."""
    found = estimate(metrics.get(name) or metric_named(name), series)
    return replace(found, doubts=()) if name in watched else found


def _made_up(estimate: Estimate) -> Estimate:
    return replace(estimate, metric=replace(estimate.metric, kind=Kind.SIMULATED))


def _place(name: str, watched: Collection[str]) -> int:
    """Time first, then the experiment's own metrics, then those of instruments; sorting keeps the order among equals."""
    if name == "seconds":
        return 0
    return 2 if name in watched else 1
