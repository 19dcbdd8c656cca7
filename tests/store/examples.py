"""Plans and executions to store, small and with exact figures."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product

import sqlalchemy as sa

from assay.model import (
    AgentUse,
    AgentVersion,
    Batch,
    Benchmark,
    Budget,
    Case,
    Cleanup,
    Environment,
    Execution,
    InstrumentUse,
    Isolation,
    Iterations,
    Limits,
    Order,
    Phase,
    Plan,
    ResourceRequest,
    Rubric,
    Run,
    ScorerUse,
    Status,
    Suite,
    Trial,
    Turn,
    Until,
)
from assay.store.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = NOON.timestamp()

ENVIRONMENT = Environment(
    {"os": "Linux", "cpu": {"model": "x", "cores": 2}, "load": [0.5, 0.25]},
    {"commit": "abc", "dirty": False},
    ("the machine is noisy",),
)


PARSER = AgentVersion("parser", "1")


def simple_trial(index: int = 0, agent: AgentVersion = PARSER) -> Trial:
    return Trial(index, f"trial {index}", agent, "parse", "noop", {"size": index}, Iterations(measured=5))


def elaborate_trial(index: int = 0) -> Trial:
    return Trial(
        index=index,
        name="zeta=1, alpha=[2]",
        agent=AgentVersion("parser"),
        benchmark="parse",
        experiment="module:Parse",
        params={"zeta": 1, "alpha": [2, {"deep": None}], "big": 1e23, "text": "ä ✓", "yes": True},
        iterations=Iterations(2, 50, Until(0.1, 50, 7, "usd"), None),
        axes={"zeta": 1, "alpha": [2, {"deep": None}]},
        processes=10,
        instruments=(InstrumentUse("timing"), InstrumentUse("psutil", {"interval_ms": 5})),
        isolation=Isolation.COLD,
        limits=Limits(1.5, 2**33, 100.0, 0.25),
    )


def plan_of(*trials: Trial, name: str = "parsing", tags: tuple[str, ...] = ()) -> Plan:
    return Plan(name, trials or (simple_trial(),), seed=7, tags=tags)


def elaborate_plan() -> Plan:
    return Plan(
        name="elaborate",
        trials=(elaborate_trial(0), simple_trial(1)),
        seed=2**40,
        order=Order.SEQUENTIAL,
        parallelism=3,
        executor="elsewhere",
        load=("experiments.py",),
        output_dir="results",
        tags=("db", "nightly"),
        notes="why",
        source={"experiment": "noop", "zeta": [1, 2], "alpha": {"b": 1, "a": 2}},
    )


def elaborate_suite() -> Suite:
    """Every field of every noun differs from its default."""
    judge = ScorerUse("judge", 2.5, {"agent": {"type": "openai"}, "rubric": ["clear", "short"]}, "relevance")
    tool = {"name": "find", "description": "looks", "parameters": {"type": "object", "required": ["a"]}}
    cases = (
        Case(
            "c1",
            {"question": "ä ✓?", "list": [1, None, 2.5]},
            expected=["42", 1e23, False],
            turns=(Turn("first", {"deep": [{}]}, (ScorerUse("exact"), judge)), Turn(["second"])),
            tools=(tool, {"name": "none"}),
            files={"notes.txt": "notes.txt", "a/b": "elsewhere"},
            tags=("hard", "ä"),
            metadata={"source": {"page": 3}},
        ),
        Case("c2", ""),
        Case("c3", 0, 0),
    )
    sums = Benchmark(
        "sums",
        "Sums of all kinds",
        cases,
        description="adds up",
        test_type="real_world",
        experiment="module:Ask",
        params={"size": 3},
        sweep={"mode": ["a", "b"]},
        processes=4,
        instruments=(InstrumentUse("psutil", {"interval_ms": 100}),),
        scorers=(ScorerUse("numeric", options={"tolerance": 0.01}), judge),
        iterations=Iterations(1, 7, Until(0.1, 9, 3, "usd"), None),
        limits=Limits(2.5, 2**33, 1000.0, 0.25),
        cleanup=Cleanup(("rm", "-rf", "a b"), "/suites"),
        rubric=Rubric({"accuracy": 0.75, "cost": 0.25}, {"seconds": 1.5, "memory_mb": 64.0}, 0.9),
        dataset={"size": 3, "origin": "ours"},
        metrics_measured=("accuracy", "cost"),
        hash="b1",
        has_default_warmup=True,
    )
    words = Benchmark("words", "words", (Case("c1", "say hi"),), hash="b2")
    return Suite(
        "elaborate",
        "2.1",
        "accuracy",
        (sums, words),
        description="of everything",
        baseline_scores={"gpt": {"sums": 0.75}, "other": {}},
        schedule="0 3 * * *",
        require=("accuracy>=0.9",),
        hash="s1",
        title="An elaborate suite",
        created_at="2026-01-31",
    )


GPT = AgentUse(
    "gpt",
    "openai",
    {"model": "small", "base_url": "${BASE_URL}", "params": {"temperature": 0, "stop": [".", None]}},
    version="3",
    price={"input": 0.15, "output": 0.6},
    folder="agents",
    resources=ResourceRequest(2, 1, {"large": 1}),
)
NOP = AgentUse("nop", "nop")


def small_suite(name: str = "small", *benchmarks: str, hash: str = "s1") -> Suite:
    made = tuple(
        Benchmark(id, id, (Case("c1", "1+1", "2"), Case("c2", "2+2", "4")), hash=f"{id}-hash")
        for id in benchmarks or ("sums",)
    )
    return Suite(name, "1", "speed", made, hash=hash)


def suite_plan(suite: Suite, *uses: AgentUse, budget: Budget | None = None) -> Plan:
    """A trial for each agent on each benchmark."""
    trials = [
        Trial(
            index,
            f"{benchmark.id} · {use.name}",
            AgentVersion(use.name, use.version),
            benchmark.id,
            benchmark.experiment,
            {"temperature": 0},
            Iterations(measured=2),
            limits=benchmark.limits,
            agent_use=use,
            suite=suite.name,
            cases=tuple(case.id for case in benchmark.cases),
            concurrency=8,
        )
        for index, (benchmark, use) in enumerate(product(suite.benchmarks, uses))
    ]
    return Plan(suite.name, tuple(trials), seed=7, suite=suite, budget=budget or Budget())


def begin(store: Store, run_id: str = "run-1", plan: Plan | None = None, *, hours: float = 0) -> Run:
    return store.begin(plan or plan_of(), ENVIRONMENT, run_id, NOON + timedelta(hours=hours), "me")


def execution(
    repetition: int = 0,
    *,
    trial: int = 0,
    process: int = 0,
    phase: Phase = Phase.MEASURED,
    status: Status = Status.OK,
    measurements: Mapping[str, float] | None = None,
    **more: object,
) -> Execution:
    measured = {"seconds": 0.5 + repetition} if measurements is None else measurements
    started = EPOCH + repetition
    return Execution(trial, process, phase, repetition, status, started, measured, **more)  # type: ignore[arg-type]


def batch(made: Iterable[Execution]) -> Batch:
    return Batch(tuple(made))


@contextmanager
def at_most(pages: int) -> Iterator[None]:
    """SQLite behaves as if the disk had room for that many pages only."""

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    sa.event.listen(sa.Pool, "connect", limit)
    try:
        yield
    finally:
        sa.event.remove(sa.Pool, "connect", limit)
