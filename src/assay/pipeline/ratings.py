"""Rates the trials of suites, and judges stored outputs again.

`rate_trials` is the place where ratings are made when a run is over; leaderboards, matrices, SQL views and reports read what
is stored. All trials of one definition of a benchmark are rated by one rubric and one set of references, so that they stay
comparable: when either changes, earlier trials are rated again. `rescore` judges stored outputs again without running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from assay.errors import PlanError
from assay.model import (
    Benchmark,
    CaseTable,
    Execution,
    Ratings,
    Rubric,
    Run,
    RunState,
    StoredTrial,
    Suite,
)
from assay.model.metric import JUDGING, RECORDED_SECONDS
from assay.model.rating import BILLED, Judging, RatingScope, is_mostly_unscored, is_pass
from assay.plugin import lookup
from assay.plugin.judge_usage import add_judge_usage
from assay.store.standings import RankedTrial
from assay.store.store import Store

Watch = Callable[[], None]
"""Called after each trial that was rated again, to show progress: a thousand take half a minute."""


def ignore_progress() -> None: ...


def rate_trials(store: Store, begun: Run, suite: Suite) -> None:
    """Compute and store the five ratings of each trial of a run that is over or was scored again.

    This is the place where ratings are made; leaderboards, matrices, SQL views and reports read what is stored. Earlier
    trials are rated again only where what they are measured by changes: here if the run has a different rubric, and in
    `references` if there is another reference.
    """
    # First the trials of this run, so that its rubric is stored as the latest one; then the others are brought to it.
    for stored in begun.trials:
        store.rate(stored.id, ratings_of(store, stored, suite))
    for scope in store.rating_scopes(begun.id):
        align_rubrics(store, scope)


def align_rubrics(store: Store, scope: RatingScope) -> None:
    """Rate the trials of a definition by the rubric of its latest run, where theirs was another.

    Another rubric leaves the results comparable, so all of them are measured by one.
    """
    # A yardstick is a text of everything that ratings depend on beside the executions. Comparing texts finds what has to be
    # rated again without reading a single execution.
    rated = store.read_yardsticks(scope)
    if not rated:
        return
    latest = rated[-1][2]
    rate_by_latest_rubric(
        store, [(run_id, trial_id) for run_id, trial_id, own in rated if own != latest], scope
    )


def rate_by_latest_rubric(
    store: Store, trials: Sequence[tuple[str, int]], scope: RatingScope, watch: Watch = ignore_progress
) -> None:
    """Rate trials of a definition again, given by run and id."""
    rated = store.read_rated_trials(scope)
    suite = store.suite_of(rated[-1][0]) if rated else None
    if suite is None:
        return
    rubric = next(benchmark.rubric for benchmark in suite.benchmarks if benchmark.id == scope.benchmark)
    for run_id, group in groupby(trials, lambda trial: trial[0]):
        own = store.suite_of(run_id)
        assert own is not None
        by_id = {stored.id: stored for stored in store.run(run_id).trials}
        for _, trial_id in group:
            store.rate(trial_id, ratings_of(store, by_id[trial_id], own, rubric=rubric))
            watch()


def read_ratings(
    store: Store, entries: Sequence[RankedTrial], *, with_usage: bool = False
) -> dict[int, Ratings]:
    """The stored ratings of trials that are ranked together, by the id of the trial; with all fields for cost analysis.

    An older version stored some without what each case or round contributes, and left those of a different rubric as they
    were. They are brought up to date once, and stored.
    """
    kept = store.ratings([entry.trial_id for entry in entries])
    by_scope: dict[RatingScope, list[RankedTrial]] = {}
    for entry in entries:
        scope = RatingScope(entry.suite, entry.benchmark, entry.benchmark_hash, entry.simulated)
        by_scope.setdefault(scope, []).append(entry)
    is_current = True
    for scope, group in by_scope.items():
        lacking = [
            (entry.run_id, entry.trial_id)
            for entry in group
            if (rated := kept.get(entry.trial_id)) is None
            or not all(rated.by_round.values())
            or (with_usage and rated.usage is None)
        ]
        yardsticks = {kept[entry.trial_id].yardstick for entry in group if entry.trial_id in kept}
        if lacking or len(yardsticks) > 1:
            rate_by_latest_rubric(store, lacking, scope)
            align_rubrics(store, scope)
            is_current = False
    return kept if is_current else store.ratings([entry.trial_id for entry in entries])


def read_rated_table(store: Store, stored: StoredTrial, further: Iterable[str] = ()) -> CaseTable:
    """What a trial of a suite is rated by, whether it asked an agent or ran code."""
    from assay.analysis.estimates.case_results import code_table

    if stored.trial.is_recorded:
        # The time that it took to read a recorded answer says nothing: what was recorded with it takes its place.
        table = store.case_table(stored.id, {*further, RECORDED_SECONDS})
        metrics = dict(table.metrics)
        metrics["seconds"] = metrics.pop(RECORDED_SECONDS)
        return replace(table, metrics=metrics, is_recorded=True)
    table = store.case_table(stored.id, further)
    return table if stored.trial.agent_use is not None else code_table(table, stored.trial)


def state_of(store: Store, run: Run, counts: Sequence[Mapping[str, int]]) -> RunState:
    """The state of a run that is over: failed if a trial has no ok execution, or if most of them are unscored."""
    suite = store.suite_of(run.id)
    has_failed = any(not count.get("ok") for count in counts) or (
        suite is not None and any(_is_scoring_failed(store, stored, suite) for stored in run.trials)
    )
    return RunState.FAILED if has_failed else RunState.COMPLETED


def _is_scoring_failed(store: Store, stored: StoredTrial, suite: Suite) -> bool:
    """Whether most ok executions of a trial have no score although its benchmark has scorers: then the run has failed."""
    benchmark = benchmark_of(stored, suite)
    if not stored.trial.cases or not benchmark.expects_scores:
        return False
    from assay.analysis.estimates.case_results import outcomes_of

    table = replace(read_rated_table(store, stored), is_judged=True)
    outcomes = outcomes_of(table, benchmark.rubric.pass_mark)
    return is_mostly_unscored(outcomes.counts, outcomes.unscored)


def ratings_of(
    store: Store,
    stored: StoredTrial,
    suite: Suite,
    table: CaseTable | None = None,
    rubric: Rubric | None = None,
) -> Ratings:
    """The ratings of a trial by the stored references of its benchmark's definition, and by its rubric unless given."""
    from assay.analysis.ranking.ratings import rate, with_plan

    benchmark = benchmark_of(stored, suite)
    kept = store.trial_references(stored.id)
    table = table or read_rated_table(store, stored, BILLED)
    if stored.trial.cases and benchmark.expects_scores:
        # Also where every scorer failed, so that code without a score does not pass.
        table = replace(table, is_judged=True)
    expects_scores = benchmark.expects_scores
    ratings = rate(table, rubric or benchmark.rubric, benchmark.limits, kept, expects_scores=expects_scores)
    trial = stored.trial
    return replace(
        with_plan(ratings, trial.number_of_planned_executions if trial.is_plan_known else 0),
        baseline_overall=baseline_score(suite, benchmark.id, trial.agent.name),
        nodes=store.placements(stored.id),
    )


def read_current_ratings(
    store: Store, stored: StoredTrial, suite: Suite, counts: Mapping[str, int]
) -> Ratings | None:
    """The stored ratings of a trial; None where they are missing, incomplete, or older than its executions.

    `counts` are its measured executions by status: a run that is going on or was resumed has more than were rated.
    """
    kept = store.ratings([stored.id]).get(stored.id)
    # Without the contributions of rounds, as older versions stored them, there would be no interval that includes them.
    if kept is None or not all(kept.by_round.values()):
        return None
    rated = sum(kept.outcomes.values()) + kept.unscored
    if rated != sum(counts.values()) - counts.get("cancelled", 0):
        return None
    benchmark = benchmark_of(stored, suite)
    return replace(
        kept,
        pass_mark=benchmark.rubric.pass_mark,
        expects_scores=benchmark.expects_scores,
        baseline_overall=baseline_score(suite, benchmark.id, stored.trial.agent.name),
    )


def baseline_score(suite: Suite, benchmark: str, agent: str) -> float | None:
    """What `baseline_scores` say of an agent on a benchmark, else of the first agent that has a score there."""
    known = {name: scores[benchmark] for name, scores in suite.baseline_scores.items() if benchmark in scores}
    return known.get(agent, next(iter(known.values()), None))


def benchmark_of(stored: StoredTrial, suite: Suite) -> Benchmark:
    return next(benchmark for benchmark in suite.benchmarks if benchmark.id == stored.trial.benchmark)


def find_failed_cases(store: Store, ref: str) -> dict[str, frozenset[str]]:
    """Cases that were not passed by every agent in every repetition, by benchmark."""
    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' did not run a suite, so it has no cases.")
    marks = {benchmark.id: benchmark.rubric.pass_mark for benchmark in suite.benchmarks}
    failed: dict[str, set[str]] = {}
    for stored in (stored for stored in found.trials if stored.trial.cases):
        table = store.case_table(stored.id)
        scores = table.metrics.get("score") or [None] * len(table.cases)
        for case, status, score in zip(table.cases, table.statuses, scores, strict=True):
            if status != "ok" or (score is not None and not is_pass(score, marks[stored.trial.benchmark])):
                failed.setdefault(stored.trial.benchmark, set()).add(case)
    if not failed:
        raise PlanError(f"Every case of run '{found.id}' passed.")
    return {benchmark: frozenset(cases) for benchmark, cases in failed.items()}


@dataclass(frozen=True, slots=True)
class Rescored:
    """A run that was judged again."""

    run: Run
    spent: Judging | None
    """What judging again used up; None where no judge was asked."""
    kept: int = 0
    """Executions whose answers were shortened when they were stored: they keep the scores of the whole answer."""


def rescore(store: Store, ref: str) -> Rescored:
    """Judge the stored outputs of a run again, with the scorers that its suite has; nothing is run."""
    from assay.execute.scoring import judge_again
    from assay.pipeline.sandboxes import record_sandbox

    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' did not run a suite, so there is nothing to score again.")
    store.require_idle(found.id)
    for file in found.load:
        lookup.load_file(Path(file))
    here = record_sandbox(found.environment, suite)
    if here != found.environment:
        store.set_environment(found.id, here)
    spent: list[Mapping[str, float]] = []
    kept: list[int] = []
    for stored in (stored for stored in found.trials if stored.trial.cases):
        benchmark = benchmark_of(stored, suite)
        # Generators all the way: an execution is read, judged and let go, and only its scores stay until the end.
        stored_whole = _select_judgeable(store.executions_to_rescore(stored.id), kept)
        store.rescore(stored.id, judge_again(benchmark, stored_whole, spent))
    _update_state(store, found)
    rate_trials(store, found, suite)
    store.refresh()
    calls, tokens, usd = (add_judge_usage(spent).get(name) for name in JUDGING)
    judging = None if calls is None else Judging(int(calls), tokens, usd)
    return Rescored(store.run(found.id), judging, len(kept))


def _select_judgeable(
    executions: Iterable[tuple[int, Execution]], kept: list[int]
) -> Iterator[tuple[int, Execution]]:
    """Yield the executions that can be judged again, and add the numbers of the others to `kept`."""
    from assay.execute.answer_limits import is_judgeable

    for number, execution in executions:
        if is_judgeable(execution):
            yield number, execution
        else:
            kept.append(number)


def _update_state(store: Store, run: Run) -> None:
    """Set the state anew: a run that failed because its scorers did may be complete now, and may set the references."""
    if run.ended is None or run.state not in (RunState.COMPLETED, RunState.FAILED):
        return
    from assay.pipeline.references import establish_references

    state = state_of(store, run, [store.counts(stored.id) for stored in run.trials])
    if state is RunState.COMPLETED and run.state is RunState.FAILED:
        establish_references(store, run.id, run.ended)
    store.finish(run.id, state, run.ended)
