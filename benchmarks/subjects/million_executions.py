"""Fills a database with so many executions of ten agents: million_executions.py URL NUMBER"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from random import Random

from assay.model import (
    AgentUse,
    AgentVersion,
    Batch,
    Benchmark,
    Case,
    Environment,
    Execution,
    Iterations,
    Phase,
    Plan,
    Rubric,
    RunState,
    Status,
    Suite,
    Trial,
)
from assay.pipeline.ratings import rate_trials
from assay.store.store import Store

AGENTS, CASES = 10, 1000
BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def main(url: str, number: int) -> None:
    cases = tuple(Case(f"c{n}", f"What is {n} + 1?", n + 1) for n in range(CASES))
    rubric = Rubric(reference={"seconds": 1.0, "usd": 0.01})
    suite = Suite(
        "large", "1", "accuracy", (Benchmark("sums", "sums", cases, rubric=rubric, hash="h"),), hash="s"
    )
    with Store.open(url) as store:
        for agent in range(AGENTS):
            _fill(store, suite, agent, repetitions=max(1, number // AGENTS // CASES))


def _fill(store: Store, suite: Suite, agent: int, repetitions: int) -> None:
    run, chance, began = f"run{agent:03}", Random(agent), BEGAN + timedelta(hours=agent)
    cases = tuple(case.id for case in suite.benchmarks[0].cases)
    use = AgentUse(
        f"agent{agent}",
        "openai",
        {"model": "m"},
        "1",
        {"input": 1 + agent, "output": 5 + agent, "cached": 0.1},
    )
    trial = Trial(
        0, f"sums · {use.name}", AgentVersion(use.name, "1"), "sums", "ask", {}, Iterations(measured=repetitions),
        agent_use=use, suite=suite.name, cases=cases,
    )  # fmt: skip
    store.begin(Plan(suite.name, (trial,), seed=1, suite=suite), Environment({}), run, began, "bench")
    for repetition in range(repetitions):
        store.add(run, Batch(tuple(_execution(case, repetition, agent, chance) for case in cases)))
    store.finish(run, RunState.COMPLETED, began + timedelta(minutes=5))
    rate_trials(store, store.run(run), suite)


def _execution(case: str, repetition: int, agent: int, chance: Random) -> Execution:
    fresh, cached, written = chance.randrange(150, 350), 50, chance.randrange(20, 80)
    measurements = {
        "seconds": chance.lognormvariate(0, 0.3),
        "score": float(chance.random() < 0.5 + 0.04 * agent),
        "usd": (fresh * (1 + agent) + cached * 0.1 + written * (5 + agent)) / 1e6,
        "input_tokens": float(fresh + cached),
        "cached_tokens": float(cached),
        "output_tokens": float(written),
        "tokens": float(fresh + cached + written),
        "api_calls": 1.0,
    }
    return Execution(0, 0, Phase.MEASURED, repetition, Status.OK, BEGAN.timestamp(), measurements, case=case)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
