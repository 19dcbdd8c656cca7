"""What a profile of SQLite settings does to writing, reading and both.

Each profile is a complete set of pragmas. SQLite ignores a pragma that it does not know or cannot apply, so after each
execution the settings are read back from the connection and recorded.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.builtin.experiments.scratch_folder import SqliteExperiment
from assay.model import Better, Metric, describe_metrics
from assay.plugin.experiment import ExperimentContext
from assay.simulation.pragmas import ProfileName, apply_profile, settings_of, size_of

Row = tuple[int, str, float, int]

_TABLE = "CREATE TABLE records (id INTEGER PRIMARY KEY, data TEXT, value REAL, timestamp INTEGER)"
INSERT = "INSERT INTO records VALUES (?, ?, ?, ?)"
_READS = (
    "SELECT COUNT(*) FROM records",
    "SELECT COUNT(*) FROM records WHERE value > 50",
    "SELECT AVG(value), MIN(value), MAX(value) FROM records",
    "SELECT a.id, b.data FROM records a JOIN records b ON b.id = a.id + 1 LIMIT 1000",
    "SELECT * FROM records WHERE id BETWEEN 1000 AND 2000",
)
_BATCH = 1000

_HINTS = {
    "SQLITE_FULL": "There is no space left for the database: free some, or ask for fewer records.",
    "SQLITE_BUSY": "Another program has locked the database.",
    "SQLITE_LOCKED": "Another statement has locked a table of the database.",
    "SQLITE_IOERR": "The disk cannot be read or written. Is it full, or is a quota used up?",
    "SQLITE_READONLY": "The database cannot be written.",
}


class DatabaseFailed(Exception):
    """SQLite could not do an operation; the text says why."""


@contextmanager
def explain_sqlite() -> Iterator[None]:
    """What SQLite reports, in words that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "")
        hint = next((text for name, text in _HINTS.items() if code.startswith(name)), "")
        raise DatabaseFailed(f"SQLite reports '{error}'. {hint}".strip()) from error


class PragmaProfileParams(BaseModel):
    """A profile and a workload; sizes are those at which the differences between profiles show within seconds."""

    model_config = ConfigDict(allow_inf_nan=False)

    profile: ProfileName = Field(default="balanced", description="A set of SQLite settings by name.")
    workload: Literal["write_heavy", "read_heavy", "mixed"] = Field(
        default="write_heavy", description="What is done with the database."
    )
    num_records: int = Field(default=100_000, ge=1, description="Rows to write; when mixed, a tenth of them.")
    db_size_mb: float = Field(default=100, gt=0, description="Size of the database to read.")


class PragmaProfile(SqliteExperiment):
    """One workload on a SQLite file under one profile of settings.

    Writing and mixed executions each get a database file of their own, so that none inherits the pages of the one
    before; it is made and removed before the clock starts. `workload_seconds`, which is also `seconds`, ends when the
    database is closed, so that work which a journal puts off is counted. Reading executions share the database that
    `setup` fills and one connection, whose cache warm-ups warm.
    """

    Params = PragmaProfileParams
    workload_params: ClassVar[Sequence[str]] = ("workload", "num_records", "db_size_mb")
    list_params: ClassVar[Mapping[str, str]] = {"profiles": "profile", "workloads": "workload"}

    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("operations_per_second", "1/s", Better.HIGHER),
        Metric("workload_seconds", "s", Better.LOWER),
        Metric("operations"),
        Metric("rows_written"),
        Metric("database_bytes", "bytes"),
    )

    time_metric: ClassVar[str] = "workload_seconds"

    params: PragmaProfileParams
    _rows: list[Row]

    @explain_sqlite()
    def setup(self, context: ExperimentContext) -> None:
        """Make the rows, or fill the database to read, before anything is timed."""
        super().setup(context)
        chance = random.Random(context.seed)
        if self.params.workload == "read_heavy":
            self._connection = open_database(self.folder / "read.db", self.params.profile)
            fill(self._connection, int(self.params.db_size_mb * 2**20), chance)
        else:
            wanted = self.params.num_records
            self._rows = rows(
                1, wanted if self.params.workload == "write_heavy" else max(1, wanted // 10), 100, chance
            )

    @explain_sqlite()
    def prepare_once(self, context: ExperimentContext) -> None:
        """A new database to write to; the one to read stays as `setup` filled it."""
        if self.params.workload != "read_heavy":
            self.disconnect()
            self.delete_files("write.db*")  # with its journal, should an error have left one
            self._connection = open_database(self.folder / "write.db", self.params.profile)
        assert self._connection is not None
        context.read_back(**settings_of(self._connection))

    @explain_sqlite()
    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        if self._connection is None:  # several calls in one execution are prepared only once
            self.prepare_once(context)
        assert self._connection is not None
        if self.params.workload != "read_heavy":
            try:
                return self._measure_writes(self._connection, context)
            finally:
                self.disconnect()
        begin = perf_counter()
        for query in _READS:
            self._connection.execute(query).fetchall()
        return _compute_metrics(perf_counter() - begin, len(_READS), 0, size_of(self._connection))

    def _measure_writes(self, connection: sqlite3.Connection, context: ExperimentContext) -> dict[str, float]:
        is_mixed = self.params.workload == "mixed"
        begin = perf_counter()
        operations = (mix if is_mixed else write)(connection, self._rows)
        written, size = connection.total_changes, size_of(connection)
        # Within the time: closing writes back what a write-ahead log has put off.
        connection.close()
        seconds = perf_counter() - begin
        # Mixed, a tenth of the records is written.
        record_count = (
            self.params.num_records if written == len(self._rows) else written * (10 if is_mixed else 1)
        )
        context.read_back(num_records=record_count)
        return _compute_metrics(seconds, operations, written, size)


def _compute_metrics(seconds: float, operations: int, written: int, size: int) -> dict[str, float]:
    return {
        "operations_per_second": operations / seconds,
        "workload_seconds": seconds,
        "operations": operations,
        "rows_written": written,
        "database_bytes": size,
    }


def open_database(place: Path | str, profile: ProfileName) -> sqlite3.Connection:
    """A connection with the settings of a profile, to a new database with the table `records`."""
    connection = sqlite3.connect(place)
    apply_profile(connection, profile)
    connection.execute(_TABLE)
    return connection


def rows(first: int, number: int, characters: int, chance: random.Random) -> list[Row]:
    """Rows with ids from `first` on. They share one text: to draw another for each would take longer than to write it."""
    text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=characters))
    return [(i, text, chance.uniform(0, 100), 1_700_000_000 + i) for i in range(first, first + number)]


def fill(connection: sqlite3.Connection, size: int, chance: random.Random) -> None:
    """Rows of about a kilobyte until the database has that size, then an index on their value."""
    first = 1
    while size_of(connection) < size:
        connection.executemany(INSERT, rows(first, _BATCH, 1000, chance))
        connection.commit()
        first += _BATCH
    connection.execute("CREATE INDEX records_by_value ON records (value)")


def write(connection: sqlite3.Connection, rows: list[Row]) -> int:
    """Batches of a thousand, a commit after each."""
    for start in range(0, len(rows), _BATCH):
        connection.executemany(INSERT, rows[start : start + _BATCH])
        connection.commit()
    return len(rows)


def mix(connection: sqlite3.Connection, rows: list[Row]) -> int:
    """Single inserts; at every tenth a look-up, a count and a mean; at every hundredth a commit."""
    operations = 0
    for number, row in enumerate(rows, start=1):
        connection.execute(INSERT, row)
        operations += 1
        if number % 10 == 0:
            connection.execute("SELECT * FROM records WHERE id = ?", (number // 2,)).fetchone()
            connection.execute("SELECT COUNT(*) FROM records WHERE id > ?", (number - 100,)).fetchone()
            connection.execute("SELECT AVG(value) FROM records WHERE id <= ?", (number,)).fetchone()
            operations += 3
        if number % 100 == 0:
            connection.commit()
    connection.commit()
    return operations
