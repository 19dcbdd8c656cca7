"""Resolves the sides named on the command line, and compares two or more of them.

A side is a result file, an agent, a version of an agent, or a run; each becomes a `Report`. Two sides are compared metric by
metric, several as all pairs or in their order as a history. The statistics are in `analysis/comparison`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from assay.analysis.comparison.comparability import list_comparability_doubts, split_by_runs
from assay.analysis.comparison.compare import compare_reports, matching_trials
from assay.analysis.comparison.head_to_head import contender, over_time, showdowns
from assay.analysis.comparison.policy import Tolerances
from assay.analysis.estimates.case_results import case_series, tally_of
from assay.analysis.estimates.completion import incomplete_trials
from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import build_report
from assay.analysis.ranking.case_ratings import marks_of
from assay.analysis.ranking.matrix import matrix
from assay.errors import AssayError, RunNotFound, Unlike
from assay.model import (
    Comparison,
    Report,
    TrialReport,
)
from assay.model.comparison import Compared, ComparisonSides
from assay.model.head_to_head import Course
from assay.model.standing import Matrix
from assay.pipeline.agent_history import LoadedRun, report_on
from assay.pipeline.agent_results import choose_results, find_shared_suite, trials_of
from assay.pipeline.capacity_comparison import refuse_searches
from assay.pipeline.report import metrics_of_experiment, report_of
from assay.pipeline.tolerances import read_noise, warn_about_floors, warn_about_hours
from assay.report.cases import case_table
from assay.report.documents.result import read_result
from assay.store.store import Store


def compare_refs(
    store: Store,
    a: str,
    b: str,
    *,
    metrics: Sequence[str] | None = None,
    tolerance: float | None = None,
    suite: str | None = None,
) -> Compared:
    """Compare side `b` with side `a`; see `find_sides` for what the words may be."""
    sides = find_sides(store, (a, b), suite)
    refuse_searches((a, b), sides.reports)
    side_a, side_b = sides.reports
    known = read_noise(store, side_a, side_b)

    def judge(names: Sequence[str] | None) -> tuple[Comparison, ...]:
        return compare_reports(
            side_a, side_b, metrics=names, tolerances=Tolerances(tolerance), noise=known.noise
        )

    # Judged twice where the user asked for certain metrics: what is shown is one family of tests, what decides is another.
    comparisons = judge(metrics)
    # The overall winner must not depend on which metrics the user wants to see.
    deciding = comparisons if metrics is None else judge(None)
    doubts = (
        *sides.doubts,
        *list_comparability_doubts(side_a, side_b),
        *(doubt for part in split_by_runs(side_a, side_b) for doubt in warn_about_hours(comparisons, *part)),
        *warn_about_floors(known.floors, comparisons),
    )
    incomplete = incomplete_trials(side_b, {second.name for _, second in matching_trials(side_a, side_b)})
    return Compared(side_a, side_b, comparisons, doubts, showdowns(side_a, side_b, deciding), incomplete)


def all_pairs(
    store: Store, refs: Sequence[str], suite: str | None = None, *, sides: ComparisonSides | None = None
) -> Matrix:
    """Compare every two of several agents on one suite; corrected over all pairs and dimensions."""
    sides = sides or find_sides(store, refs, suite)
    rated = [
        (ref, [t for t in report.trials if t.ratings is not None])
        for ref, report in zip(refs, sides.reports, strict=True)
    ]
    if bare := [ref for ref, trials in rated if not trials]:
        raise Unlike(
            f"'{bare[0]}' has no rated results of a suite, and several sides are compared by ratings."
        )
    suites = {report.run.suite.name for report in sides.reports if report.run.suite is not None}
    if len(suites) > 1:
        raise Unlike(
            f"The sides are of different suites ({', '.join(sorted(suites))}). Choose one: --suite NAME"
        )
    contenders = [
        replace(contender(trials, side), agent=ref, is_simulated=any(trial.is_simulated for trial in trials))
        for (ref, trials), side in zip(rated, sides.reports, strict=True)
    ]
    benchmarks = list(dict.fromkeys(name for agent in contenders for name in agent.ratings))
    return matrix(next(iter(suites), ""), contenders, benchmarks)


def courses(
    store: Store, refs: Sequence[str], metrics: Sequence[str], suite: str | None = None
) -> list[Course]:
    """Compare several sides in their order, as a history: the last with the first, and where the level changed."""
    sides = [side(store, ref, suite) for ref in refs]
    refuse_searches(refs, sides)
    return over_time(sides, metrics, read_noise(store, sides[0], sides[-1]).noise)


def find_sides(store: Store, refs: Sequence[str], suite: str | None = None) -> ComparisonSides:
    """Reports in the order of `refs`; results of agents are chosen together, from one run where it has all of them."""
    # A word that is both an agent and a run means the agent, as names are what people remember. The suite is settled before:
    # results of different suites could not be compared.
    suite = suite or find_shared_suite(store, refs)
    agents = {
        ref: own_trials
        for ref in dict.fromkeys(refs)
        if Path(ref).suffix != ".json" and (own_trials := trials_of(store, ref, suite))
    }
    chosen = choose_results(agents)
    loaded: dict[str, LoadedRun] = {}
    reports = {ref: report_on(store, trials, loaded) for ref, trials in chosen.trials.items()}
    return ComparisonSides(
        tuple(reports[ref] if ref in reports else side(store, ref, suite) for ref in refs), chosen.doubts
    )


def side(store: Store, ref: str, suite: str | None = None) -> Report:
    """What a word on the command line stands for: a result file, an agent, a version of one, or a run."""
    path = Path(ref)
    if path.suffix != ".json":
        if trials := trials_of(store, ref, suite):
            return report_on(store, choose_results({ref: trials}).trials[ref])
        if not path.is_file():
            return _run_side(store, ref, suite)
    if not path.is_file():
        raise AssayError(f"There is no result file '{ref}'.")
    read = read_result(path)
    return build_report(read.run, [_estimate_again(trial) for trial in read.trials])


def _run_side(store: Store, ref: str, suite: str | None) -> Report:
    """A run as a side. A word that is neither run nor agent gets a message about both, since either may have been meant."""
    try:
        return report_of(store, ref, is_brief=True)
    except RunNotFound:
        if ref == "last" or ref.startswith("@"):
            raise
        where = f" in suite '{suite}'" if suite else ""
        raise RunNotFound(
            f"There is no run '{ref}', and no agent '{ref}' with results{where}. "
            "List them: assay runs list, assay leaderboard"
        ) from None


def _estimate_again(trial: TrialReport) -> TrialReport:
    """A trial that was read from a file, with estimates by the current method, whichever version wrote the file."""
    metrics = {estimate.metric.name: estimate.metric for estimate in trial.estimates}
    if trial.ratings is None:
        return add_estimates(replace(trial, declared=metrics_of_experiment(trial.stored)), metrics)
    table = case_table(trial.executions)
    # A file has no references, so only ratings that need none get marks of their cases.
    tally = tally_of(table, trial.ratings.pass_mark)
    marks = {name: array("f", values.tolist()) for name, values in marks_of(tally, {}).items()}
    ratings = replace(trial.ratings, names=tuple(tally.names), marks=marks)
    return add_estimates(replace(trial, series=case_series(table), ratings=ratings), metrics)
