"""What a run of a suite is worth: ratings, cases that failed, judging again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.errors import PlanError
from assay.execute.spending import together
from assay.model import (
    Benchmark,
    CaseTable,
    Execution,
    Ratings,
    Run,
    RunState,
    StoredTrial,
    Suite,
)
from assay.model.metric import JUDGING, RECORDED_SECONDS
from assay.model.rating import Judging, is_mostly_unscored, is_pass
from assay.plugin import lookup
from assay.store.store import Store


def rate_trials(store: Store, begun: Run, suite: Suite) -> None:
    """Work out the five ratings of each trial of a suite, and keep them for leaderboards."""
    for stored in begun.trials:
        store.rate(stored.id, ratings_of(store, stored, suite))


def rated_table(store: Store, stored: StoredTrial, further: Iterable[str] = ()) -> CaseTable:
    """What a trial of a suite is rated by, whether it asked an agent or ran code."""
    from assay.analysis.tally import code_table

    if stored.trial.is_recorded:
        table = store.case_table(stored.id, {*further, RECORDED_SECONDS})
        metrics = dict(table.metrics)
        metrics["seconds"] = metrics.pop(RECORDED_SECONDS)
        return replace(table, metrics=metrics, is_recorded=True)
    table = store.case_table(stored.id, further)
    return table if stored.trial.agent_use is not None else code_table(table, stored.trial)


def state_of(store: Store, run: Run, counts: Sequence[Mapping[str, int]]) -> RunState:
    """Of a run that is over: failed if a trial has no ok execution, or if most of its ok executions are unscored."""
    suite = store.suite_of(run.id)
    has_failed = any(not count.get("ok") for count in counts) or (
        suite is not None and any(_is_scoring_failed(store, stored, suite) for stored in run.trials)
    )
    return RunState.FAILED if has_failed else RunState.COMPLETED


def _is_scoring_failed(store: Store, stored: StoredTrial, suite: Suite) -> bool:
    benchmark = benchmark_of(stored, suite)
    if not stored.trial.cases or not benchmark.expects_scores:
        return False
    from assay.analysis.tally import outcomes_of

    table = replace(rated_table(store, stored), is_judged=True)
    outcomes = outcomes_of(table, benchmark.rubric.pass_mark)
    return is_mostly_unscored(outcomes.counts, outcomes.unscored)


def ratings_of(store: Store, stored: StoredTrial, suite: Suite, table: CaseTable | None = None) -> Ratings:
    """By the references that are stored with the definition of its benchmark."""
    from assay.analysis.ratings import rate, with_plan

    benchmark = benchmark_of(stored, suite)
    kept = store.trial_references(stored.id)
    table = table or rated_table(store, stored)
    if stored.trial.cases and benchmark.expects_scores:
        # Also where every scorer failed, so that code without a score does not pass.
        table = replace(table, is_judged=True)
    expects_scores = benchmark.expects_scores
    ratings = rate(table, benchmark.rubric, benchmark.limits, kept, expects_scores=expects_scores)
    trial = stored.trial
    return replace(
        with_plan(ratings, trial.planned_measured if trial.is_plan_known else 0),
        baseline_overall=baseline_score(suite, benchmark.id, trial.agent.name),
    )


def read_current_ratings(
    store: Store, stored: StoredTrial, suite: Suite, counts: Mapping[str, int]
) -> Ratings | None:
    """The stored ratings of a trial; None where they are missing, incomplete, or older than its executions.

    `counts` are its measured executions by status: a run that is going on or was resumed has more than were rated.
    """
    kept = store.ratings([stored.id]).get(stored.id)
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
    return next(one for one in suite.benchmarks if one.id == stored.trial.benchmark)


def failed_cases(store: Store, ref: str) -> dict[str, frozenset[str]]:
    """Cases that were not passed by every agent in every repetition, by benchmark."""
    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' is not of a suite, so it has no cases.")
    marks = {benchmark.id: benchmark.rubric.pass_mark for benchmark in suite.benchmarks}
    failed: dict[str, set[str]] = {}
    for stored in (stored for stored in found.trials if stored.trial.cases):
        table = store.case_table(stored.id)
        scores = table.metrics.get("score") or [None] * len(table.cases)
        for case, status, score in zip(table.cases, table.statuses, scores, strict=True):
            if status != "ok" or (score is not None and not is_pass(score, marks[stored.trial.benchmark])):
                failed.setdefault(stored.trial.benchmark, set()).add(case)
    if not failed:
        raise PlanError(f"Every case of run '{found.id}' was passed.")
    return {benchmark: frozenset(cases) for benchmark, cases in failed.items()}


@dataclass(frozen=True, slots=True)
class Rescored:
    run: Run
    spent: Judging | None
    """What judging again used up; None where no judge was asked."""
    kept: int = 0
    """Executions whose answers were shortened when they were stored: they keep the scores of the whole answer."""


def rescore(store: Store, ref: str) -> Rescored:
    """Judge the stored outputs of a run again, with the scorers that its suite has; nothing is run."""
    from assay.execute.judging import judged_again
    from assay.pipeline.sandboxes import record_sandbox

    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' is not of a suite, so there is nothing to judge.")
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
        stored_whole = _stored_whole(store.scored_executions(stored.id), kept)
        store.rescore(stored.id, judged_again(benchmark, stored_whole, spent))
    _update_state(store, found)
    rate_trials(store, found, suite)
    store.refresh()
    return Rescored(store.run(found.id), _judging(together(spent)), len(kept))


def _stored_whole(
    executions: Iterable[tuple[int, Execution]], kept: list[int]
) -> Iterator[tuple[int, Execution]]:
    """Those that can be judged again; the numbers of the others are added to `kept`."""
    from assay.execute.answer_limits import is_judgeable

    for number, execution in executions:
        if is_judgeable(execution):
            yield number, execution
        else:
            kept.append(number)


def _update_state(store: Store, run: Run) -> None:
    """A run that failed because its scorers did may be complete now, and the first to tell references."""
    if run.ended is None or run.state not in (RunState.COMPLETED, RunState.FAILED):
        return
    from assay.pipeline.references import establish_references

    state = state_of(store, run, [store.counts(stored.id) for stored in run.trials])
    if state is RunState.COMPLETED and run.state is RunState.FAILED:
        establish_references(store, run.id, run.ended)
    store.finish(run.id, state, run.ended)


def _judging(spent: Mapping[str, float]) -> Judging | None:
    calls, tokens, usd = (spent.get(name) for name in JUDGING)
    return None if calls is None else Judging(int(calls), tokens, usd)
