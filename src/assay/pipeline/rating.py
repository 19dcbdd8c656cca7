"""What a run of a suite is worth: ratings, cases that failed, judging again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.errors import PlanError
from assay.execute.spending import together
from assay.model import (
    Benchmark,
    CaseTable,
    Ratings,
    Run,
    StoredTrial,
    Suite,
)
from assay.model.metric import JUDGING
from assay.model.rating import Judging
from assay.plugin import lookup
from assay.store.store import Store

Watch = Callable[[int], None]
"""Is told how many trials were rated again so far: a thousand take half a minute."""


def unwatched(rated: int) -> None: ...


def rate_trials(store: Store, begun: Run, suite: Suite) -> None:
    """Work out the five ratings of each trial of a suite, and keep them for leaderboards."""
    for stored in begun.trials:
        store.rate(stored.id, ratings_of(store, stored, suite))


def set_baseline(store: Store, name: str, run_id: str, watch: Watch = unwatched) -> int:
    """Gives a run a name; how many trials were rated again, by the references that they have now."""
    with _rating_again(store, watch) as rated:
        store.set_baseline(name, run_id)
    return len(rated)


def delete_baseline(store: Store, name: str, watch: Watch = unwatched) -> tuple[str, int]:
    """Takes the name away; the run that had it, and how many trials were rated again."""
    with _rating_again(store, watch) as rated:
        run_id = store.delete_baseline(name)
    return run_id, len(rated)


@contextmanager
def _rating_again(store: Store, watch: Watch) -> Iterator[list[int]]:
    """Trials of those suites whose baseline is another one afterwards: views show ratings as they are kept."""
    rated: list[int] = []
    before = {suite: store.baseline_of(suite) for suite in store.categories()}
    yield rated
    for suite, run_id in before.items():
        if store.baseline_of(suite) != run_id:
            for trial_id in _rated_again(store, suite):
                rated.append(trial_id)
                watch(len(rated))
    if rated:
        store.refresh()


def _rated_again(store: Store, name: str) -> Iterator[int]:
    quantities: dict[str, dict[str, float]] = {}
    for run_id in store.rated_runs(name):
        suite = store.suite_of(run_id)
        assert suite is not None
        for stored in store.run(run_id).trials:
            benchmark = _benchmark_of(stored, suite)
            # By the rubric too: it decides what the baseline solved, and what is asked of it.
            key = repr((benchmark.id, benchmark.rubric))
            if key not in quantities:
                quantities[key] = _quantities_of_baseline(store, suite, benchmark)
            store.rate(stored.id, _rate(store.case_table(stored.id), benchmark, quantities[key]))
            yield stored.id


def ratings_of(store: Store, stored: StoredTrial, suite: Suite, table: CaseTable | None = None) -> Ratings:
    benchmark = _benchmark_of(stored, suite)
    baseline = _quantities_of_baseline(store, suite, benchmark)
    return _rate(table or store.case_table(stored.id), benchmark, baseline)


def _rate(table: CaseTable, benchmark: Benchmark, baseline: Mapping[str, float]) -> Ratings:
    from assay.analysis.ratings import rate

    return rate(table, benchmark.rubric, benchmark.limits, baseline)


def _benchmark_of(stored: StoredTrial, suite: Suite) -> Benchmark:
    return next(one for one in suite.benchmarks if one.id == stored.trial.benchmark)


def _quantities_of_baseline(store: Store, suite: Suite, benchmark: Benchmark) -> dict[str, float]:
    """As ratings have them: usd and tokens for a solved case, so that the baseline itself is rated 0.5."""
    quantities = dict(store.baseline_quantities(suite.name).get(benchmark.id, {}))
    wanted = {"usd", "tokens"} & quantities.keys()
    for name in wanted:
        del quantities[name]
    run_id = store.baseline_of(suite.name)
    if run_id is None or wanted <= benchmark.rubric.reference.keys():
        return quantities
    from assay.analysis.ratings import per_solved

    point = suite.name, benchmark.id
    trials = (one for one in store.run(run_id).trials if (one.trial.suite, one.trial.benchmark) == point)
    return quantities | per_solved([store.case_table(one.id) for one in trials], benchmark.rubric.pass_mark)


def failed_cases(store: Store, ref: str) -> dict[str, frozenset[str]]:
    """Cases that were not passed by every agent in every repetition, by benchmark."""
    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' is not of a suite, so it has no cases.")
    marks = {benchmark.id: benchmark.rubric.pass_mark for benchmark in suite.benchmarks}
    failed: dict[str, set[str]] = {}
    for stored in found.trials:
        table = store.case_table(stored.id)
        scores = table.metrics.get("score") or [None] * len(table.cases)
        for case, status, score in zip(table.cases, table.statuses, scores, strict=True):
            if status != "ok" or (score is not None and score < marks[stored.trial.benchmark]):
                failed.setdefault(stored.trial.benchmark, set()).add(case)
    if not failed:
        raise PlanError(f"Every case of run '{found.id}' was passed.")
    return {benchmark: frozenset(cases) for benchmark, cases in failed.items()}


@dataclass(frozen=True, slots=True)
class Rescored:
    run: Run
    spent: Judging | None
    """What judging again used up; None where no judge was asked."""


def rescore(store: Store, ref: str) -> Rescored:
    """Judge the stored outputs of a run again, with the scorers that its suite has; nothing is run."""
    from assay.execute.judging import judged_again

    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' is not of a suite, so there is nothing to judge.")
    for file in found.load:
        lookup.load_file(Path(file))
    spent: list[Mapping[str, float]] = []
    for stored in found.trials:
        benchmark = _benchmark_of(stored, suite)
        store.rescore(stored.id, judged_again(benchmark, store.scored_executions(stored.id), spent))
    rate_trials(store, found, suite)
    store.refresh()
    return Rescored(store.run(found.id), _judging(together(spent)))


def _judging(spent: Mapping[str, float]) -> Judging | None:
    calls, tokens, usd = (spent.get(name) for name in JUDGING)
    return None if calls is None else Judging(int(calls), tokens, usd)
