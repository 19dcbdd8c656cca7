"""What one kind of operation costs in SQLite, by the size of its batches, on disk or in memory.

The settings are those of a profile of `pragma_profile`. They are read back from the connection, and so is where the database is:
a journal mode means nothing in memory, and SQLite then says so.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from time import perf_counter
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from assay.builtin.experiments.pragma_profile import (
    INSERT,
    DatabaseFailed,
    Row,
    explain_sqlite,
    open_database,
    rows,
)
from assay.builtin.experiments.scratch_folder import SqliteExperiment
from assay.model import Better, Metric, describe_metrics
from assay.plugin.experiment import ExperimentContext
from assay.simulation.pragmas import ProfileName, is_on_disk, settings_of, size_of

Operation = Literal["insert", "query", "select", "update", "delete", "aggregate", "mixed"]


class DatabaseProfilerParams(BaseModel):
    """An operation, the size of its batches, and where the database is."""

    operation: Operation = Field(
        default="insert",
        description="What is done with the rows; `query` is `select`, `mixed` a quarter each of insert, select, update and delete.",
    )
    batch_size: int = Field(default=100, ge=1, description="Rows in a transaction.")
    use_in_memory_db: bool = Field(default=False, description="Whether the database is in memory or a file.")
    persist_db_on_completion: bool = Field(
        default=False, description="Whether a database in memory is copied to a file at the end."
    )
    pragma_profile: ProfileName = Field(default="balanced", description="A set of SQLite settings by name.")
    num_records: int = Field(
        default=10_000, ge=1, le=100_000_000, description="Rows that the operation works on."
    )


class DatabaseProfiler(SqliteExperiment):
    """One operation on every row of a SQLite table, in transactions of `batch_size` rows.

    Each execution gets a database of its own. Where rows are needed, they are written before the clock starts. `operation_seconds`, which is
    also `seconds`, ends when a database on disk is closed, so that work which a journal puts off is counted. Copying a database in memory to
    a file is timed apart, as `persist_seconds`.
    """

    Params = DatabaseProfilerParams
    workload_params: ClassVar[Sequence[str]] = ("operation", "num_records")
    list_params: ClassVar[Mapping[str, str]] = {
        "operations": "operation",
        "batch_sizes": "batch_size",
        "pragma_profiles": "pragma_profile",
    }
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("operation_seconds", "s", Better.LOWER),
        Metric("rows_per_second", "1/s", Better.HIGHER),
        Metric("seconds_per_commit", "s"),
        Metric("persist_seconds", "s", Better.LOWER),
        Metric("commits"),
        Metric("database_bytes", "bytes"),
    )

    time_metric: ClassVar[str] = "operation_seconds"

    params: DatabaseProfilerParams
    _rows: list[Row]

    def setup(self, context: ExperimentContext) -> None:
        super().setup(context)
        self._rows = rows(1, self.params.num_records, 100, random.Random(context.seed))

    def prepare_once(self, context: ExperimentContext) -> None:
        """A new database, with the rows that the operation needs."""
        self.disconnect()
        with explain_sqlite():
            self._connection = connection = self._open()
            if self.params.operation != "insert":
                connection.executemany(INSERT, self._rows)
                connection.commit()
            context.read_back(**self._settings(connection))

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        if self._connection is None:  # several calls in one execution are prepared only once
            self.prepare_once(context)
        assert self._connection is not None
        try:
            with explain_sqlite():
                return self._measure(self._connection, context)
        finally:
            self.disconnect()

    def _open(self) -> sqlite3.Connection:
        self.delete_files("profiled.db*")
        place = ":memory:" if self.params.use_in_memory_db else self.folder / "profiled.db"
        return open_database(place, self.params.pragma_profile)

    def _settings(self, connection: sqlite3.Connection) -> dict[str, object]:
        """What is in effect, as SQLite itself says."""
        actual = settings_of(connection)
        return {
            "pragma_profile": actual.pop("profile"),
            "use_in_memory_db": not is_on_disk(connection),
            **actual,
        }

    def _measure(self, connection: sqlite3.Connection, context: ExperimentContext) -> dict[str, float]:
        operate = OPERATIONS[self.params.operation]
        starts = range(0, len(self._rows), self.params.batch_size)
        batches = [self._rows[start : start + self.params.batch_size] for start in starts]
        context.read_back(num_records=sum(map(len, batches)), batch_size=max(map(len, batches)))
        actions: set[int] = set()

        def note(action: int, *_: object) -> int:
            actions.add(action)
            return sqlite3.SQLITE_OK

        connection.set_authorizer(note)
        commits = 0
        begin = perf_counter()
        for number, batch in enumerate(batches):
            operate(connection, batch)
            # Reading opens no transaction, so there is nothing to commit.
            commits += connection.in_transaction
            connection.commit()
            if not number:  # the others have the same statements, and SQLite would ask about each transaction
                connection.set_authorizer(None)
        size = size_of(connection)
        if not self.params.use_in_memory_db:
            connection.close()
        seconds = perf_counter() - begin
        context.read_back(operation=_name_operation(actions, self.params.operation))
        found = {
            "operation_seconds": seconds,
            "rows_per_second": len(self._rows) / seconds,
            "commits": commits,
            "database_bytes": size,
            **({"seconds_per_commit": seconds / commits} if commits else {}),
        }
        if self.params.persist_db_on_completion and self.params.use_in_memory_db:
            found["persist_seconds"] = self._persist(connection, context)
        return found

    def _persist(self, connection: sqlite3.Connection, context: ExperimentContext) -> float:
        """Seconds to copy the database to a file of the trial, by SQLite's backup; the copy is checked to be whole."""
        path = context.run_dir / f"database-{context.process}.db"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as target:
            begin = perf_counter()
            connection.backup(target)
            seconds = perf_counter() - begin
            kept, had = (
                database.execute("SELECT COUNT(*) FROM records").fetchone()[0]
                for database in (target, connection)
            )
        if kept != had:
            raise DatabaseFailed(f"The copy of the database has {kept:,} of {had:,} rows.")
        context.read_back(persist_db_on_completion=path.stat().st_size > 0)
        return seconds


def _insert(connection: sqlite3.Connection, batch: Sequence[Row]) -> None:
    connection.executemany(INSERT, batch)


def _select(connection: sqlite3.Connection, batch: Sequence[Row]) -> None:
    for row in batch:
        connection.execute("SELECT * FROM records WHERE id = ?", row[:1]).fetchone()


def _update(connection: sqlite3.Connection, batch: Sequence[Row]) -> None:
    connection.executemany("UPDATE records SET value = value + 1 WHERE id = ?", [row[:1] for row in batch])


def _delete(connection: sqlite3.Connection, batch: Sequence[Row]) -> None:
    connection.executemany("DELETE FROM records WHERE id = ?", [row[:1] for row in batch])


def _aggregate(connection: sqlite3.Connection, batch: Sequence[Row]) -> None:
    """Over the rows of the batch, so that the work is one row each, as in every other operation."""
    ends = (batch[0][0], batch[-1][0])
    connection.execute(
        "SELECT COUNT(*), AVG(value), MIN(value), MAX(value) FROM records WHERE id BETWEEN ? AND ?", ends
    ).fetchone()


def _mix(connection: sqlite3.Connection, batch: Sequence[Row]) -> None:
    """Insert, read, update and delete a quarter of the batch each."""
    parts = [batch[start::4] for start in range(4)]
    _delete(connection, parts[0])
    _insert(connection, parts[0])
    _select(connection, parts[1])
    _update(connection, parts[2])
    _delete(connection, parts[3])


OPERATIONS: Mapping[str, Callable[[sqlite3.Connection, Sequence[Row]], None]] = {
    "insert": _insert,
    "query": _select,
    "select": _select,
    "update": _update,
    "delete": _delete,
    "aggregate": _aggregate,
    "mixed": _mix,
}


_ACTIONS = {
    sqlite3.SQLITE_INSERT: "insert",
    sqlite3.SQLITE_SELECT: "select",
    sqlite3.SQLITE_UPDATE: "update",
    sqlite3.SQLITE_DELETE: "delete",
}


def _name_operation(actions: set[int], operation: str) -> str:
    """The operation by what SQLite was asked to do, as it tells when it compiles a statement."""
    names = [name for action, name in _ACTIONS.items() if action in actions]
    if len(names) == len(_ACTIONS):
        return "mixed"
    if names == ["select"] and sqlite3.SQLITE_FUNCTION in actions:
        return "aggregate"
    return "query" if names == ["select"] and operation == "query" else ", ".join(names)
