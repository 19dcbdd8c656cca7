"""What rankings need: benchmarks of suites, ratings case by case, and the views that rank agents."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from assay.store.migrations import create_tables
from assay.store.schema import standing_statements
from assay.store.tables import benchmarks, ratings

revision = "0004"
down_revision = "0003"

WEIGHTS = {"accuracy": 0.30, "speed": 0.20, "efficiency": 0.20, "cost": 0.15, "reliability": 0.15}


def upgrade() -> None:
    create_tables("benchmarks", "ratings")
    _list_benchmarks()
    _list_trials()
    for statement in standing_statements(op.get_bind().dialect.name):
        op.execute(statement)


def _list_benchmarks() -> None:
    connection = op.get_bind()
    for suite_id, written in connection.exec_driver_sql("SELECT id, definition FROM suites").all():
        listed = [
            {
                "suite_id": suite_id,
                "benchmark": benchmark["id"],
                "position": place,
                "hash": benchmark["hash"],
                "cases": len(benchmark["cases"]),
            }
            for place, benchmark in enumerate(_read(written)["benchmarks"])
        ]
        if listed:
            connection.execute(benchmarks.insert(), listed)


def _list_trials() -> None:
    """Trials of runs that ended, without what only their executions tell: that is worked out when it is asked for."""
    connection = op.get_bind()
    weights = _weights(connection)
    query = """
        SELECT trials.id, trials.suite, trials.benchmark, trials.benchmark_hash, trials.simulated, trials.axes,
               agents.name, runs.suite_id, counted.ok, counted.cases
          FROM trials
          JOIN runs ON runs.id = trials.run_id
          JOIN agents ON agents.id = trials.agent_id
          JOIN (SELECT trial_id, SUM(CASE WHEN status = 'ok' THEN 1 ELSE 0 END) AS ok,
                       COUNT(DISTINCT CASE WHEN status <> 'cancelled' THEN case_id END) AS cases
                  FROM executions WHERE phase = 'measured' GROUP BY trial_id) AS counted ON counted.trial_id = trials.id
         WHERE trials.suite <> '' AND runs.state <> 'running'"""
    for found in connection.exec_driver_sql(query).mappings().all():
        row = {
            "trial_id": found["id"],
            "suite": found["suite"],
            "benchmark": found["benchmark"],
            "benchmark_hash": found["benchmark_hash"],
            "contender": _contender(found["name"], _read(found["axes"])),
            "simulated": bool(found["simulated"]),
            "ok": found["ok"],
            "cases": found["cases"],
            "weights": weights.get((found["suite_id"], found["benchmark"]), WEIGHTS),
        }
        connection.execute(ratings.insert().values(row))


def _weights(connection: sa.Connection) -> dict[tuple[int, str], dict[str, float]]:
    found = connection.exec_driver_sql("SELECT id, definition FROM suites").all()
    return {
        (suite_id, benchmark["id"]): {**WEIGHTS, **benchmark["rubric"]["weights"]}
        for suite_id, written in found
        for benchmark in _read(written)["benchmarks"]
    }


def _contender(agent: str, axes: dict[str, object]) -> str:
    point = ", ".join(f"{name}={value}" for name, value in axes.items())
    return f"{agent}[{point}]" if point else agent


def _read(written: Any) -> Any:
    """SQLite has JSON as text, PostgreSQL's driver reads it."""
    return json.loads(written) if isinstance(written, str) else written
