"""Real clocks: eight names for one function, on a machine that another program keeps busy by turns.

Nothing here is simulated but the agents that say so: `assay run` starts workers and times them, and the verdicts are what
`assay leaderboard`, `assay compare` and `assay gate` print. As all agents are the same function, every claim is wrong.
Planted differences show what the caution costs.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arms import ASSAY, ended, tell

CASES = 10
NAMES = tuple(f"name-{letter}" for letter in "abcdefgh")
PAIRS = tuple(zip(NAMES[::2], NAMES[1::2], strict=True))[:2]
HISTORY = 7
"""Runs in a database before a planted change: more than the number from which run-to-run noise counts as known."""

AGENT = """\
def work(question):
    total = 0
    for number in range({steps}):
        total += number * number
    return question
"""
STEPS = 20_000
WAITING_AGENT = """\
import time


def work(question):
    time.sleep({steps} * 1e-6)
    return question
"""
"""As one that waits for a model elsewhere: 20 ms."""

BUSY = """\
import random, sys, time

chance = random.Random(int(sys.argv[1]))
while True:
    for is_busy in (True, False):
        end = time.monotonic() + chance.expovariate(1 / 0.4)
        while is_busy and time.monotonic() < end:
            sum(range(1000))
        time.sleep(max(0.0, end - time.monotonic()))
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of machine and of run."""

    name: str
    repetitions: int
    is_busy: bool = True
    is_simulated: bool = False


CELLS = (
    Cell("busy, 1 repetition", 1),
    Cell("busy, 3 repetitions", 3),
    Cell("busy, 5 repetitions", 5),
    Cell("busy, 3 repetitions, simulated agents", 3, is_simulated=True),
    Cell("idle, 3 repetitions", 3, is_busy=False),
)


@dataclass(slots=True)
class Tally:
    """Verdicts of one kind: how many were asked for, and how many claimed something."""

    n: int = 0
    claims: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, claim: str) -> None:
        self.n += 1
        self.claims += bool(claim)
        if claim:
            self.examples.append(claim)


Tallies = dict[str, Tally]


class Project:
    """A folder with a suite, its agents and a database; every verdict comes from a command."""

    def __init__(
        self, folder: Path, names: Sequence[str] = NAMES, is_simulated: bool = False, source: str = AGENT
    ) -> None:
        self.folder, self.names, self._source = folder, names, source
        folder.mkdir(parents=True, exist_ok=True)
        self.write_agents({})
        (folder / "suite.json").write_text(json.dumps(self._suite(is_simulated)))

    def _suite(self, is_simulated: bool) -> dict[str, Any]:
        cases = [{"id": f"q{n}", "input": f"q{n}", "expected": f"q{n}"} for n in range(CASES)]
        known = {"type": "simulated", "quality": 1.0, "seconds": 0.002, "jitter": 0.3, "price": "free"}
        agents = [
            {"name": name, **known, "seed": seed}
            if is_simulated
            else {
                "name": name,
                "type": "python",
                "target": f"{name.replace('-', '_')}.py:work",
                "price": "free",
            }
            for seed, name in enumerate(self.names)
        ]
        benchmark = {"id": "echo", "scorers": ["exact"], "cases": cases}
        return {"suite": "clocks", "version": "1", "benchmarks": [benchmark], "agents": agents}

    def write_agents(self, slower: Mapping[str, float]) -> None:
        """Each agent's file; those in `slower` take so many times as long."""
        for name in self.names:
            text = self._source.format(steps=round(STEPS * slower.get(name, 1.0)))
            (self.folder / f"{name.replace('-', '_')}.py").write_text(text)

    def commit(self) -> None:
        """Keep the agents as they are now: a gate that runs the baseline again takes its code from git."""
        if not (self.folder / ".git").exists():
            (self.folder / ".gitignore").write_text("*.db*\n__pycache__/\n")
            ended(["git", "init", "--quiet"], self.folder)
        who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")
        ended(["git", "add", "--all"], self.folder)
        ended(["git", *who, "commit", "--quiet", "--allow-empty", "--message", "agents"], self.folder)

    def forget(self) -> None:
        """Start anew with an empty database."""
        for file in self.folder.glob("*.db*"):
            file.unlink()

    def run(self, repetitions: int, seed: int) -> None:
        words = ["run", "suite.json", "--repetitions", str(repetitions), "--seed", str(seed), "--quiet"]
        ended([ASSAY, *words, "--db", self._database], self.folder)

    def answer(self, *words: str) -> tuple[int, Any]:
        """Exit code and JSON document of a command, called in this process to save its start."""
        from assay.cli.main import assay

        output = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(output):
            code = assay.main([*words, "--json", "--quiet", "--db", self._database], standalone_mode=False)
        return int(code or 0), json.loads(output.getvalue())

    def set_baseline(self) -> None:
        from assay.cli.main import assay

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assay.main(["baseline", "set", "main", "last", "--db", self._database], standalone_mode=False)

    def board_claim(self, metric: str) -> str:
        """Who is put above or below others; empty where all may have any rank."""
        _, boards = self.answer("leaderboard", "--metric", metric)
        rows = boards[0]["standings"] or boards[0]["simulated"]
        told = {row["agent"]: row["rank"] for row in rows if row["rank"] != [1, len(rows)]}
        return ", ".join(f"{agent} {rank[0]}–{rank[1]}" for agent, rank in told.items())

    def compare_claim(self, a: str, b: str) -> str:
        _, found = self.answer("compare", a, b)
        return _claims(found)

    def gate_claim(self, *options: str) -> str:
        """Which metrics got worse; empty where the gate passed."""
        code, found = self.answer("gate", *options)
        return _claims(found, ("worse",)) or "failed" if code else ""

    @property
    def _database(self) -> str:
        return f"sqlite:///{self.folder / 'clocks.db'}"


def _claims(found: Mapping[str, Any], verdicts: Sequence[str] = ("worse", "better")) -> str:
    claimed = [one for one in found["comparisons"] if one["verdict"] in verdicts]
    return ", ".join(f"{one['trial_b']} {one['metric']} {one['ratio'] or 0:.2f}×" for one in claimed)


@contextlib.contextmanager
def _machine(folder: Path, is_busy: bool, seed: int) -> Iterator[None]:
    """With `is_busy`, a program that keeps one core busy in phases of random length."""
    if not is_busy:
        yield
        return
    script = folder / "busy.py"
    script.write_text(BUSY)
    program = subprocess.Popen([sys.executable, str(script), str(seed)])
    try:
        yield
    finally:
        program.kill()
        program.wait()


KINDS = ("board overall", "board speed", "compare", "gate", "gate with a history", "gate --rerun-baseline")


def count_false_claims(cell: Cell, boards: int) -> Tallies:
    """Identical agents: boards and pairs of each run, gates against the run before it."""
    tallies = {kind: Tally() for kind in KINDS}
    with tempfile.TemporaryDirectory() as place, _machine(Path(place), cell.is_busy, boards):
        fresh = Project(Path(place) / "fresh", NAMES, cell.is_simulated)
        growing = Project(Path(place) / "growing", NAMES[:2], cell.is_simulated)
        for number in range(-HISTORY, 0):
            growing.run(cell.repetitions, HISTORY + number)
        growing.set_baseline()
        for number in range(boards):
            fresh.forget()
            fresh.run(cell.repetitions, 2 * number)
            for metric in ("overall", "speed"):
                tallies[f"board {metric}"].add(fresh.board_claim(metric))
            for a, b in PAIRS:
                tallies["compare"].add(fresh.compare_claim(a, b))
            fresh.set_baseline()
            fresh.run(cell.repetitions, 2 * number + 1)
            tallies["gate"].add(fresh.gate_claim())
            growing.run(cell.repetitions, HISTORY + number)
            tallies["gate with a history"].add(growing.gate_claim())
            tallies["gate --rerun-baseline"].add(growing.gate_claim("--rerun-baseline"))
            growing.set_baseline()
            _tell_progress(cell.name, number, boards, tallies)
    return tallies


@dataclass(frozen=True, slots=True)
class Planted:
    """A true difference, and how many rounds it is looked for in."""

    name: str
    factor: float
    repetitions: int
    source: str = AGENT


PLANTED = (
    Planted("2 × slower, 3 rounds", 2.0, 3),
    Planted("20 % slower, 10 rounds", 1.2, 10),
    Planted("2 × slower, 3 rounds, agents that wait", 2.0, 3, WAITING_AGENT),
)


FOUND = ("board speed", "compare", "gate with a history", "gate --rerun-baseline")


def count_finds(planted: Planted, times: int) -> Tallies:
    """One of two agents is slower: on the board, in a comparison, and in a gate after it became so."""
    slow = {NAMES[1]: planted.factor}
    tallies = {kind: Tally() for kind in FOUND}
    with tempfile.TemporaryDirectory() as place, _machine(Path(place), True, times):
        pair, history = (
            Project(Path(place) / name, NAMES[:2], source=planted.source) for name in ("pair", "history")
        )
        history.commit()
        for number in range(HISTORY):
            history.run(planted.repetitions, number)
        history.set_baseline()
        pair.write_agents(slow)
        history.write_agents(slow)
        history.commit()
        for number in range(times):
            pair.forget()
            pair.run(planted.repetitions, number)
            tallies["board speed"].add(pair.board_claim("speed"))
            tallies["compare"].add(_found_slower(pair.compare_claim(*NAMES[:2])))
            history.run(planted.repetitions, HISTORY + number)
            tallies["gate with a history"].add(_found_slower(history.gate_claim()))
            tallies["gate --rerun-baseline"].add(_found_slower(history.gate_claim("--rerun-baseline")))
            history.answer("runs", "delete", "last", "--yes")
            _tell_progress(planted.name, number, times, tallies)
    return tallies


def _found_slower(claim: str) -> str:
    return claim if "seconds" in claim else ""


def _tell_progress(name: str, number: int, of: int, tallies: Tallies) -> None:
    told = ", ".join(f"{kind} {one.claims}/{one.n}" for kind, one in tallies.items())
    tell(f"  {name} {number + 1}/{of}: {told}")


@dataclass(frozen=True, slots=True)
class Measured:
    """Wrong claims by kind of machine and run, and finds by planted difference."""

    false: Mapping[str, Tallies]
    found: Mapping[str, Tallies]


def measure(quick: bool) -> Measured:
    boards, times = (2, 1) if quick else (15, 8)
    return Measured(
        {cell.name: count_false_claims(cell, boards) for cell in CELLS},
        {planted.name: count_finds(planted, times) for planted in PLANTED},
    )
