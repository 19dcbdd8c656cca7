"""Makes the report of a stored run, and writes it in the formats of reporters.

`report_of` is the way from the store to everything that is shown: it reads what executions measured, lets analysis
estimate, rate and doubt it, and returns a `Report`. Commands print it, `write_reports` hands it to reporters, and
comparisons start from two of them. Nothing is measured here, so a report can be made at any time, also of a running run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from assay.analysis.estimates.scorer_failures import find_scorer_failures
from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import build_report, read_findings
from assay.errors import LookupFailed, MissingExtra, PlanError, format_unknown_name
from assay.model import (
    Metric,
    Report,
    RunState,
    StoredTrial,
    Suite,
    TrialReport,
)
from assay.model.rating import RATED_BY, ScorerFailure
from assay.pipeline.ratings import benchmark_of, ratings_of, read_current_ratings, read_rated_table
from assay.plugin import lookup
from assay.plugin.private_files import make_folder
from assay.report.documents.result import seed_result
from assay.store.store import Store


def report_of(store: Store, ref: str, *, is_brief: bool = False) -> Report:
    """A stored run with its findings; a brief one has estimates to compare with, not to show."""
    found = store.run(ref)
    # A process that was killed could not store that its run has ended: the lease tells, and the stored state stays as it is.
    if found.state is RunState.RUNNING and store.is_abandoned(found.id):
        found = replace(found, state=RunState.INTERRUPTED)
    suite = store.suite_of(found.id)
    for file in found.load:
        # Units and directions that an experiment declares are in its file; a report is fine without.
        with contextlib.suppress(LookupFailed, MissingExtra):
            lookup.load_file(Path(file))
    trials = [trial_report_of(store, stored, suite, is_brief=is_brief) for stored in found.trials]
    report = build_report(found, trials, suite)
    if suite is None:
        return report
    from assay.plan.case_warnings import case_doubts

    return replace(report, doubts=(*report.doubts, *case_doubts(suite)))


def trial_report_of(
    store: Store, stored: StoredTrial, suite: Suite | None, *, is_brief: bool = False
) -> TrialReport:
    """The findings of one trial. Trials of a suite have a table of cases and ratings, others have series of measurements."""
    watched = find_instrument_metrics(stored)
    is_rated = suite is not None and stored.trial.suite == suite.name
    benchmarks = suite.benchmarks if suite is not None and is_rated else ()
    benchmark = next((entry for entry in benchmarks if entry.id == stored.trial.benchmark), None)
    # The report begins with the metrics that the benchmark names; a dimension stands for the metrics it is rated by.
    measured = benchmark.metrics_measured if benchmark is not None else ()
    leads = tuple(dict.fromkeys(metric for name in measured for metric in RATED_BY.get(name, (name,))))
    is_code = stored.trial.agent_use is None
    # Series of an agent on a suite follow from the table of cases; reading them as well would take time for nothing.
    series = store.series(stored.id) if is_code or not is_rated else {}
    table = read_rated_table(store, stored, {*watched, *leads, *series}) if is_rated else None
    if table is not None and stored.trial.cases:
        from assay.analysis.estimates.case_results import case_series

        series = case_series(table)
    counts = store.counts(stored.id)
    # Stored ratings are used as long as they are up to date.
    ratings = None
    if table is not None and suite is not None:
        ratings = read_current_ratings(store, stored, suite, counts) or ratings_of(
            store, stored, suite, table
        )
    report = TrialReport(
        stored,
        estimates=(),
        counts=counts,
        series=series,
        failures=store.failures(stored.id),
        executions=store.executions(stored.id),
        applied=store.read_applied_settings(stored.id),
        artifacts=store.artifacts(stored.id),
        watched=frozenset(watched),
        leads=leads,
        declared=frozenset() if table is not None else metrics_of_experiment(stored),
        deviation=store.deviation(stored.id) if is_rated else None,
        ratings=ratings,
        judging=store.judging(stored.id) if table is not None else None,
        definition=benchmark.hash if benchmark is not None else "",
        has_simulated_executions=store.is_simulated(stored.id),
        nodes=store.placements(stored.id),
    )
    if report.ratings is not None and suite is not None:
        report = replace(report, scorer_failures=_scorer_failures(report, suite))
    del table  # of many cases it is as large as what the estimates need
    return add_estimates(report, find_declared_metrics(stored), is_brief=is_brief)


def _scorer_failures(report: TrialReport, suite: Suite) -> tuple[ScorerFailure, ...]:
    """Executions on which scorers failed. They are read only if some may lack a score, because reading all takes long."""
    benchmark = benchmark_of(report.stored, suite)
    assert report.ratings is not None
    has_unweighted = any(use.weight == 0 for use in benchmark.scorers)
    if not benchmark.expects_scores or not (report.ratings.unscored or has_unweighted):
        return ()
    return find_scorer_failures(report.executions, benchmark)


def find_declared_metrics(stored: StoredTrial) -> dict[str, Metric]:
    """Units and directions that the instruments and the experiment of a trial declare, where they can still be found."""
    declared: dict[str, Metric] = {}
    members = [
        ("experiments", stored.trial.experiment),
        *(("instruments", use.name) for use in stored.trial.instruments),
    ]
    for kind, name in members:
        declared.update(getattr(lookup.find_available(kind, name), "metrics", {}))
    return declared


def metrics_of_experiment(stored: StoredTrial) -> frozenset[str]:
    """Metrics that the experiment of a trial declares, where it can still be found."""
    experiment = lookup.find_available("experiments", stored.trial.experiment)
    return frozenset(getattr(experiment, "metrics", {}))


def only_trial(report: Report, wanted: str) -> Report:
    """The report of one trial, by its name or its number."""
    chosen = [t for t in report.trials if wanted in (t.name, str(t.stored.trial.index))]
    if not chosen:
        raise LookupFailed(format_unknown_name(wanted, "trials of this run", [t.name for t in report.trials]))
    doubts = tuple(doubt for doubt in report.doubts if doubt.trial in (None, chosen[0].name))
    _, found = read_findings(chosen)
    return replace(report, trials=tuple(chosen), doubts=doubts, leads=(), findings=found)


def find_instrument_metrics(stored: StoredTrial) -> set[str]:
    """Metrics that instruments measured. Reports show them after those of the experiment itself."""
    found: set[str] = set()
    for use in stored.trial.instruments:
        found |= set(getattr(lookup.find_available("instruments", use.name), "metrics", {}))
    return found - {"seconds"}


def write_reports(report: Report, formats: Iterable[str], folder: Path) -> list[Path]:
    """Write a report in each of the formats, and return the files.

    A reporter is a class with `write(report, folder)`, or in the older style a function that is called with a list of
    results and the name of the folder. All reporters are looked up before the first one writes.
    """
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
            # A plain function does not say which files it wrote.
            before = set(folder.iterdir())
            reporter([SimpleNamespace(**seed_result(report, trial)) for trial in report.trials], str(folder))
            files += sorted(set(folder.iterdir()) - before)
    return files
