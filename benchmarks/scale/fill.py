"""Fills PostgreSQL with ten million executions: 500 agents on 100 suites in five versions.

The runs of one version are stored as `server.fill` stores them; PostgreSQL itself multiplies them, each time for an older
version, a month earlier. For that its keys are dropped and built again, which is several times as fast as filling them.

    python -m scale.fill URL [--scale 0.02]     from the folder benchmarks; the database must be empty
"""

from __future__ import annotations

import argparse
from time import perf_counter

import psycopg
from arms import tell
from server.fill import Size, fill

from assay.store.tables import metadata

AGENTS, SUITES = 500, 100
OLDER = ("0.9", "0.8", "0.7", "0.6")
_STEP = 1_000_000
"""What is added to the id of a trial for each older version."""
_KEYS = {
    "measurements": ("pk_measurements PRIMARY KEY (trial_id, metric, seq)",),
    "executions": (
        "pk_executions PRIMARY KEY (trial_id, seq)",
        "uq_executions UNIQUE (trial_id, process, phase, case_id, repetition)",
    ),
}


def fill_large(url: str, scale: float = 1.0) -> int:
    """Fill an empty database; how many executions it has then."""
    fill([url], Size(AGENTS, SUITES, scale))
    with psycopg.connect(url, autocommit=True) as connection:
        # Rows that are copies of consistent rows need no check.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET maintenance_work_mem = '1GB'")
        for table, keys in _KEYS.items():
            for key in keys:
                _do(connection, f"ALTER TABLE {table} DROP CONSTRAINT {key.split()[0]}")
        for number, version in enumerate(OLDER, start=1):
            tell(f"  version {version}")
            _multiply(connection, number, version)
        for table, keys in _KEYS.items():
            for key in keys:
                _do(connection, f"ALTER TABLE {table} ADD CONSTRAINT {key}")
        _do(connection, "SELECT setval(pg_get_serial_sequence('trials', 'id'), (SELECT max(id) FROM trials))")
        _do(connection, "VACUUM ANALYZE")
        _do(connection, "SET enable_nestloop = off")  # as the store does it
        _do(connection, "REFRESH MATERIALIZED VIEW agent_comparison_matrix")
        found = connection.execute("SELECT count(*) FROM executions").fetchone()
    assert found is not None
    return int(found[0])


def _multiply(connection: psycopg.Connection[tuple[object, ...]], number: int, version: str) -> None:
    """Store all runs of version 1.0 once more, with other ids, as those of an older version."""
    _do(
        connection,
        f"INSERT INTO agents (workspace_id, name, version) SELECT workspace_id, name, '{version}' FROM agents "
        "WHERE version = '1.0'",
    )
    older = f"- INTERVAL '{30 * number} days'"
    chosen = (
        "IN (SELECT run_id FROM trials JOIN agents ON agents.id = agent_id WHERE agents.version = '1.0' "
        f"AND trials.id < {_STEP})"
    )
    changed = {"id": f"id || '-{number}'", "started": f"started {older}", "ended": f"ended {older}"}
    _clone(connection, "runs", changed, f"id {chosen}")
    _clone(connection, "tags", {"run_id": f"run_id || '-{number}'"}, f"run_id {chosen}")
    other = f"(SELECT later.id FROM agents JOIN agents AS later USING (workspace_id, name) WHERE agents.id = agent_id AND later.version = '{version}')"
    moved = {
        "id": f"id + {number * _STEP}",
        "run_id": f"run_id || '-{number}'",
        "agent_id": other,
        "started": f"started {older}",
        "ended": f"ended {older}",
    }
    _clone(connection, "trials", moved, f"id < {_STEP} AND run_id {chosen}")
    for table in ("ratings", "trial_totals", "executions", "measurements"):
        own = f"trial_id IN (SELECT id FROM trials WHERE id < {_STEP} AND run_id {chosen})"
        _clone(connection, table, {"trial_id": f"trial_id + {number * _STEP}"}, own)


def _clone(
    connection: psycopg.Connection[tuple[object, ...]], table: str, changed: dict[str, str], chosen: str
) -> None:
    names = metadata.tables[table].c.keys()
    values = ", ".join(changed.get(name, name) for name in names)
    _do(connection, f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} WHERE {chosen}")


def _do(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> None:
    began = perf_counter()
    connection.execute(statement.encode())
    tell(f"    {perf_counter() - began:.1f} s: {statement[:60]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--scale", type=float, default=1.0)
    asked = parser.parse_args()
    print(f"{fill_large(asked.url, asked.scale):,} executions")


if __name__ == "__main__":
    main()
