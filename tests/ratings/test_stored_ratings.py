"""Reports show the ratings that were stored with a trial, unless its executions say more by now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.past import Past

from assay.model import Batch, Execution, Phase, Ratings, Run, RunState, Status, Suite
from assay.pipeline.leaderboard import leaderboards
from assay.pipeline.ratings import rate_trials, ratings_of, read_current_ratings
from assay.pipeline.report import report_of
from assay.store.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open("sqlite://") as opened:
        yield opened


def rated_run(store: Store, past: Past, **options: Any) -> Run:
    run = past.run(**options)
    rate_trials(store, run, past.suite)
    return run


def shown_ratings(store: Store, run: Run) -> Ratings:
    found = report_of(store, run.id, is_brief=True).trials[0].ratings
    assert found is not None
    return found


@pytest.mark.parametrize("options", [{}, {"wrong": 7}, {"failed": 5}, {"failed": 30}, {"only": 4}])
def test_stored_ratings_equal_those_worked_out_again(store: Store, options: dict[str, int]) -> None:
    past = Past(store)
    run = rated_run(store, past, **options)
    trial = run.trials[0]
    kept = read_current_ratings(store, trial, past.suite, store.counts(trial.id))
    worked_out = ratings_of(store, trial, past.suite)
    assert kept is not None
    for field in fields(Ratings):
        assert getattr(kept, field.name) == getattr(worked_out, field.name), field.name


def test_a_report_shows_the_stored_ratings(store: Store) -> None:
    run = rated_run(store, Past(store), wrong=7)
    stored = shown_ratings(store, run)
    store.rate(run.trials[0].id, replace(stored, overall=replace(stored.overall, value=0.125)))
    assert shown_ratings(store, run).overall.value == 0.125


def test_a_run_that_went_on_after_it_was_rated_is_rated_by_all_its_executions(store: Store) -> None:
    run = rated_run(store, Past(store), only=4)
    assert (shown_ratings(store, run).cases, shown_ratings(store, run).dimensions["accuracy"].value) == (
        4,
        1.0,
    )
    wrong = Execution(0, 0, Phase.MEASURED, 0, Status.OK, 1.0, {"seconds": 1.0, "score": 0.0}, case="c04")
    store.add(run.id, Batch((wrong,)))
    store.finish(run.id, RunState.INTERRUPTED, run.started)
    assert (shown_ratings(store, run).cases, shown_ratings(store, run).dimensions["accuracy"].value) == (
        5,
        0.8,
    )


def test_a_run_that_was_never_rated_has_ratings_in_its_report(store: Store) -> None:
    assert shown_ratings(store, Past(store).run(wrong=15)).dimensions["accuracy"].value == 0.5


def with_reference(past: Past, seconds: float) -> Suite:
    (benchmark,) = past.suite.benchmarks
    rubric = replace(benchmark.rubric, reference={"seconds": seconds})
    return replace(past.suite, benchmarks=(replace(benchmark, rubric=rubric),), hash=f"by {seconds}")


def speeds(store: Store, *runs: Run) -> list[float | None]:
    kept = store.ratings([run.trials[0].id for run in runs])
    return [kept[run.trials[0].id].dimensions["speed"].value for run in runs]


def test_a_run_with_another_rubric_rates_earlier_trials_by_it_whoever_is_rated_last(store: Store) -> None:
    past = Past(store)
    earlier = rated_run(store, past)
    (before,) = speeds(store, earlier)
    past.suite = with_reference(past, 1000.0)
    later = rated_run(store, past, version="2")
    assert before is not None
    assert before < 0.9
    assert all(speed is not None and speed > 0.99 for speed in speeds(store, earlier, later))
    rate_trials(store, earlier, with_reference(past, 1.0))
    assert all(speed is not None and speed > 0.99 for speed in speeds(store, earlier, later))


def test_a_board_aligns_what_an_older_version_left_by_two_rubrics_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = Past(store)
    own = past.suite
    earlier = past.run()
    past.agent, past.suite = "other", with_reference(past, 1000.0)
    later = past.run()
    for run, suite in ((earlier, own), (later, past.suite)):
        store.rate(run.trials[0].id, ratings_of(store, run.trials[0], suite))
    (board,) = leaderboards(store)
    assert all(speed is not None and speed > 0.99 for speed in speeds(store, earlier, later))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it is stored")

    monkeypatch.setattr("assay.pipeline.ratings.ratings_of", refuse)
    assert leaderboards(store)[0].standings == board.standings
