from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.computing import at_most
from tests.store.examples import GPT, NOON, NOP, batch, begin, execution, plan_of, small_suite, suite_plan

from assay.model import DIMENSIONS, Batch, Execution, Phase, Rating, Ratings, Run, Status
from assay.store.run_lists import TrialSummary
from assay.store.store import Store

REASONS = {"exact": "they differ"}


def _suite_run(store: Store, run_id: str = "r1", hours: float = 0) -> Run:
    return begin(store, run_id, suite_plan(small_suite(), GPT), hours=hours)


def _trial(run: Run, index: int = 0) -> int:
    return run.trials[index].id


def _ratings(overall: float | None, **dimensions: float) -> Ratings:
    return Ratings(
        {name: Rating(name, dimensions.get(name)) for name in DIMENSIONS},
        Rating("overall", overall),
        outcomes={},
        unscored=0,
        cases=2,
        solved=1.0,
    )


def _answered(
    repetition: int, case: str, measurements: Mapping[str, float], status: Status = Status.OK
) -> Execution:
    return execution(repetition, case=case, measurements=measurements, status=status)


def test_details_of_executions_come_back(store: Store) -> None:
    run = _suite_run(store)
    detail = {"spans": [{"name": "llm", "seconds": 0.5}], "reasons": {"exact": "ä"}, "unscored": ["judge"]}
    made = [execution(0, detail=detail), execution(1), execution(2, detail={})]
    store.add("r1", batch(made))
    assert list(store.executions(_trial(run))) == made


def test_the_case_table_has_the_measured_executions_in_the_order_of_storing(store: Store) -> None:
    run = _suite_run(store)
    made = [
        execution(0, case="c1", phase=Phase.WARMUP, measurements={"score": 1, "usd": 9}),
        _answered(
            1, "c2", {"score": 0.5, "score.exact": 0.25, "seconds": 2, "usd": 0.1, "tokens": 7, "ttft": 0.1}
        ),
        _answered(0, "c1", {"seconds": 9.0}, Status.TIMEOUT),
        _answered(0, "c2", {"score": 1, "cpu_seconds": 3, "rss_max_bytes": 4, "else": 5, "scores": 6}),
    ]
    store.add("r1", batch(made))
    table = store.case_table(_trial(run))
    assert (table.cases, table.repetitions) == (["c2", "c1", "c2"], [1, 0, 0])
    assert table.statuses == ["ok", "timeout", "ok"]
    assert {name: list(column) for name, column in table.metrics.items()} == {
        "score": [0.5, None, 1.0],
        "seconds": [2.0, 9.0, None],
        "usd": [0.1, None, None],
        "tokens": [7.0, None, None],
        "cpu_seconds": [None, None, 3.0],
        "rss_max_bytes": [None, None, 4.0],
        "ttft": [0.1, None, None],
        "score.exact": [0.25, None, None],
    }


def test_the_case_table_of_a_trial_without_executions_is_empty(store: Store) -> None:
    table = store.case_table(_trial(_suite_run(store)))
    assert (table.cases, table.statuses, table.metrics["score"]) == ([], [], [])


def test_columns_of_trials_have_the_metrics_that_are_asked_for_and_gaps_where_they_are_missing(
    store: Store,
) -> None:
    run = _suite_run(store)
    made = [
        execution(0, case="c1", phase=Phase.WARMUP, measurements={"seconds": 5.0}),
        _answered(0, "c1", {"seconds": 1.0, "usd": 0.1, "score": 1.0}),
        _answered(0, "c2", {"seconds": 2.0, "score": 0.0}),
    ]
    store.add("r1", batch(made))
    [(trial, columns)] = store.columns([_trial(run)], ["seconds", "usd", "tokens"])
    assert trial == _trial(run)
    assert list(columns.cases) == ["c1", "c2"]
    assert {name: list(column) for name, column in columns.metrics.items()} == {
        "seconds": [1.0, 2.0],
        "usd": [0.1, None],
    }


def test_ratings_are_written_and_what_is_unrated_stays_empty(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch([execution(0, case="c1")]))
    store.rate(_trial(run), _ratings(0.75, accuracy=1.0, cost=0.0))
    (rated,) = store.latest_trials()
    assert (rated.accuracy, rated.cost, rated.overall) == (1.0, 0.0, 0.75)
    assert (rated.speed, rated.efficiency, rated.reliability) == (None, None, None)


def test_rating_again_replaces_what_was_rated(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch([execution(0, case="c1")]))
    store.rate(_trial(run), _ratings(0.75, accuracy=1.0))
    store.rate(_trial(run), _ratings(None, speed=0.5))
    (rated,) = store.latest_trials()
    assert (rated.accuracy, rated.speed, rated.overall) == (None, 0.5, None)


def test_ok_measured_executions_are_read_with_their_numbers_to_be_judged(store: Store) -> None:
    run = _suite_run(store)
    made = [
        execution(0, phase=Phase.WARMUP),
        execution(0, case="c1", output="2"),
        execution(1, case="c1", status=Status.FAILED),
        execution(2, case="c1", output="3"),
    ]
    store.add("r1", batch(made))
    numbered = store.executions_to_rescore(_trial(run))
    assert list(numbered) == [(1, made[1]), (3, made[3])]
    assert list(numbered) == list(numbered)


def test_many_executions_to_be_judged_are_read_in_chunks_without_losing_any(store: Store) -> None:
    run = _suite_run(store)
    statuses = [Status.OK if number % 3 else Status.FAILED for number in range(2500)]
    store.add("r1", batch(execution(n, status=status) for n, status in enumerate(statuses)))
    numbers = [seq for seq, _ in store.executions_to_rescore(_trial(run))]
    assert numbers == [n for n in range(2500) if n % 3]


def test_scores_are_replaced_and_all_else_is_left(store: Store) -> None:
    run = _suite_run(store)
    kept = {"seconds": 1.0, "scores": 3.0}
    old = {"score": 0.0, "score.exact": 0.0, "score.judge": 0.5}
    detail = {"spans": [1], "reasons": {"exact": "old"}}
    store.add("r1", batch([execution(n, measurements={**kept, **old}, detail=detail) for n in range(3)]))
    judged = [(0, {"score": 1.0, "score.exact": 1.0}, {"reasons": REASONS}), (2, {}, None)]
    assert store.rescore(_trial(run), judged) == 2
    first, second, third = store.executions(_trial(run))
    assert first.measurements == {**kept, "score": 1.0, "score.exact": 1.0}
    assert first.detail == {"spans": [1], "reasons": REASONS}
    assert (second.measurements, second.detail) == ({**kept, **old}, detail)
    assert (third.measurements, third.detail) == (kept, detail)


def test_an_execution_without_details_gets_those_of_its_judgement(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch([execution(0), execution(1)]))
    store.rescore(_trial(run), [(0, {"score": 1}, {"unscored": ["judge"]}), (1, {"score": 0.5}, None)])
    first, second = store.executions(_trial(run))
    assert (first.detail, second.detail) == ({"unscored": ["judge"]}, None)
    assert list(store.series(_trial(run))["score"].values) == [1.0, 0.5]


def test_many_executions_are_judged_again_while_they_are_read(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch(execution(n, measurements={"score": 0, "score.exact": 0}) for n in range(2300)))
    judged = (
        (seq, {"score": one.repetition / 2300}, {"reasons": REASONS})
        for seq, one in store.executions_to_rescore(_trial(run))
    )
    assert store.rescore(_trial(run), judged) == 2300
    table = store.case_table(_trial(run))
    assert list(table.metrics["score"]) == [n / 2300 for n in range(2300)]
    assert "score.exact" not in table.metrics


def test_a_store_in_memory_can_be_judged_again() -> None:
    with Store.open("sqlite:///:memory:") as store:
        run = _suite_run(store)
        store.add("r1", batch([execution(0)]))
        judged = ((seq, {"score": 1.0}, None) for seq, _ in store.executions_to_rescore(_trial(run)))
        assert store.rescore(_trial(run), judged) == 1


def test_judging_breaks_off_without_a_trace(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch(execution(n, measurements={"score": 0.5}) for n in range(600)))
    judged = [(n, {"score": 1.0}, None) for n in range(599)] + [(599, {"score": "good"}, None)]
    with pytest.raises(ValueError, match="good"):
        store.rescore(_trial(run), judged)  # type: ignore[arg-type]
    assert list(store.case_table(_trial(run)).metrics["score"]) == [0.5] * 600


def test_numbers_that_no_execution_has_are_ignored(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch([execution(0)]))
    assert store.rescore(_trial(run), [(0, {"score": 0.0}, None), (7, {"score": 1.0}, None)]) == 1
    assert store.rescore(_trial(run), [(0, {"score": 0.0}, None), (0, {"score": 1.0}, None)]) == 1
    assert list(store.case_table(_trial(run)).metrics["score"]) == [1.0]


def test_a_case_table_of_fifty_thousand_executions_is_read_in_half_a_second(store: Store) -> None:
    run = _suite_run(store)
    measured = {"score": 1.0, "score.exact": 1.0, "seconds": 0.1, "usd": 0.01, "tokens": 100.0, "ttft": 0.01}
    for start in range(0, 50_000, 5000):
        store.add("r1", batch(_answered(n, f"c{n % 100}", measured) for n in range(start, start + 5000)))
    with at_most(0.5):
        table = store.case_table(_trial(run))
    assert (len(table.cases), set(table.metrics["usd"]), table.repetitions[-1]) == (50_000, {0.01}, 49_999)


def test_the_latest_trial_of_each_agent_on_each_benchmark_is_listed(store: Store) -> None:
    plan = suite_plan(small_suite("small", "sums", "words"), GPT, NOP)
    old, new = begin(store, "new", plan, hours=1), begin(store, "old", plan)
    for run_id in ("old", "new"):
        store.add(run_id, batch(execution(0, trial=trial, case="c1") for trial in (0, 2)))
    store.add("old", batch([execution(0, trial=3, case="c1")]))
    found = store.latest_trials()
    assert [(one.agent, one.benchmark, one.run_id) for one in found] == [
        ("gpt", "sums", "new"),
        ("gpt", "words", "new"),
        ("nop", "words", "old"),
    ]
    assert found[0].trial_id in {stored.id for stored in (*old.trials, *new.trials)}


def test_a_summary_tells_what_a_ranking_needs(store: Store) -> None:
    run = _suite_run(store)
    store.add("r1", batch([execution(0, case="c1"), execution(1, case="c1")]))
    store.rate(
        _trial(run), _ratings(0.5, accuracy=0.25, speed=0.5, efficiency=0.75, cost=1.0, reliability=0.0)
    )
    assert store.latest_trials() == [
        TrialSummary(
            run_id="r1",
            trial_id=_trial(run),
            agent="gpt",
            agent_version="3",
            benchmark="sums",
            suite="small",
            category="speed",
            benchmark_hash="sums-hash",
            started=NOON,
            ended=NOON + timedelta(seconds=2.5),
            accuracy=0.25,
            speed=0.5,
            efficiency=0.75,
            cost=1.0,
            reliability=0.0,
            overall=0.5,
            simulated=False,
            status="ok",
        )
    ]


def test_versions_of_an_agent_count_as_one_and_suites_apart(store: Store) -> None:
    begin(store, "r1", suite_plan(small_suite("one"), GPT))
    begin(store, "r2", suite_plan(small_suite("one"), replace(GPT, version="4")), hours=1)
    begin(store, "r3", suite_plan(small_suite("two"), GPT))
    for run_id in ("r1", "r2", "r3"):
        store.add(run_id, batch([execution(0)]))
    assert [(one.suite, one.agent_version) for one in store.latest_trials()] == [("one", "4"), ("two", "3")]
    assert [one.run_id for one in store.latest_trials(suite="two")] == ["r3"]
    assert [one.run_id for one in store.latest_trials(since=NOON + timedelta(minutes=1))] == ["r2"]


def test_a_trial_without_an_ok_measured_execution_is_ignored(store: Store) -> None:
    _suite_run(store, "good")
    _suite_run(store, "bad", hours=1)
    store.add("good", batch([execution(0)]))
    store.add("bad", batch([execution(0, status=Status.FAILED), execution(0, phase=Phase.WARMUP)]))
    assert [one.run_id for one in store.latest_trials()] == ["good"]


def test_trials_of_code_are_listed_without_a_suite(store: Store) -> None:
    begin(store, "r1", plan_of())
    store.add("r1", batch([execution(0)]))
    (one,) = store.latest_trials()
    assert (one.agent, one.benchmark, one.suite, one.category) == ("parser", "parse", "", "")


def test_one_simulated_execution_makes_the_trial_simulated(store: Store) -> None:
    run = begin(store, "r1", suite_plan(small_suite(), GPT, NOP))
    store.add("r1", batch([execution(0), execution(0, trial=1, detail={"simulated": False})]))
    store.add("r1", batch([execution(1), execution(1, trial=1, detail={"simulated": True})]))
    store.add("r1", batch([execution(2, trial=1)]))
    assert {one.trial_id: one.simulated for one in store.latest_trials()} == {
        _trial(run, 0): False,
        _trial(run, 1): True,
    }


def test_a_trial_that_was_stopped_says_so(store: Store) -> None:
    _suite_run(store)
    store.add("r1", Batch((execution(0),), stopped={0: "the budget is spent"}))
    assert [one.status for one in store.latest_trials()] == ["stopped"]
