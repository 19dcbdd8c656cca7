from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from tests.store.examples import (
    GPT,
    NOP,
    batch,
    begin,
    execution,
    plan_of,
    simple_trial,
    small_suite,
    suite_plan,
)

from assay.model import DIMENSIONS, Batch, Phase, Rating, Ratings, Status
from assay.store.store import Store

# The specification's table, section 1.2, column by column.
COLUMNS = [
    "id",
    "suite_id",
    "benchmark_id",
    "agent_id",
    "agent_version",
    "workspace_id",
    "execution_environment",
    "model_configuration",
    "start_time",
    "end_time",
    "total_duration_ms",
    "accuracy_score",
    "speed_score",
    "efficiency_score",
    "cost_score",
    "reliability_score",
    "tokens_used",
    "api_calls_made",
    "memory_peak_mb",
    "cpu_usage_percent",
    "output_correctness",
    "output_completeness",
    "output_relevance",
    "percentile_rank",
    "deviation_from_baseline",
    "status",
    "error_details",
    "created_at",
]


@pytest.fixture
def sql(url: str, store: Store) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        yield connection


def _rows(sql: sa.Connection) -> list[sa.RowMapping]:
    return list(sql.execute(sa.text("SELECT * FROM benchmark_executions ORDER BY id")).mappings())


def _status(sql: sa.Connection) -> object:
    return _rows(sql)[0]["status"]


def test_the_view_has_the_columns_of_the_specification(sql: sa.Connection) -> None:
    view = sa.text("SELECT * FROM benchmark_executions")
    assert list(sql.execute(view).keys()) == COLUMNS


def test_a_trial_is_a_row_with_names_for_ids(store: Store, sql: sa.Connection) -> None:
    begin(store, plan=plan_of(simple_trial(0), simple_trial(1)))
    first, second = _rows(sql)
    assert (first["agent_id"], first["agent_version"], first["benchmark_id"]) == ("parser", "1", "parse")
    assert (first["workspace_id"], first["suite_id"]) == ("default", None)
    assert second["id"] > first["id"]


def test_environment_and_params_are_json(store: Store, sql: sa.Connection) -> None:
    begin(store)
    (row,) = _rows(sql)
    environment, params = row["execution_environment"], row["model_configuration"]
    if sql.dialect.name == "sqlite":
        environment, params = json.loads(environment), json.loads(params)
    assert (environment["os"], params) == ("Linux", {"size": 0})


def test_the_configuration_of_an_agent_is_its_type_model_and_params(store: Store, sql: sa.Connection) -> None:
    begin(store, plan=suite_plan(small_suite(), GPT, NOP))
    first, second = (_as_json(sql, row["model_configuration"]) for row in _rows(sql))
    params = {"temperature": 0, "stop": [".", None]}
    assert first == {"type": "openai", "model": "small", "params": params}
    assert second == {"type": "nop", "model": None, "params": None}
    assert [row["suite_id"] for row in _rows(sql)] == ["small", "small"]


def _as_json(sql: sa.Connection, value: str) -> object:
    return json.loads(value) if sql.dialect.name == "sqlite" else value


def test_named_scores_are_means_of_the_measured_executions(store: Store, sql: sa.Connection) -> None:
    begin(store)
    made = [
        execution(0, phase=Phase.WARMUP, measurements={"score.correctness": 0.0}),
        execution(0, measurements={"score.correctness": 0.5, "score.relevance": 1.0}),
        execution(1, measurements={"score.correctness": 1.0, "score": 0.0}),
    ]
    store.add("run-1", batch(made))
    (row,) = _rows(sql)
    named = row["output_correctness"], row["output_completeness"], row["output_relevance"]
    assert named == (75.0, None, 100.0)


def _rated(
    store: Store, run_id: str, ratings: dict[str, float | None], *, hours: float = 0, suite: str = "small"
) -> None:
    """A run of agents on one benchmark with the overall that each of them got."""
    uses = [replace(NOP, name=name) for name in ratings]
    run = begin(store, run_id, suite_plan(small_suite(suite), *uses), hours=hours)
    for stored, overall in zip(run.trials, ratings.values(), strict=True):
        unrated = {name: Rating(name, None) for name in DIMENSIONS}
        store.rate(stored.id, Ratings(unrated, Rating("overall", overall), {}, 0, 0, 0.0))


def _column(sql: sa.Connection, name: str) -> dict[str, object]:
    return {row["agent_id"]: row[name] for row in _rows(sql)}


def test_the_percentile_rank_is_the_share_of_other_agents_below(store: Store, sql: sa.Connection) -> None:
    _rated(store, "r1", {"a": 0.1, "b": 0.5, "c": 0.5, "d": 0.9, "e": None})
    ranks = _column(sql, "percentile_rank")
    assert ranks.pop("b") == ranks.pop("c") == pytest.approx(100 / 3)
    assert ranks == {"a": 0.0, "d": 100.0, "e": None}


def test_only_the_latest_trial_of_another_agent_counts(store: Store, sql: sa.Connection) -> None:
    _rated(store, "old", {"b": 0.9})
    _rated(store, "new", {"a": 0.5, "b": 0.1}, hours=1)
    _rated(store, "unrated", {"b": None}, hours=2)
    assert _column(sql, "percentile_rank")["a"] == 100.0


def test_there_is_no_rank_without_another_agent_on_the_benchmark(store: Store, sql: sa.Connection) -> None:
    _rated(store, "r1", {"a": 0.5})
    _rated(store, "r2", {"b": 0.1}, suite="other")
    _rated(store, "r3", {"a": 0.7}, hours=1)
    assert set(_column(sql, "percentile_rank").values()) == {None}


def test_simulated_agents_are_ranked_among_themselves(store: Store, sql: sa.Connection) -> None:
    _rated(store, "r1", {"real": 0.5, "slow": 0.1, "sim": 0.9})
    store.add("r1", batch([execution(0, trial=2, detail={"simulated": True})]))
    assert _column(sql, "percentile_rank") == {"real": 100.0, "slow": 0.0, "sim": None}


def test_the_deviation_is_from_the_same_agent_in_the_baseline(store: Store, sql: sa.Connection) -> None:
    _rated(store, "base", {"b": 0.2, "a": 0.4})
    store.set_baseline("main", "base")
    _rated(store, "now", {"a": 0.5, "c": 0.5, "e": None}, hours=1)
    deviations = _column(sql, "deviation_from_baseline")
    assert deviations["a"] == pytest.approx(0.25)
    assert deviations["c"] == pytest.approx(1.5)
    assert (deviations["b"], deviations["e"]) == (0.0, None)


def test_the_baseline_named_like_the_suite_goes_before_main(store: Store, sql: sa.Connection) -> None:
    _rated(store, "r1", {"a": 0.1})
    _rated(store, "r2", {"b": 0.4}, hours=1)
    store.set_baseline("main", "r1")
    store.set_baseline("small", "r2")
    assert _column(sql, "deviation_from_baseline") == {"a": pytest.approx(-0.75), "b": 0.0}


def test_there_is_no_deviation_from_nothing(store: Store, sql: sa.Connection) -> None:
    _rated(store, "r1", {"a": 0.5})
    assert _column(sql, "deviation_from_baseline") == {"a": None}
    _rated(store, "r2", {"b": 0.0}, suite="other")
    store.set_baseline("main", "r2")
    assert _column(sql, "deviation_from_baseline") == {"a": None, "b": None}


def test_figures_come_from_the_measured_executions(store: Store, sql: sa.Connection) -> None:
    begin(store)
    made = [
        execution(0, phase=Phase.WARMUP, measurements={"seconds": 100.0, "tokens": 1000}),
        execution(
            0, loops=3, measurements={"seconds": 0.1, "tokens": 5, "cpu_percent": 50, "rss_max_bytes": 2**20}
        ),
        execution(1, measurements={"seconds": 0.2, "tokens": 6, "cpu_percent": 100, "rss_max_bytes": 2**21}),
    ]
    store.add("run-1", batch(made))
    (row,) = _rows(sql)
    assert (row["total_duration_ms"], row["tokens_used"]) == (500, 11)
    assert (row["memory_peak_mb"], row["cpu_usage_percent"]) == (2.0, 75.0)
    assert row["api_calls_made"] is None


def test_the_span_reaches_from_the_first_start_to_the_last_end(store: Store, sql: sa.Connection) -> None:
    begin(store)
    store.add("run-1", batch([execution(5, loops=2, measurements={"seconds": 1.5})]))
    store.add("run-1", batch([execution(2), execution(3)]))
    (row,) = _rows(sql)
    assert "12:00:02" in _in_utc(row["start_time"])
    assert "12:00:08" in _in_utc(row["end_time"])


def _in_utc(told: object) -> str:
    """PostgreSQL tells times in the zone of its machine."""
    return str(told.astimezone(UTC) if isinstance(told, datetime) else told)


def test_scores_go_from_0_to_100_and_are_empty_until_rated(
    store: Store, sql: sa.Connection, url: str
) -> None:
    begin(store)
    sql.execute(sa.text("UPDATE trials SET accuracy = 0.75"))
    (row,) = _rows(sql)
    assert (row["accuracy_score"], row["speed_score"], row["percentile_rank"]) == (75.0, None, None)


def test_one_ok_execution_is_success(store: Store, sql: sa.Connection) -> None:
    begin(store)
    store.add("run-1", batch([execution(0), execution(1, status=Status.FAILED, error="no")]))
    assert _status(sql) == "success"


def test_a_warm_up_alone_is_no_success(store: Store, sql: sa.Connection) -> None:
    begin(store)
    store.add("run-1", batch([execution(0, phase=Phase.WARMUP)]))
    assert _status(sql) == "pending"


def test_without_an_ok_execution_the_last_failure_names_the_status(store: Store, sql: sa.Connection) -> None:
    begin(store)
    failed = execution(0, status=Status.FAILED, error="first")
    late = execution(1, status=Status.TIMEOUT, error="too late")
    store.add("run-1", batch([failed, late]))
    (row,) = _rows(sql)
    assert (row["status"], row["error_details"]) == ("timeout", "too late")


def test_a_stopped_trial_is_no_success(store: Store, sql: sa.Connection) -> None:
    begin(store)
    store.add("run-1", Batch((execution(0),), stopped={0: "budget spent"}))
    (row,) = _rows(sql)
    assert (row["status"], row["error_details"]) == ("stopped", "budget spent")
