"""Two or more sides beside each other."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.analysis.comparable import by_runs, comparable
from assay.analysis.compare import compare_reports, matching_trials
from assay.analysis.completion import incomplete_trials
from assay.analysis.course import over_time
from assay.analysis.findings import findings
from assay.analysis.marks import marks_of
from assay.analysis.matrix import matrix
from assay.analysis.showdown import contender, showdowns
from assay.analysis.tally import case_series, tally_of
from assay.analysis.trial import estimated
from assay.analysis.verdict import Sessions
from assay.errors import AssayError, RunNotFound, Unlike
from assay.model import (
    CaseTable,
    Comparison,
    Doubt,
    Ratings,
    Report,
    TrialReport,
)
from assay.model.showdown import Course, Showdown
from assay.model.standing import Matrix
from assay.pipeline.agent_results import choose_results, shared_suite, trials_of
from assay.pipeline.record import LoadedRun, TrialHistories, read_histories, report_on
from assay.pipeline.reporting import metrics_of_experiment, report_of
from assay.pipeline.searches import refuse_searches
from assay.pipeline.tolerating import (
    Known,
    about_floors,
    about_hours,
    guarded,
    known_floors,
    session_errors,
    shares_of,
)
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
    showdowns: tuple[Showdown, ...] = ()
    """Of a suite: who wins, dimension by dimension."""
    incomplete: tuple[str, ...] = ()
    """Trials of B that were compared though too many of their executions have no result."""


@dataclass(frozen=True, slots=True)
class ComparisonSides:
    """What the words on the command line stand for, and which results of agents were left out for them."""

    reports: tuple[Report, ...]
    doubts: tuple[Doubt, ...] = ()


def compared(
    store: Store,
    a: str,
    b: str,
    *,
    metrics: Sequence[str] | None = None,
    tolerance: float | None = None,
    suite: str | None = None,
) -> Compared:
    sides = find_sides(store, (a, b), suite)
    refuse_searches((a, b), sides.reports)
    side_a, side_b = sides.reports
    parts = [_Part.of(store, *part) for part in by_runs(side_a, side_b)]
    known = {key: floor for part in parts for key, floor in known_floors(store, part.a, part.b).items()}
    sessions = {key: error for part in parts for key, error in part.session_errors(known).items()}

    def judge(names: Sequence[str] | None) -> tuple[Comparison, ...]:
        judged = compare_reports(
            side_a,
            side_b,
            metrics=names,
            tolerance=tolerance,
            noise_floor=shares_of(known),
            sessions=sessions,
        )
        return _held_back(judged, parts, is_asked=tolerance is not None)

    comparisons = judge(metrics)
    # Who is better overall does not depend on which metrics somebody wants to see.
    deciding = comparisons if metrics is None else judge(None)
    doubts = (
        *sides.doubts,
        *comparable(side_a, side_b),
        *(doubt for part in parts for doubt in about_hours(comparisons, part.a, part.b)),
        *about_floors(known, comparisons),
    )
    incomplete = incomplete_trials(side_b, {second.name for _, second in matching_trials(side_a, side_b)})
    return Compared(side_a, side_b, comparisons, doubts, showdowns(side_a, side_b, deciding), incomplete)


@dataclass(frozen=True, slots=True)
class _Part:
    """Trials that are of one run on either side, with the histories of B's where the runs are two."""

    a: Report
    b: Report
    histories: TrialHistories

    @classmethod
    def of(cls, store: Store, a: Report, b: Report) -> _Part:
        return cls(a, b, () if a.run.id == b.run.id else read_histories(store, b))

    @property
    def is_one_run(self) -> bool:
        return self.a.run.id == self.b.run.id

    def session_errors(self, known: Known) -> Sessions:
        if self.is_one_run:
            return {}
        return session_errors(known, self.histories, self.a, self.b, {self.b.run.id})


def _held_back(
    comparisons: tuple[Comparison, ...], parts: Sequence[_Part], *, is_asked: bool
) -> tuple[Comparison, ...]:
    """Claims about times of two runs are unsure where the hours or the machine may explain them; in their order."""
    found: dict[tuple[str, str], Comparison] = {}
    for part in parts:
        names = {trial.name for trial in part.b.trials}
        own = tuple(one for one in comparisons if one.trial_b in names)
        checked = own if part.is_one_run else guarded(own, part.histories, part.a, part.b, is_asked=is_asked)
        found |= {(one.trial_b, one.metric.name): one for one in checked}
    return tuple(found[one.trial_b, one.metric.name] for one in comparisons)


def all_pairs(
    store: Store, refs: Sequence[str], suite: str | None = None, *, sides: ComparisonSides | None = None
) -> Matrix:
    """Several agents on one suite, every two of them, corrected over all pairs and dimensions."""
    sides = sides or find_sides(store, refs, suite)
    rated = [
        (ref, [t for t in one.trials if t.ratings is not None])
        for ref, one in zip(refs, sides.reports, strict=True)
    ]
    if bare := [ref for ref, trials in rated if not trials]:
        raise Unlike(
            f"'{bare[0]}' has no rated results of a suite, and several sides are compared by ratings."
        )
    suites = {one.run.suite.name for one in sides.reports if one.run.suite is not None}
    if len(suites) > 1:
        raise Unlike(
            f"The sides are of different suites ({', '.join(sorted(suites))}). Choose one: --suite NAME"
        )
    contenders = [
        replace(contender(trials, side), agent=ref, is_simulated=any(one.is_simulated for one in trials))
        for (ref, trials), side in zip(rated, sides.reports, strict=True)
    ]
    benchmarks = list(dict.fromkeys(name for one in contenders for name in one.ratings))
    return matrix(next(iter(suites), ""), contenders, benchmarks)


def courses(
    store: Store, refs: Sequence[str], metrics: Sequence[str], suite: str | None = None
) -> list[Course]:
    """Several sides in their order, as a history: the last against the first, and where the level changed."""
    sides = [side(store, ref, suite) for ref in refs]
    refuse_searches(refs, sides)
    return over_time(sides, metrics)


def find_sides(store: Store, refs: Sequence[str], suite: str | None = None) -> ComparisonSides:
    """Reports in the order of `refs`; results of agents are chosen together, from one run where it has all of them."""
    suite = suite or shared_suite(store, refs)
    agents = [ref for ref in dict.fromkeys(refs) if not _is_file(ref) and trials_of(store, ref, suite)]
    chosen = choose_results({ref: trials_of(store, ref, suite) for ref in agents})
    loaded: dict[str, LoadedRun] = {}
    reports = {ref: report_on(store, trials, loaded) for ref, trials in chosen.trials.items()}
    return ComparisonSides(
        tuple(reports[ref] if ref in reports else side(store, ref, suite) for ref in refs), chosen.doubts
    )


def side(store: Store, ref: str, suite: str | None = None) -> Report:
    """What a word on the command line stands for: a result file, an agent, a version of one, or a run."""
    path = Path(ref)
    if path.suffix != ".json":
        if done := trials_of(store, ref, suite):
            return report_on(store, choose_results({ref: done}).trials[ref])
        if not path.is_file():
            return _run_side(store, ref, suite)
    if not path.is_file():
        raise AssayError(f"There is no result file '{ref}'.")
    read = read_result(path)
    return findings(read.run, [_estimated_again(trial) for trial in read.trials])


def _run_side(store: Store, ref: str, suite: str | None) -> Report:
    try:
        return report_of(store, ref, is_brief=True)
    except RunNotFound:
        if ref == "last" or ref.startswith("@"):
            raise
        where = f" in suite '{suite}'" if suite else ""
        raise RunNotFound(
            f"There is no run '{ref}', and no agent '{ref}' with results{where}. "
            "See what there is: assay runs list, assay leaderboard"
        ) from None


def _is_file(ref: str) -> bool:
    return Path(ref).suffix == ".json"


def _estimated_again(trial: TrialReport) -> TrialReport:
    """A trial that was read from a file, with estimates by the method of today."""
    metrics = {estimate.metric.name: estimate.metric for estimate in trial.estimates}
    if trial.ratings is None:
        return estimated(replace(trial, declared=metrics_of_experiment(trial.stored)), metrics)
    table = case_table(trial.executions)
    ratings = _told_apart(trial.ratings, table)
    return estimated(replace(trial, series=case_series(table), ratings=ratings), metrics)


def _told_apart(ratings: Ratings, table: CaseTable) -> Ratings:
    """With what each case says of them, as far as that needs no references: a file does not have those."""
    tally = tally_of(table, ratings.pass_mark)
    marks = {name: array("f", one.tolist()) for name, one in marks_of(tally, {}).items()}
    return replace(ratings, names=tuple(tally.names), marks=marks)
