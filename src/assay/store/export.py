"""Exports a workspace, or one run, to a file: a SQLite database, or a table of executions.

A database is copied table by table in the order of their foreign keys. From a run, `_belongs_to_run` selects the rows that belong to
it, so the copy is a complete database of its own that any command can open. What is copied stays in its workspace. Secrets are
redacted once more on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from assay.errors import StoreError
from assay.model.redaction import known_secrets
from assay.store import column_values as plain
from assay.store import database, schema, tables
from assay.store.address import read_address
from assay.store.bulk import insert_rows
from assay.store.workspaces import rows_of, workspace_of

_CHUNK = 1000
_FEW = 8
_SPOKEN = ("output", "applied", "error", "log", "detail", "metric")
"""Columns of the long tables with what agents and experiments say."""
_LEFT_OUT = (
    tables.revision,
    tables.leases,
    tables.queued_runs,
    tables.api_keys,
    tables.sessions,
    tables.audit_log,
    tables.schedules,
    tables.scheduled_runs,
    tables.alerts,
    tables.suite_changes,
    tables.boards,
)
"""Runs are not continued in the copy, and what concerns the server is not exported."""


DATABASES = (".db", ".sqlite", ".sqlite3")


TABLES = (".parquet", ".csv", ".jsonl")


def export(source: sa.Engine, path: Path, run_id: str | None) -> Path:
    """Write the workspace of the engine, or one run, to a new file; the extension decides the format.

    A file that exists is never overwritten.
    """
    suffix = path.suffix.lower()
    if suffix not in (*DATABASES, *TABLES):
        raise StoreError(
            f"'{path}' cannot be written: the name must end in {', '.join(TABLES)} for a table of executions, "
            f"or in {', '.join(DATABASES)} for a SQLite database."
        )
    try:
        if path.exists():
            raise StoreError(f"'{path}' already exists. Choose another file, or move it away.")
        if suffix in DATABASES:
            with _new_file(path) as target, source.connect() as reading, target.begin() as copy:
                # A new file has the default workspace already, and keeps it beside the copied one.
                copy.execute(
                    tables.workspaces.delete().where(tables.workspaces.c.id == workspace_of(reading))
                )
                for table in tables.metadata.sorted_tables:
                    if table not in _LEFT_OUT:
                        _copy(reading, copy, table, run_id)
        else:
            from assay.store.execution_table import write_table

            write_table(source, path, run_id)
    except OSError as error:
        raise StoreError(f"'{path}' cannot be written: {error.strerror}. Name another file.") from None
    return path


@contextmanager
def _new_file(path: Path) -> Iterator[sa.Engine]:
    """A fresh database that gets its name only when all went well."""
    partial = path.with_name(f"{path.name}.partial")
    address = read_address(sa.URL.create("sqlite", database=str(partial)).render_as_string())
    _discard(partial)
    engine = database.connect(address)
    try:
        schema.ensure(engine, address)
        yield database.writing(engine)
        engine.dispose()
        partial.rename(path)
    finally:
        engine.dispose()
        _discard(partial)


def _discard(partial: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _copy(reading: sa.Connection, copy: sa.Connection, table: sa.Table, run_id: str | None) -> None:
    """Copy a table, or what of it belongs to the run.

    The long tables, of executions and measurements, bypass SQLAlchemy; their JSON is copied as text, without parsing it.
    """
    is_long = "seq" in table.c
    raw = (sa.cast(column, sa.Text) if isinstance(column.type, sa.JSON) else column for column in table.c)
    query = sa.select(*raw) if is_long else sa.select(table)
    within = workspace_of(reading)
    query = query.where(rows_of(table, within) if run_id is None else _belongs_to_run(table, run_id, within))
    streamed = reading.execution_options(stream_results=True, max_row_buffer=_CHUNK)
    for chunk in streamed.execute(query).partitions(_CHUNK):
        if is_long:
            insert_rows(copy, table, redact_rows(chunk, table))
        else:
            copy.execute(table.insert(), [dict(row._mapping) for row in chunk])


def redact_rows(rows: Sequence[Sequence[Any]], table: sa.Table) -> list[tuple[Any, ...]]:
    """What an earlier version stored may hold a secret, and an exported file is meant to be shared. What PostgreSQL would refuse,
    which only other programs store in SQLite, is written as in `column_values.py`.

    Many rows are looked at as one text; only a part in which there may be a secret is looked at row by row.
    """
    known = known_secrets()
    spoken = [place for place, column in enumerate(table.c) if column.name in _SPOKEN]
    content = "\n".join([row[place] for row in rows for place in spoken if row[place]])
    if not known.may_be_in(content) and not plain.may_be_refused(content):
        return list(map(tuple, rows))
    if len(rows) > _FEW:
        middle = len(rows) // 2
        return [*redact_rows(rows[:middle], table), *redact_rows(rows[middle:], table)]
    return [_redact_row(row, table) for row in rows]


def _redact_row(row: Sequence[Any], table: sa.Table) -> tuple[Any, ...]:
    return tuple(
        value
        if not value or column.name not in _SPOKEN
        else _redact_json(value)
        if isinstance(column.type, sa.JSON)
        else plain.redact_text(value)
        for value, column in zip(row, table.c, strict=True)
    )


def _redact_json(written: str) -> str:
    if plain.may_be_refused(written):
        return plain.redact_json(plain.from_json(plain.text(written)))
    return known_secrets().redact_json(written)


def _belongs_to_run(table: sa.Table, run_id: str, workspace_id: int) -> sa.ColumnElement[bool]:
    """Which rows of a table belong to a run, by how the table refers to it."""
    runs, trials = tables.runs, tables.trials
    if table is tables.rating_references:
        columns = trials.c.suite, trials.c.benchmark, trials.c.benchmark_hash
        definition = sa.tuple_(table.c.suite, table.c.benchmark, table.c.hash)
        is_asked = definition.in_(sa.select(*columns).where(trials.c.run_id == run_id))
        return sa.and_(table.c.workspace_id == workspace_id, is_asked)
    if "trial_id" in table.c:
        return table.c.trial_id.in_(sa.select(trials.c.id).where(trials.c.run_id == run_id))
    if "run_id" in table.c:
        return table.c.run_id == run_id
    if table in (tables.regressions, tables.regression_changes):
        return sa.false()  # they are of agents, whose other runs stay behind
    if table is runs:
        return runs.c.id == run_id
    if "suite_id" in table.c:
        return table.c.suite_id.in_(sa.select(runs.c.suite_id).where(runs.c.id == run_id))
    if table is tables.agents:
        return table.c.id.in_(sa.select(trials.c.agent_id).where(trials.c.run_id == run_id))
    referring = {
        "workspaces": runs.c.workspace_id,
        "suites": runs.c.suite_id,
        "environments": runs.c.environment_id,
    }
    return table.c.id.in_(sa.select(referring[table.name]).where(runs.c.id == run_id))
