"""Leaderboards: how often equal agents are told apart, and how fast a large store answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from statistics import median

import numpy as np

from assay.analysis.ranking.leaderboard import leaderboard
from assay.analysis.ranking.ratings import rate
from assay.model import (
    AgentUse,
    AgentVersion,
    Batch,
    Benchmark,
    Case,
    CaseTable,
    Environment,
    Execution,
    Iterations,
    Limits,
    Phase,
    Plan,
    Ratings,
    Rubric,
    RunState,
    Status,
    Suite,
    Trial,
)
from assay.model.standing import Contender
from assay.pipeline.leaderboard import leaderboards
from assay.pipeline.ratings import rate_trials
from assay.store.standings import Filter
from assay.store.store import Store

AGENTS = tuple(f"agent-{letter}" for letter in "abcdefghij")
RUBRIC = Rubric({}, {"seconds": 1.0, "usd": 0.01, "tokens": 300.0})
SKILL = 0.6
BOARDS, QUICK_BOARDS = 600, 40
SEED = 20250701


def measure(quick: bool = False) -> dict[str, float]:
    return {
        "equal_agents_separated": equal_agents_separated(QUICK_BOARDS if quick else BOARDS),
        **_leaderboard_seconds(runs=2 if quick else 20),
        "compare_command_seconds": _compare_command_seconds(cases=400 if quick else 20_000),
    }


def equal_agents_separated(boards: int) -> float:
    """Share of boards of ten equal agents on which anybody is put above another; sizes and metrics take turns."""
    sizes, metrics = (12, 40, 120), ("overall", "accuracy", "speed", "cost")
    kinds = list(product(sizes, metrics))
    separated = 0
    for number in range(boards):
        cases, metric = kinds[number % len(kinds)]
        contenders = _equal_agents(np.random.default_rng([SEED, number]), cases)
        board = leaderboard("equal", contenders, ["b0", "b1"], metric)
        separated += any(row.best_rank > 1 for row in board.standings)
    return separated / boards


def _equal_agents(chance: np.random.Generator, cases: int) -> list[Contender]:
    """Cases that are hard or slow for one are so for all."""
    hard = [chance.normal(0, 0.25, cases) for _ in range(2)]
    slow = [chance.lognormal(0, 0.8, cases) for _ in range(2)]
    return [
        Contender(name, "1", {f"b{n}": _rated(chance, hard[n], slow[n]) for n in range(2)}, False, None)
        for name in AGENTS
    ]


def _rated(chance: np.random.Generator, hard: np.ndarray, slow: np.ndarray, repetitions: int = 3) -> Ratings:
    cases = len(hard)
    right = chance.random((cases, repetitions)) < np.clip(SKILL + hard, 0, 1)[:, None]
    seconds = slow[:, None] * chance.lognormal(0, 0.3, (cases, repetitions))
    seconds *= np.where(chance.random((cases, repetitions)) < 0.03, 10, 1)  # stragglers
    usd = chance.lognormal(-5.3, 0.4, (cases, repetitions))
    table = CaseTable(
        [f"c{case}" for case in range(cases) for _ in range(repetitions)],
        list(range(repetitions)) * cases,
        ["ok"] * (cases * repetitions),
        {
            "score": right.astype(float).ravel().tolist(),
            "seconds": seconds.ravel().tolist(),
            "usd": usd.ravel().tolist(),
        },
    )
    return rate(table, RUBRIC, Limits())


REPETITIONS = 5
CALLS, COMMANDS = 15, 5


@dataclass(frozen=True, slots=True)
class _Size:
    """Of a run: executions are cases × repetitions for each agent and benchmark."""

    agents: tuple[str, ...]
    benchmarks: int
    cases: int


def _leaderboard_seconds(runs: int) -> dict[str, float]:
    """With 50,000 executions a run, each of ten agents on five benchmarks; medians of several calls and commands."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        url = f"sqlite:///{folder}/boards.db"
        with Store.open(url) as store:
            _fill(store, _Size(AGENTS, benchmarks=5, cases=200), runs)
            warm = [_timed(store) for _ in range(CALLS)]
        commands = [_command_seconds("leaderboard", "--db", url) for _ in range(COMMANDS)]
    return {"leaderboard_seconds": median(warm), "leaderboard_command_seconds": median(commands)}


def _compare_command_seconds(cases: int) -> float:
    """Two agents of one run, each with five repetitions of every case; the median of several commands."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        url = f"sqlite:///{folder}/sides.db"
        with Store.open(url) as store:
            _fill(store, _Size(AGENTS[:2], benchmarks=1, cases=cases), runs=1)
        return median(_command_seconds("compare", *AGENTS[:2], "--db", url) for _ in range(COMMANDS))


def _command_seconds(*arguments: str) -> float:
    """From the start of the process to its end."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "assay.cli.main", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def _timed(store: Store) -> float:
    begun = time.perf_counter()
    [board] = leaderboards(store, Filter(suite="large"))
    assert len(board.standings) == len(AGENTS)
    return time.perf_counter() - begun


def _fill(store: Store, size: _Size, runs: int) -> None:
    cases = tuple(Case(f"case-{number:03}", number, number) for number in range(size.cases))
    benchmarks = tuple(
        Benchmark(f"b{n}", f"b{n}", cases, rubric=RUBRIC, hash=f"h{n}") for n in range(size.benchmarks)
    )
    suite = Suite("large", "1", "comprehensive", benchmarks, hash="large")
    now = datetime.now(UTC)
    for number in range(runs):
        began = now - timedelta(hours=runs - number)
        run = store.begin(
            _plan(suite, size.agents), Environment({}, {}), f"run-{number:03}", began, "benchmark"
        )
        for batch in _batches(np.random.default_rng([SEED, number]), began.timestamp(), size):
            store.add(run.id, batch)
        rate_trials(store, run, suite)
        store.finish(run.id, RunState.COMPLETED, began + timedelta(minutes=10))


def _plan(suite: Suite, agents: tuple[str, ...]) -> Plan:
    trials = tuple(
        Trial(
            index,
            f"{benchmark.id} · {name}",
            AgentVersion(name, "1"),
            benchmark.id,
            "ask",
            {},
            Iterations(measured=REPETITIONS),
            agent_use=AgentUse(name, "python"),
            suite=suite.name,
            cases=tuple(case.id for case in benchmark.cases),
        )
        for index, (benchmark, name) in enumerate(product(suite.benchmarks, agents))
    )
    return Plan(suite.name, trials, seed=1, suite=suite)


def _batches(chance: np.random.Generator, started: float, size: _Size) -> Iterator[Batch]:
    executions = size.cases * REPETITIONS
    for trial in range(size.benchmarks * len(size.agents)):
        skill = 0.4 + 0.05 * (trial % len(size.agents))
        right = (chance.random(executions) < skill).astype(float).tolist()
        seconds = chance.lognormal(0, 0.5, executions).tolist()
        yield Batch(
            tuple(
                Execution(
                    trial,
                    0,
                    Phase.MEASURED,
                    number // size.cases,
                    Status.OK,
                    started,
                    {"score": score, "seconds": taken, "usd": 0.004, "tokens": 200.0},
                    case=f"case-{number % size.cases:03}",
                )
                for number, score, taken in zip(range(executions), right, seconds, strict=True)
            )
        )


if __name__ == "__main__":
    print(measure())
