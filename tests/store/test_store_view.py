from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.store.examples import batch, begin, execution, plan_of, simple_trial

from assay.model import Batch, Phase, Status
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
    assert list(sql.execute(sa.text("SELECT * FROM benchmark_executions")).keys()) == COLUMNS


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
    assert "12:00:02" in str(row["start_time"])
    assert "12:00:08" in str(row["end_time"])


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
    late = execution(1, status=Status.TIMEOUT, error="took longer than 5 s")
    store.add("run-1", batch([failed, late]))
    (row,) = _rows(sql)
    assert (row["status"], row["error_details"]) == ("timeout", "took longer than 5 s")


def test_a_stopped_trial_is_no_success(store: Store, sql: sa.Connection) -> None:
    begin(store)
    store.add("run-1", Batch((execution(0),), stopped={0: "the budget is spent"}))
    (row,) = _rows(sql)
    assert (row["status"], row["error_details"]) == ("stopped", "the budget is spent")
