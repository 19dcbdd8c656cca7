"""Two sides beside each other."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.analysis.comparable import comparable
from assay.analysis.compare import compare_reports
from assay.analysis.course import over_time
from assay.analysis.findings import findings
from assay.analysis.floor import replicated
from assay.analysis.marks import marks_of
from assay.analysis.matrix import matrix
from assay.analysis.same import same_value
from assay.analysis.showdown import contender, showdowns
from assay.analysis.tally import case_series, tally_of
from assay.analysis.trial import estimated
from assay.errors import AssayError, Unlike
from assay.model import (
    CaseTable,
    Comparison,
    Doubt,
    Ratings,
    Report,
    Rubric,
    TrialReport,
)
from assay.model.showdown import Course, Showdown
from assay.model.standing import Matrix
from assay.pipeline.reporting import report_of, trial_report_of
from assay.pipeline.tolerating import about_floors, about_hours, guarded, known_floors, shares_of
from assay.report.cases import case_table
from assay.report.document import read_result
from assay.store.history import AgentTrial
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


def compared(
    store: Store,
    a: str,
    b: str,
    *,
    metrics: Sequence[str] | None = None,
    tolerance: float | None = None,
    suite: str | None = None,
) -> Compared:
    suite = suite or _shared_suite(store, (a, b))
    side_a, side_b = side(store, a, suite), side(store, b, suite)
    known = known_floors(store, side_a, side_b)
    comparisons = compare_reports(
        side_a, side_b, metrics=metrics, tolerance=tolerance, noise_floor=shares_of(known)
    )
    if side_a.run.id == side_b.run.id:
        # Arms take turns round by round: what the machine did in one round may hit one of them only.
        comparisons = replicated(comparisons, side_a, side_b)
    else:
        comparisons = guarded(store, comparisons, side_a, side_b, is_asked=tolerance is not None)
    doubts = (
        *comparable(side_a, side_b),
        *about_hours(comparisons, side_a, side_b),
        *about_floors(known, comparisons),
    )
    return Compared(side_a, side_b, comparisons, doubts, showdowns(side_a, side_b, comparisons))


def _shared_suite(store: Store, refs: Sequence[str]) -> str | None:
    """Of agents, the newest that all of them did: none is held against what another did elsewhere since. Else None."""
    done = [[one.suite for one in _done_by(store, ref) if one.suite] for ref in refs]
    return next((name for name in reversed(done[-1]) if all(name in suites for suites in done)), None)


def all_pairs(store: Store, refs: Sequence[str], suite: str | None = None) -> Matrix:
    """Several agents on one suite, every two of them, corrected over all pairs and dimensions."""
    suite = suite or _shared_suite(store, refs)
    sides = [side(store, ref, suite) for ref in refs]
    rated = [
        (ref, [t for t in one.trials if t.ratings is not None]) for ref, one in zip(refs, sides, strict=True)
    ]
    if bare := [ref for ref, trials in rated if not trials]:
        raise Unlike(
            f"'{bare[0]}' has no rated results of a suite, and several sides are compared by ratings."
        )
    suites = {one.run.suite.name for one in sides if one.run.suite is not None}
    if len(suites) > 1:
        raise Unlike(
            f"The sides are of different suites ({', '.join(sorted(suites))}). Choose one: --suite NAME"
        )
    contenders = [
        replace(contender(trials), agent=ref, is_simulated=any(one.is_simulated for one in trials))
        for ref, trials in rated
    ]
    benchmarks = list(dict.fromkeys(name for one in contenders for name in one.ratings))
    return matrix(next(iter(suites), ""), contenders, benchmarks)


def courses(
    store: Store, refs: Sequence[str], metrics: Sequence[str], suite: str | None = None
) -> list[Course]:
    """Several sides in their order, as a history: the last against the first, and where the level changed."""
    return over_time([side(store, ref, suite) for ref in refs], metrics)


def side(store: Store, ref: str, suite: str | None = None) -> Report:
    """What a word on the command line stands for: a result file, an agent, a version of one, or a run."""
    path = Path(ref)
    if path.suffix != ".json":
        found = agent_report(store, ref, suite)
        if found is not None or not path.is_file():
            return found or report_of(store, ref)
    if not path.is_file():
        raise AssayError(f"There is no result file '{ref}'.")
    read = read_result(path)
    return findings(read.run, [_estimated_again(trial) for trial in read.trials])


def _estimated_again(trial: TrialReport) -> TrialReport:
    """A trial that was read from a file, with estimates by the method of today."""
    metrics = {estimate.metric.name: estimate.metric for estimate in trial.estimates}
    if trial.ratings is None:
        return estimated(trial, metrics)
    table = case_table(trial.executions)
    ratings = _told_apart(trial.ratings, table)
    return estimated(replace(trial, series=case_series(table), ratings=ratings), metrics)


def _told_apart(ratings: Ratings, table: CaseTable) -> Ratings:
    """With what each case says of them, as far as that needs no references: a file does not have those."""
    tally = tally_of(table, Rubric().pass_mark)
    marks = {name: array("f", one.tolist()) for name, one in marks_of(tally, {}).items()}
    return replace(ratings, names=tuple(tally.names), marks=marks)


def agent_report(store: Store, ref: str, suite: str | None = None) -> Report | None:
    """The latest trials of an agent, or of `agent@version`, as one report; None where no agent is called so."""
    done = [one for one in _done_by(store, ref) if suite in (None, one.suite)]
    if not done:
        return None
    newest = done[-1]
    trials = []
    for one in _standing([one for one in done if one.suite == newest.suite]):
        stored = next(t for t in store.run(one.run_id).trials if t.id == one.trial_id)
        trials.append(trial_report_of(store, stored, store.suite_of(one.run_id)))
    return findings(store.run(newest.run_id), trials)


def _done_by(store: Store, ref: str) -> list[AgentTrial]:
    name, _, version = ref.partition("@")
    return [one for one in store.agent_trials(name) if version in ("", one.version)] if name else []


def _standing(done: Sequence[AgentTrial]) -> list[AgentTrial]:
    """Of each benchmark and point the latest, but none with a part of the cases in place of one with all."""
    kept: dict[str, AgentTrial] = {}
    for one in done:
        point = f"{one.benchmark} {same_value(dict(one.params))}"
        before = kept.get(point)
        is_part = (
            before is not None
            and before.benchmark_hash == one.benchmark_hash
            and len(one.cases) < len(before.cases)
        )
        if not is_part:
            kept[point] = one
    return list(kept.values())
