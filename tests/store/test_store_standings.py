"""Views that rank agents, and what commands that rank them read; all of it on both databases."""

from __future__ import annotations

import json
import threading
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.store.examples import ENVIRONMENT, NOON, NOP, batch, begin, execution, small_suite, suite_plan
from tests.store.test_store_schema import SCHEMAS, _restore

from assay.model import (
    DIMENSIONS,
    WEIGHTS,
    AgentVersion,
    Batch,
    Case,
    Rating,
    Ratings,
    Run,
    RunState,
    Suite,
)
from assay.store.standings import Filter
from assay.store.store import Store, upgrade

# The specification's views, sections 3.1 and 5.1, column by column.
MATRIX = [
    "agent_id",
    "avg_accuracy",
    "avg_speed",
    "avg_efficiency",
    "avg_cost",
    "avg_reliability",
    "accuracy_rank",
    "speed_rank",
    "efficiency_rank",
    "cost_rank",
    "reliability_rank",
    "overall_score",
    "overall_rank",
]
LEADERBOARD = [
    "agent_id",
    "agent_name",
    "benchmark_category",
    "scores_and_ranks",
    "benchmarks_completed",
    "last_benchmark_date",
    "best_ranking",
]


@pytest.fixture
def sql(url: str, store: Store) -> Iterator[sa.Connection]:
    address = url.replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(address, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


def rated(ok: int = 4, cases: int = 2, weights: Mapping[str, float] = WEIGHTS, **values: float) -> Ratings:
    """As a trial of the small suite would get them: two cases, two repetitions."""
    return Ratings(
        {name: Rating(name, values.get(name), basis="told") for name in DIMENSIONS},
        Rating("overall", values.get("overall", 0.5)),
        {"pass": ok},
        unscored=0,
        cases=cases,
        solved=1.0,
        weights=weights,
        attempted=cases,
        names=("c1", "c2")[:cases],
        marks={name: array("f", [value] * cases) for name, value in values.items() if name in DIMENSIONS},
    )


def play(
    store: Store,
    run_id: str,
    agents: Mapping[str, Ratings | None],
    *,
    suite: Suite | None = None,
    started: datetime = NOON,
    stopped: str | None = None,
    axes: Mapping[str, object] | None = None,
) -> Run:
    """A finished run in which agents got these ratings on every benchmark; None is a trial that was never rated."""
    plan = suite_plan(suite or small_suite(), *(replace(NOP, name=name) for name in agents))
    plan = replace(plan, trials=tuple(replace(trial, axes=axes or {}) for trial in plan.trials))
    run = store.begin(plan, ENVIRONMENT, run_id, started, "me")
    made = [execution(0, trial=stored.trial.index, case="c1") for stored in run.trials]
    reasons = {} if stopped is None else {stored.trial.index: stopped for stored in run.trials}
    store.add(run_id, Batch(tuple(made), stopped=reasons))
    for stored in run.trials:
        ratings = agents[stored.trial.agent.name]
        if ratings is not None:
            store.rate(stored.id, ratings)
    store.finish(run_id, RunState.COMPLETED, started)
    return run


def matrix(sql: sa.Connection, *columns: str) -> dict[str, object]:
    rows = sql.execute(sa.text("SELECT * FROM agent_comparison_matrix")).mappings().all()
    return {
        row["agent_id"]: row[columns[0]] if len(columns) == 1 else tuple(row[name] for name in columns)
        for row in rows
    }


def leaderboard(sql: sa.Connection) -> list[dict[str, object]]:
    rows = sql.execute(sa.text("SELECT * FROM benchmark_leaderboard")).mappings().all()
    return [{**row, "scores_and_ranks": _read(row["scores_and_ranks"])} for row in rows]


def _read(written: object) -> object:
    return json.loads(written) if isinstance(written, str) else written


@pytest.mark.parametrize(
    ("view", "columns"), [("agent_comparison_matrix", MATRIX), ("benchmark_leaderboard", LEADERBOARD)]
)
def test_views_have_the_columns_of_the_specification(
    sql: sa.Connection, view: str, columns: list[str]
) -> None:
    found = list(sql.execute(sa.text(f"SELECT * FROM {view}")).keys())
    assert found[: len(columns)] == columns


def test_agents_are_averaged_over_benchmarks_and_ranked_on_each_dimension(
    store: Store, sql: sa.Connection
) -> None:
    suite = small_suite("small", "sums", "words")
    play(
        store,
        "r1",
        {
            "a": rated(accuracy=0.5, speed=0.9, reliability=1.0),
            "b": rated(accuracy=0.9, speed=0.2, reliability=1.0),
        },
        suite=suite,
    )
    assert matrix(sql, "avg_accuracy", "accuracy_rank", "speed_rank", "reliability_rank") == {
        "a": (pytest.approx(50), 2, 1, 1),
        "b": (pytest.approx(90), 1, 2, 1),
    }
    assert matrix(sql, "benchmarks_completed", "benchmarks_total", "suite_id") == dict.fromkeys(
        "ab", (2, 2, "small")
    )


def test_overall_is_over_the_dimensions_that_all_agents_have(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": rated(accuracy=0.5, speed=1.0), "b": rated(accuracy=0.8)})
    assert matrix(sql, "overall_score") == {"a": pytest.approx(50), "b": pytest.approx(80)}
    assert matrix(sql, "avg_speed", "speed_rank", "avg_cost", "cost_rank") == {
        "a": (pytest.approx(100), 1, None, None),
        "b": (None, None, None, None),
    }


def test_overall_goes_by_the_weights_of_the_rubric(store: Store, sql: sa.Connection) -> None:
    weights = {**WEIGHTS, "accuracy": 0.25, "speed": 0.75}
    play(store, "r1", {"a": rated(accuracy=1.0, speed=0.2, weights=weights)})
    assert matrix(sql, "overall_score") == {"a": pytest.approx(40)}


def test_only_the_latest_successful_trial_counts(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": rated(accuracy=0.1)})
    play(store, "r2", {"a": rated(accuracy=0.6)}, started=NOON + timedelta(hours=1))
    play(store, "r3", {"a": rated(ok=0, accuracy=0.9)}, started=NOON + timedelta(hours=2))
    play(store, "r4", {"a": rated(accuracy=0.9)}, started=NOON + timedelta(hours=3), stopped="over budget")
    assert matrix(sql, "avg_accuracy") == {"a": pytest.approx(60)}


def test_a_trial_of_a_few_cases_does_not_replace_a_whole_one(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": rated(accuracy=0.6)})
    play(store, "r2", {"a": rated(accuracy=0.1, cases=1)}, started=NOON + timedelta(hours=1))
    assert matrix(sql, "avg_accuracy", "benchmarks_completed") == {"a": (pytest.approx(60), 1)}
    [entry] = store.entries(Filter())
    assert (entry.run_id, entry.is_whole, entry.cases, entry.all_cases) == ("r1", True, 2, 2)


def test_a_trial_of_todays_benchmark_goes_before_a_whole_one_of_an_older(
    store: Store, sql: sa.Connection
) -> None:
    play(store, "r1", {"a": rated(accuracy=0.6), "b": rated(accuracy=0.7)})
    changed = small_suite(hash="s2")
    changed = replace(changed, benchmarks=tuple(replace(one, hash="new") for one in changed.benchmarks))
    play(store, "r2", {"a": rated(accuracy=0.1, cases=1)}, suite=changed, started=NOON + timedelta(hours=1))
    assert matrix(sql, "avg_accuracy", "benchmarks_completed") == {
        "a": (pytest.approx(10), 0),
        "b": (pytest.approx(70), 0),
    }
    found = {entry.contender: (entry.is_current, entry.is_whole) for entry in store.entries(Filter())}
    assert found == {"a": (True, False), "b": (False, True)}


def test_a_benchmark_that_the_suite_no_longer_has_counts_no_more(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": rated(accuracy=0.6)}, suite=small_suite("small", "sums", "words"))
    smaller = small_suite("small", "sums", hash="s2")
    play(store, "r2", {"b": rated(accuracy=0.7)}, suite=smaller, started=NOON + timedelta(hours=1))
    assert matrix(sql, "benchmarks_completed", "benchmarks_total") == {"a": (1, 1), "b": (1, 1)}
    assert store.benchmarks("small") == ["sums"]


def test_who_completed_fewer_benchmarks_does_not_lead_by_an_easy_one(
    store: Store, sql: sa.Connection
) -> None:
    suite = small_suite("small", "sums", "words")
    play(store, "r1", {"whole": rated(accuracy=0.5)}, suite=suite)
    part = begin(store, "r2", suite_plan(suite, replace(NOP, name="part")), hours=1)
    store.add("r2", batch([execution(0, case="c1")]))
    store.rate(part.trials[0].id, rated(accuracy=0.9))
    store.finish("r2", RunState.COMPLETED, NOON)
    assert matrix(sql, "accuracy_rank", "overall_rank", "benchmarks_completed") == {
        "whole": (1, 1, 2),
        "part": (2, 2, 1),
    }


def test_simulated_agents_are_ranked_apart(store: Store, sql: sa.Connection) -> None:
    run = begin(store, "r1", suite_plan(small_suite(), NOP, replace(NOP, name="sim")))
    store.add("r1", batch([execution(0), execution(0, trial=1, detail={"simulated": True})]))
    for stored, accuracy in zip(run.trials, (0.2, 0.9), strict=True):
        store.rate(stored.id, rated(accuracy=accuracy))
    store.finish("r1", RunState.COMPLETED, NOON)
    assert matrix(sql, "accuracy_rank", "simulated") == {"nop": (1, False), "sim": (1, True)}


def test_points_of_a_sweep_are_contenders_of_their_own(store: Store, sql: sa.Connection) -> None:
    plan = suite_plan(small_suite(), NOP, NOP)
    points: list[dict[str, object]] = [{"size": 1}, {"size": 2, "mode": "x"}]
    swept = tuple(replace(trial, axes=point) for trial, point in zip(plan.trials, points, strict=True))
    run = begin(store, "r1", replace(plan, trials=swept))
    store.add("r1", batch([execution(0), execution(0, trial=1)]))
    for stored in run.trials:
        store.rate(stored.id, rated(accuracy=0.5))
    store.finish("r1", RunState.COMPLETED, NOON)
    assert set(matrix(sql, "agent_id")) == {"nop[size=1]", "nop[size=2, mode=x]"}
    assert {entry.agent for entry in store.entries(Filter())} == {"nop"}


def test_an_agent_without_any_rating_has_a_row_without_figures(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": rated(), "b": rated()})
    assert matrix(sql, "avg_accuracy", "accuracy_rank", "overall_score", "overall_rank") == dict.fromkeys(
        "ab", (None, None, None, None)
    )


def test_trials_that_were_never_rated_are_not_ranked(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": None})
    assert matrix(sql, "agent_id") == {}
    assert leaderboard(sql) == []
    assert store.entries(Filter()) == []


def test_the_leaderboard_tells_score_and_rank_of_each_dimension_by_category(
    store: Store, sql: sa.Connection
) -> None:
    now = datetime.now(UTC)
    play(store, "r1", {"a": rated(accuracy=0.5, speed=0.9), "b": rated(accuracy=0.9, speed=0.4)}, started=now)
    first, second = leaderboard(sql)
    assert (first["agent_id"], first["benchmark_category"], first["overall_rank"]) == ("b", "speed", 1)
    assert first["scores_and_ranks"] == {
        "accuracy": {"score": pytest.approx(90), "rank": 1},
        "speed": {"score": pytest.approx(40), "rank": 2},
        "efficiency": {"score": None, "rank": None},
        "cost": {"score": None, "rank": None},
        "reliability": {"score": None, "rank": None},
    }
    assert (second["agent_name"], second["best_ranking"], second["overall_rank"]) == ("a", 1, 2)


def test_the_leaderboard_forgets_what_is_older_than_30_days(store: Store, sql: sa.Connection) -> None:
    now = datetime.now(UTC)
    play(store, "old", {"a": rated(accuracy=0.5), "b": rated(accuracy=0.5)}, started=now - timedelta(days=31))
    play(store, "new", {"b": rated(accuracy=0.9, cases=1)}, started=now - timedelta(days=29))
    [row] = leaderboard(sql)
    assert row["agent_id"] == "b"
    assert row["overall_score"] == pytest.approx(90)


def test_a_category_holds_all_of_its_suites(store: Store, sql: sa.Connection) -> None:
    now = datetime.now(UTC)
    play(store, "r1", {"a": rated(accuracy=0.4)}, suite=small_suite("one"), started=now)
    play(store, "r2", {"a": rated(accuracy=0.8)}, suite=small_suite("two"), started=now)
    [row] = leaderboard(sql)
    assert (row["benchmarks_completed"], row["overall_score"]) == (2, pytest.approx(60))


def test_ratings_come_back_as_they_were_kept(store: Store) -> None:
    kept = replace(
        rated(accuracy=0.25, speed=0.5),
        pass_at={1: 0.5, 2: 1.0},
        usd_per_solved=float("inf"),
        tokens_per_solved=12.5,
        doubts=("few cases",),
        yardstick="seconds 1.0",
    )
    run = play(store, "r1", {"a": kept})
    [read] = store.ratings([run.trials[0].id]).values()
    assert read == kept
    assert (read.names, read.yardstick, read.attempted) == (kept.names, kept.yardstick, kept.attempted)
    assert {name: list(marks) for name, marks in read.marks.items()} == {
        "accuracy": [0.25, 0.25],
        "speed": [0.5, 0.5],
    }


def test_rating_again_replaces_what_was_kept(store: Store) -> None:
    run = play(store, "r1", {"a": rated(accuracy=0.25)})
    store.rate(run.trials[0].id, rated(accuracy=0.75, cases=1))
    [read] = store.ratings([run.trials[0].id]).values()
    assert list(read.marks["accuracy"]) == [0.75]


def test_entries_are_chosen_by_suite_category_time_and_tag(store: Store) -> None:
    play(store, "r1", {"a": rated()}, suite=small_suite("one"))
    later = NOON + timedelta(hours=1)
    play(store, "r2", {"a": rated()}, suite=replace(small_suite("two"), category="cost"), started=later)
    store.tag("r2", ["nightly"], [])
    chosen = {
        Filter(suite="one"): ["r1"],
        Filter(category="cost"): ["r2"],
        Filter(since=later): ["r2"],
        Filter(tag="nightly"): ["r2"],
        Filter(tag="nightly", suite="one"): [],
        Filter(): ["r1", "r2"],
    }
    for chosen_by, runs in chosen.items():
        assert sorted(entry.run_id for entry in store.entries(chosen_by)) == runs
    assert store.categories() == {"two": "cost", "one": "speed"}


def test_a_trial_of_code_is_rated_without_a_standing(store: Store) -> None:
    run = begin(store)
    store.rate(run.trials[0].id, rated(accuracy=0.5))
    assert store.info()["rows"]["ratings"] == 0  # type: ignore[index]


def test_what_is_deleted_leaves_the_matrix(store: Store, sql: sa.Connection) -> None:
    play(store, "r1", {"a": rated(accuracy=0.5)})
    play(store, "r2", {"b": rated(accuracy=0.5)}, started=NOON + timedelta(hours=1))
    store.delete("r1")
    assert set(matrix(sql, "agent_id")) == {"b"}
    store.prune(older_than_days=None, keep=0, now=NOON + timedelta(days=1)) or pytest.fail(
        "nothing was pruned"
    )
    assert matrix(sql, "agent_id") == {}


def test_a_run_is_exported_with_its_ratings_and_its_benchmarks(store: Store, tmp_path: Path) -> None:
    run = play(store, "r1", {"a": rated(accuracy=0.5)})
    play(store, "r2", {"b": rated(accuracy=0.5)}, suite=small_suite("other"))
    with Store.open(f"sqlite:///{store.export(tmp_path / 'copy.db', 'r1')}") as copy:
        assert [entry.contender for entry in copy.entries(Filter())] == ["a"]
        assert copy.ratings([run.trials[0].id]) == store.ratings([run.trials[0].id])


def test_cases_are_read_once_for_all_agents_that_were_asked_the_same(store: Store) -> None:
    run = play(store, "r1", {"a": rated(accuracy=0.5), "b": rated(accuracy=0.75)})
    first, second = store.ratings([stored.id for stored in run.trials]).values()
    assert first.names is second.names


@pytest.mark.postgres
def test_many_runs_that_end_at_once_all_reach_the_stored_matrix(request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres").empty()
    Store.open(url).close()
    faults: list[BaseException] = []

    def one(number: int) -> None:
        try:
            with Store.open(url) as store:
                started = NOON + timedelta(minutes=number)
                play(store, f"r{number}", {f"agent {number}": rated(accuracy=0.5)}, started=started)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert set(matrix(connection, "agent_id")) == {f"agent {number}" for number in range(8)}


def test_trials_that_an_older_version_rated_are_ranked_after_an_upgrade(url: str) -> None:
    _restore(url, SCHEMAS / "0003.sql")
    upgrade(url)
    with Store.open(url) as store:
        entries = {entry.contender: entry for entry in store.entries(Filter(suite="kept"))}
        assert {name: (one.ok, one.is_whole) for name, one in entries.items()} == {
            "gpt": (4, True),
            "nop": (4, True),
            "nop[size=2]": (2, False),
        }
        assert store.ratings([one.trial_id for one in entries.values()]) == {}
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert matrix(connection, "avg_accuracy") == {
            "gpt": pytest.approx(100),
            "nop": 0.0,
            "nop[size=2]": pytest.approx(50),
        }


def test_suites_of_an_older_version_list_their_benchmarks_after_an_upgrade(url: str) -> None:
    _restore(url, SCHEMAS / "0003.sql")
    upgrade(url)
    with Store.open(url) as store:
        assert store.benchmarks("kept") == ["sums"]


def test_a_suite_lists_its_benchmarks_once_and_loses_them_with_itself(store: Store) -> None:
    suite = small_suite("small", "sums", "words")
    extra = replace(suite.benchmarks[1], cases=(*suite.benchmarks[1].cases, Case("c3", 1)))
    suite = replace(suite, benchmarks=(suite.benchmarks[0], extra))
    for number in range(2):
        begin(store, f"r{number}", suite_plan(suite, NOP))
    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    assert rows["benchmarks"] == 2
    for number in range(2):
        store.delete(f"r{number}")
    assert store.info()["rows"]["benchmarks"] == 0  # type: ignore[index]


def test_the_version_that_is_shown_is_that_of_the_trial(store: Store) -> None:
    run = play(store, "r1", {"a": rated(accuracy=0.5)})
    store.add("r1", Batch(versions={0: "model-2026"}))
    [entry] = store.entries(Filter())
    assert (entry.agent, entry.agent_version) == ("a", "model-2026")
    assert store.run(run.id).trials[0].trial.agent == AgentVersion("a", "model-2026")
