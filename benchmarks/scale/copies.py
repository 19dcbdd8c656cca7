"""How fast `assay db copy` is between SQLite and PostgreSQL, verification included, and how fast bare drivers only store the same rows.

A bare driver has all rows in memory and stores them in one transaction, by COPY or `executemany`: it reads nothing, compares
nothing, and cannot go on where it stopped."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from arms import ASSAY, ended, tell
from record import Bound, Promise, Result, figure, ratio

from assay.store.store import Store
from scale.rows import SUITE, TIMINGS, Kind, make_database, postgres, store_run

RATE, SHARE = 50_000, 0.6
TRIALS = 40
TABLES = {
    "executions": "trial_id, seq, process, phase, case_id, repetition, status, started, loops, output",
    "measurements": "trial_id, metric, seq, value",
}
"""The columns that these rows have; the others are NULL."""
WAYS = {"postgresql": "from SQLite to PostgreSQL", "sqlite": "from PostgreSQL to SQLite"}


def measure(quick: bool) -> list[Result]:
    found: list[Result] = []
    with postgres() as server:
        for kind in (TIMINGS, SUITE):
            size = 12_500 if kind is TIMINGS else 5_000
            found += _copy_both_ways(server, kind, 500 if quick else size, 1 if quick else 3)
    return found


def _copy_both_ways(server: str, kind: Kind, per_trial: int, rounds: int) -> list[Result]:
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    bare: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        source = f"sqlite:///{folder}/source.db"
        with Store.open(source) as store:
            store_run(store, "r1", kind, TRIALS, per_trial)
        for number in range(rounds):
            there = make_database(server, f"{kind.name}_{number}")
            rates["postgresql"].append(_copy(Path(folder), source, there))
            rates["sqlite"].append(_copy(Path(folder), there, f"sqlite:///{folder}/back-{number}.db"))
            bare["postgresql"].append(_store_by_copy(there))
            bare["sqlite"].append(_store_by_executemany(Path(folder) / f"back-{number}.db"))
            tell(f"  {kind.name}: {[round(one[-1]) for one in rates.values()]} executions a second")
    return [judge(way, kind, values, bare[way]) for way, values in rates.items()]


def _describe(kind: Kind) -> str:
    return f"{len(kind.metrics)} metrics each, with output" if kind.output else "one metric each"


def _copy(folder: Path, source: str, target: str) -> float:
    """Executions a second by the clock of the command, whose start is not in it."""
    told = json.loads(ended((ASSAY, "db", "copy", source, target, "--json"), folder).stdout)
    return float(told["executions"] / told["seconds"])


def _store_by_copy(url: str) -> float:
    """Executions a second that one connection stores by COPY, once more into the tables of a copy after they are emptied."""
    import psycopg

    with psycopg.connect(url) as connection:
        cursor = connection.cursor()
        packed = {name: b"".join(_copy_out(cursor, name, columns)) for name, columns in TABLES.items()}
        found = cursor.execute("SELECT COUNT(*) FROM executions").fetchone()
        assert found is not None
        cursor.execute("TRUNCATE executions, measurements")
        began = time.perf_counter()
        for name, columns in TABLES.items():
            with cursor.copy(f"COPY {name} ({columns}) FROM STDIN (FORMAT binary)".encode()) as copy:
                copy.write(packed[name])
        connection.commit()
        return int(found[0]) / (time.perf_counter() - began)


def _copy_out(cursor: Any, name: str, columns: str) -> list[bytes]:
    key = "trial_id, seq" if name == "executions" else "trial_id, metric, seq"
    chosen = f"SELECT {columns} FROM {name} ORDER BY {key}"
    with cursor.copy(f"COPY ({chosen}) TO STDOUT (FORMAT binary)") as copy:
        return [bytes(part) for part in copy]


def _store_by_executemany(file: Path) -> float:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        rows = {
            name: connection.execute(f"SELECT {columns} FROM {name}").fetchall()
            for name, columns in TABLES.items()
        }
        for name in TABLES:
            connection.execute(f"DELETE FROM {name}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA synchronous = NORMAL")
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        for name, columns in TABLES.items():
            values = ", ".join("?" * (columns.count(",") + 1))
            connection.executemany(f"INSERT INTO {name} ({columns}) VALUES ({values})", rows[name])
        connection.execute("COMMIT")
        return len(rows["executions"]) / (time.perf_counter() - began)


def judge(way: str, kind: Kind, rates: Sequence[float], bare: Sequence[float]) -> Result:
    """Small executions by the rate alone; those whose rows no driver stores at that rate, against the bare driver."""
    name, claim = f"copy-{kind.name}-to-{way}", f"Executions a second that `assay db copy` copies {WAYS[way]}, {_describe(kind)}"  # fmt: skip
    ours, peers = figure(rates), {"the bare driver, which only stores the rows": figure(bare)}
    observed = {"rates": rates, "bare": bare}
    if kind is TIMINGS:
        promise = Promise(name, claim, Bound.AT_LEAST, RATE, "1/s")
        return Result(promise, "1/s", ours, ours, peers, values=observed)
    promise = Promise(name, claim, Bound.AT_LEAST, SHARE, "times", "the bare driver's rate")
    return Result(promise, "1/s", ours, ratio(rates, bare), peers, values=observed)
