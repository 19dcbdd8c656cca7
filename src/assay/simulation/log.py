"""The log of a simulation: every step of every agent and resource in a SQLite database.

Rows are collected until there are `buffer_size`, then written; after every `flush_frequency` written rows they are committed. The database is a file, or memory
that is copied to the file at the end. What the database says about itself is read back with `settings`: a mode that was asked for but is not
in effect shows there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.errors import AssayError
from assay.simulation.config import SimulationConfig
from assay.simulation.pragmas import PROFILES, apply_profile, is_on_disk, settings_of, size_of
from assay.simulation.world import StepMetrics, World

TABLES = {
    "agent_states": "step INTEGER, agent_id INTEGER, kind INTEGER, x REAL, y REAL, energy INTEGER, age INTEGER, action INTEGER",
    "resource_states": "step INTEGER, resource_id INTEGER, x REAL, y REAL, amount INTEGER",
    "step_metrics": ", ".join(f"{name} INTEGER" for name in StepMetrics._fields),
}
INDEXES = {"agent_states": "agent_id, step", "resource_states": "resource_id, step", "step_metrics": "step"}
_INSERT = {
    table: f"INSERT INTO {table} VALUES ({', '.join('?' * (columns.count(',') + 1))})"  # noqa: S608
    for table, columns in TABLES.items()
}
_ADVICE = {
    "SQLITE_FULL": "the disk is full. Free some space, or log to memory: use_in_memory_db.",
    "SQLITE_IOERR": "the disk rejected the write. Is it full, or is a quota used up?",
    "SQLITE_BUSY": "another program has locked the database. Close it, or use another file.",
    "SQLITE_READONLY": "the file or its folder is read-only. Use another folder.",
    "SQLITE_CANTOPEN": "the file cannot be opened. Does its folder exist, and is it writable?",
}


class LogFailed(AssayError):
    """The log of a simulation cannot be written; the message says which file, why, and what to do."""


class RowLimit:
    """Where a limit on rows lies, from what happened: above every number that did not set anything off, at most the least that did."""

    def __init__(self) -> None:
        self.above = 0
        self.at_most: int | None = None

    def see(self, rows: int, *, is_reached: bool) -> None:
        if not is_reached:
            self.above = max(self.above, rows)
        elif self.at_most is None or rows < self.at_most:
            self.at_most = rows

    def range(self) -> tuple[int, int | None]:
        return self.above, self.at_most


class SimulationLog:
    """An open log. `add` takes the world after each step; `finish` writes what is left, makes the indexes and copies the database if it should be kept.

    The file must not exist yet: a log is never mixed with another one.
    """

    def __init__(self, config: SimulationConfig, file: Path) -> None:
        self.file = file
        self.rows = self.writes = self.commits = 0
        """Rows, calls that wrote some of them, and transactions."""
        self.largest_write = 0
        """Rows of the largest such call."""
        self._collected, self._committed = RowLimit(), RowLimit()
        self._config, self._pending, self._uncommitted = config, 0, 0
        self._buffers: dict[str, list[tuple[float, ...]]] = {table: [] for table in TABLES}
        with explain_failure(file):
            if config.mode != "memory" and file.exists():
                raise LogFailed(f"The log '{file}' already exists. Delete it, or use another file.")
            self._connection = sqlite3.connect(":memory:" if config.use_in_memory_db else file)
            try:
                apply_profile(self._connection, config.db_pragma_profile)
                for table, columns in TABLES.items():
                    self._connection.execute(f"CREATE TABLE {table} ({columns})")
            except sqlite3.Error:
                self._connection.close()
                raise

    def add(self, world: World, metrics: StepMetrics) -> None:
        agents, step, resources = world.agents, world.number, world.resources
        columns = (agents.kind, *world.positions().T, agents.energy, agents.age, agents.action)
        rows = zip(agents.id.tolist(), *(column.tolist() for column in columns), strict=True)
        self._buffers["agent_states"] += [(step, *row) for row in rows]
        amounts = zip(*world.resource_positions().T.tolist(), world.food[resources].tolist(), strict=True)
        self._buffers["resource_states"] += [(step, number, *row) for number, row in enumerate(amounts)]
        self._buffers["step_metrics"].append(metrics)
        self._pending += len(agents) + len(resources) + 1
        is_full = self._pending >= self._config.buffer_size
        self._collected.see(self._pending, is_reached=is_full)
        if is_full:
            with explain_failure(self.file):
                self._write()

    def _write(self) -> None:
        for table, rows in self._buffers.items():
            size = self._config.buffer_size
            # In pieces of the buffer's size: one step of a large world has many times as many rows.
            for first in range(0, len(rows), size):
                piece = rows[first : first + size]
                self._connection.executemany(_INSERT[table], piece)
                self.writes += 1
                self.largest_write = max(self.largest_write, len(piece))
                self._uncommitted += len(piece)
                is_due = self._uncommitted >= self._config.flush_frequency
                self._committed.see(self._uncommitted, is_reached=is_due)
                if is_due:
                    self._commit()
            self.rows += len(rows)
            rows.clear()
        self._pending = 0

    def _commit(self) -> None:
        self._connection.commit()
        self.commits += 1
        self._uncommitted = 0

    def finish(self) -> None:
        """Write what is left, index it, and copy the database to its file if it is in memory and should be kept."""
        with explain_failure(self.file):
            self._write()
            for table, columns in INDEXES.items():
                self._connection.execute(f"CREATE INDEX {table}_index ON {table} ({columns})")
            self._commit()
            if self._config.mode == "memory_persist":
                target = sqlite3.connect(self.file)
                try:
                    # As durable as the profile makes a file.
                    target.execute(
                        f"PRAGMA synchronous = {PROFILES[self._config.db_pragma_profile]['synchronous']}"
                    )
                    self._connection.backup(target)
                finally:
                    target.close()

    def settings(self) -> dict[str, object]:
        """What is in effect, as the database and its file say: the mode, the profile of pragmas, how rows were written.

        `collected` and `committed` say between which numbers of rows the buffer was written and a transaction ended: above the first, at
        most the second, which is None where there were never enough.
        """
        if is_on_disk(self._connection):
            mode = "disk"
        else:
            mode = "memory_persist" if self.count_kept_rows() else "memory"
        pragmas = settings_of(self._connection)
        return {
            "mode": mode,
            "db_pragma_profile": pragmas.pop("profile"),
            **pragmas,
            "writes": self.writes,
            "commits": self.commits,
            "rows": self.rows,
            "largest_write": self.largest_write,
            "collected": self._collected.range(),
            "committed": self._committed.range(),
        }

    def count_kept_rows(self) -> int:
        """Rows that another program finds in the file, once no process writes to it; 0 where there is none."""
        if not self.file.exists():
            return 0
        with explain_failure(self.file):
            # Immutable: a reader of a write-ahead log would leave files beside it.
            reader = sqlite3.connect(f"{self.file.absolute().as_uri()}?immutable=1", uri=True)
            try:
                # Rows are never deleted, so the last number is their count, and it is found without reading them.
                counts = [reader.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0] for table in TABLES]  # noqa: S608
            finally:
                reader.close()
        return sum(count or 0 for count in counts)

    def size(self) -> int:
        return size_of(self._connection)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def explain_failure(file: Path) -> Iterator[None]:
    """Turn what SQLite or the file system raises into LogFailed, which says what to do about it."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", None) or ""
        advice = next((text for start, text in _ADVICE.items() if code.startswith(start)), f"{error}.")
        raise LogFailed(f"The log '{file}' cannot be written: {advice} ({code}: {error})") from error
    except OSError as error:
        raise LogFailed(f"The log '{file}' cannot be written: {error.strerror}.") from error
