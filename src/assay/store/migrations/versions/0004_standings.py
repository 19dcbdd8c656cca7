"""What rankings need: benchmarks of suites, ratings case by case, and the views that rank agents."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from assay.store.schema import standing_statements

revision = "0004"
down_revision = "0003"

Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")
WEIGHTS = {"accuracy": 0.30, "speed": 0.20, "efficiency": 0.20, "cost": 0.15, "reliability": 0.15}


def upgrade() -> None:
    _list_benchmarks(_benchmarks())
    _list_trials(_ratings())
    for statement in standing_statements(op.get_bind().dialect.name):
        op.execute(statement)


def _benchmarks() -> sa.Table:
    return op.create_table(
        "benchmarks",
        sa.Column("suite_id", sa.Integer, sa.ForeignKey("suites.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("benchmark", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("cases", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )


def _ratings() -> sa.Table:
    made = op.create_table(
        "ratings",
        sa.Column(
            "trial_id",
            sa.Integer,
            sa.ForeignKey("trials.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("benchmark_hash", sa.Text, nullable=False),
        sa.Column("contender", sa.Text, nullable=False),
        sa.Column("simulated", sa.Boolean, nullable=False),
        sa.Column("ok", sa.Integer, nullable=False),
        sa.Column("cases", sa.Integer, nullable=False),
        sa.Column("baseline", sa.Text),
        sa.Column("weights", Written, nullable=False),
        sa.Column("digest", sa.Text),
        sa.Column("dimensions", sa.Text),
        sa.Column("summary", Written),
        sa.Column("marks", sa.LargeBinary),
        sa.Column("case_names", sa.LargeBinary),
    )
    op.create_index("ix_ratings_suite", "ratings", ["suite"])
    return made


def _list_benchmarks(benchmarks: sa.Table) -> None:
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


def _list_trials(ratings: sa.Table) -> None:
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
        connection.execute(ratings.insert().values(_convert_row(row, connection)))


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


def _convert_row(row: dict[str, object], connection: sa.Connection) -> dict[str, object]:
    is_text = connection.dialect.name == "sqlite"
    return {**row, "weights": json.dumps(row["weights"]) if is_text else row["weights"]}
