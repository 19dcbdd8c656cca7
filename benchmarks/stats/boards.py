"""Leaderboards: how often equal agents are told apart, and how fast a large store answers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from statistics import median

import numpy as np

from assay.analysis.leaderboard import leaderboard
from assay.analysis.ratings import rate
from assay.model import (
    Agent,
    AgentUse,
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
from assay.pipeline.rating import rate_trials
from assay.pipeline.standing import leaderboards
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
        "leaderboard_ms_1m_executions": leaderboard_milliseconds(runs=2 if quick else 20),
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


CASES, REPETITIONS, BENCHMARKS = 200, 5, 5
CALLS = 15


def leaderboard_milliseconds(runs: int) -> float:
    """With 50,000 executions a run, each of ten agents on five benchmarks; the median of several calls."""
    with (
        tempfile.TemporaryDirectory(prefix="assay-") as folder,
        Store.open(f"sqlite:///{folder}/boards.db") as store,
    ):
        _fill(store, runs)
        taken = [_timed(store) for _ in range(CALLS)]
    return median(taken) * 1000


def _timed(store: Store) -> float:
    begun = time.perf_counter()
    [board] = leaderboards(store, Filter(suite="large"))
    assert len(board.standings) == len(AGENTS)
    return time.perf_counter() - begun


def _fill(store: Store, runs: int) -> None:
    cases = tuple(Case(f"case-{number:03}", number, number) for number in range(CASES))
    benchmarks = tuple(
        Benchmark(f"b{n}", f"b{n}", cases, rubric=RUBRIC, hash=f"h{n}") for n in range(BENCHMARKS)
    )
    suite = Suite("large", "1", "comprehensive", benchmarks, hash="large")
    now = datetime.now(UTC)
    for number in range(runs):
        began = now - timedelta(hours=runs - number)
        run = store.begin(_plan(suite), Environment({}, {}), f"run-{number:03}", began, "benchmark")
        for batch in _batches(np.random.default_rng([SEED, number]), began.timestamp()):
            store.add(run.id, batch)
        rate_trials(store, run, suite)
        store.finish(run.id, RunState.COMPLETED, began + timedelta(minutes=10))


def _plan(suite: Suite) -> Plan:
    trials = tuple(
        Trial(
            index,
            f"{benchmark.id} · {name}",
            Agent(name, "1"),
            benchmark.id,
            "ask",
            {},
            Iterations(measured=REPETITIONS),
            agent_use=AgentUse(name, "python"),
            suite=suite.name,
            cases=tuple(case.id for case in benchmark.cases),
        )
        for index, (benchmark, name) in enumerate(product(suite.benchmarks, AGENTS))
    )
    return Plan(suite.name, trials, seed=1, suite=suite)


def _batches(chance: np.random.Generator, started: float) -> Iterator[Batch]:
    for trial in range(BENCHMARKS * len(AGENTS)):
        skill = 0.4 + 0.05 * (trial % len(AGENTS))
        right = (chance.random(CASES * REPETITIONS) < skill).astype(float).tolist()
        seconds = chance.lognormal(0, 0.5, CASES * REPETITIONS).tolist()
        yield Batch(
            tuple(
                Execution(
                    trial,
                    0,
                    Phase.MEASURED,
                    number // CASES,
                    Status.OK,
                    started,
                    {"score": score, "seconds": taken, "usd": 0.004, "tokens": 200.0},
                    case=f"case-{number % CASES:03}",
                )
                for number, score, taken in zip(range(CASES * REPETITIONS), right, seconds, strict=True)
            )
        )


if __name__ == "__main__":
    print(measure())
