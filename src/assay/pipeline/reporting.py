"""Findings of a stored run, shown and written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assay.analysis.findings import findings
from assay.analysis.scorer_failures import find_scorer_failures
from assay.analysis.tally import case_series
from assay.analysis.trial import estimated
from assay.errors import LookupFailed, MissingExtra, PlanError, no_such
from assay.model import (
    Metric,
    Report,
    RunState,
    StoredTrial,
    Suite,
    TrialReport,
)
from assay.model.rating import RATED_BY, ScorerFailure
from assay.pipeline.rating import benchmark_of, rated_table, ratings_of, read_current_ratings
from assay.plugin import lookup
from assay.plugin.private_files import make_folder
from assay.report.document import seed_result
from assay.store.store import Store


def report_of(store: Store, ref: str, *, is_brief: bool = False) -> Report:
    """A stored run with its findings; a brief one has estimates to compare with, not to show."""
    found = store.run(ref)
    if found.state is RunState.RUNNING and store.is_abandoned(found.id):
        found = replace(found, state=RunState.INTERRUPTED)
    suite = store.suite_of(found.id)
    for file in found.load:
        # Units and directions that an experiment declares are in its file; a report is fine without.
        with contextlib.suppress(LookupFailed, MissingExtra):
            lookup.load_file(Path(file))
    trials = [trial_report_of(store, stored, suite, is_brief=is_brief) for stored in found.trials]
    report = findings(found, trials, suite)
    if suite is None:
        return report
    from assay.plan.case_warnings import case_doubts

    return replace(report, doubts=(*report.doubts, *case_doubts(suite)))


def trial_report_of(
    store: Store, stored: StoredTrial, suite: Suite | None, *, is_brief: bool = False
) -> TrialReport:
    watched = watched_metrics(stored)
    leads = _leads(stored, suite)
    is_rated = suite is not None and stored.trial.suite == suite.name
    is_code = stored.trial.agent_use is None
    series = store.series(stored.id) if is_code or not is_rated else {}
    table = rated_table(store, stored, {*watched, *leads, *series}) if is_rated else None
    counts = store.counts(stored.id)
    ratings = None
    if table is not None and suite is not None:
        ratings = read_current_ratings(store, stored, suite, counts) or ratings_of(
            store, stored, suite, table
        )
    report = TrialReport(
        stored,
        estimates=(),
        counts=counts,
        series=case_series(table) if table is not None and stored.trial.cases else series,
        failures=store.failures(stored.id),
        executions=store.executions(stored.id),
        applied=store.applied(stored.id),
        artifacts=store.artifacts(stored.id),
        watched=frozenset(watched),
        leads=leads,
        declared=frozenset() if table is not None else metrics_of_experiment(stored),
        deviation=store.deviation(stored.id) if is_rated else None,
        ratings=ratings,
        judging=store.judging(stored.id) if table is not None else None,
        definition=_definition(stored, suite),
        has_simulated_executions=store.is_simulated(stored.id),
    )
    if report.ratings is not None and suite is not None:
        report = replace(report, scorer_failures=_scorer_failures(report, suite))
    return estimated(report, declared_metrics(stored), is_brief=is_brief)


def _leads(stored: StoredTrial, suite: Suite | None) -> tuple[str, ...]:
    """The metrics that the benchmark wants its report to begin with; a dimension stands for what it is rated by."""
    asked = suite.benchmarks if suite is not None and stored.trial.suite == suite.name else ()
    wanted = next((one.metrics_measured for one in asked if one.id == stored.trial.benchmark), ())
    return tuple(dict.fromkeys(metric for name in wanted for metric in RATED_BY.get(name, (name,))))


def _scorer_failures(report: TrialReport, suite: Suite) -> tuple[ScorerFailure, ...]:
    """Executions are looked through only where some may lack a score."""
    benchmark = benchmark_of(report.stored, suite)
    assert report.ratings is not None
    has_unweighted = any(use.weight == 0 for use in benchmark.scorers)
    if not benchmark.expects_scores or not (report.ratings.unscored or has_unweighted):
        return ()
    return find_scorer_failures(report.executions, benchmark)


def _definition(stored: StoredTrial, suite: Suite | None) -> str:
    asked = suite.benchmarks if suite is not None and stored.trial.suite == suite.name else ()
    return next((one.hash for one in asked if one.id == stored.trial.benchmark), "")


def declared_metrics(stored: StoredTrial) -> dict[str, Metric]:
    """Units and directions that the instruments and the experiment of a trial declare, where they can still be found."""
    declared: dict[str, Metric] = {}
    members = [
        ("experiments", stored.trial.experiment),
        *(("instruments", use.name) for use in stored.trial.instruments),
    ]
    for kind, name in members:
        try:
            declared.update(getattr(lookup.find(kind, name), "metrics", {}))
        except (LookupFailed, MissingExtra):
            continue
    return declared


def metrics_of_experiment(stored: StoredTrial) -> frozenset[str]:
    """Metrics that the experiment of a trial declares, where it can still be found."""
    try:
        return frozenset(getattr(lookup.find("experiments", stored.trial.experiment), "metrics", {}))
    except (LookupFailed, MissingExtra):
        return frozenset()


def only_trial(report: Report, wanted: str) -> Report:
    """The report of one trial, by its name or its number."""
    chosen = [t for t in report.trials if wanted in (t.name, str(t.stored.trial.index))]
    if not chosen:
        raise LookupFailed(no_such(wanted, "trials of this run", [t.name for t in report.trials]))
    doubts = tuple(doubt for doubt in report.doubts if doubt.trial in (None, chosen[0].name))
    return replace(report, trials=tuple(chosen), doubts=doubts, leads=())


def watched_metrics(stored: StoredTrial) -> set[str]:
    """Metrics that instruments gave: they stand behind the experiment's own."""
    found: set[str] = set()
    for use in stored.trial.instruments:
        try:
            found |= set(getattr(lookup.find("instruments", use.name), "metrics", {}))
        except (LookupFailed, MissingExtra):
            continue
    return found - {"seconds"}


def write_reports(report: Report, formats: Iterable[str], folder: Path) -> list[Path]:
    """Write a report in each of the formats; older-style reporters are plain functions."""
    reporters = [lookup.find("reporters", name) for name in formats]
    try:
        make_folder(folder)
    except OSError as error:
        raise PlanError(f"The folder '{folder}' cannot be written: {error.strerror}.") from None
    files: list[Path] = []
    for reporter in reporters:
        if hasattr(reporter, "write"):
            files += reporter().write(report, folder)
        else:
            files += _written_by_function(reporter, report, folder)
    return files


def _written_by_function(function: Callable[..., Any], report: Report, folder: Path) -> list[Path]:
    before = set(folder.iterdir())
    function([SimpleNamespace(**seed_result(report, trial)) for trial in report.trials], str(folder))
    return sorted(set(folder.iterdir()) - before)
