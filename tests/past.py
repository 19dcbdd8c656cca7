"""Runs written straight into a store, with exact figures: the past of an agent in a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

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
    Run,
    RunState,
    Status,
    Suite,
    Trial,
)
from assay.store.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CASES = 30
NOISE = {"spread": 0.05, "worst": 1.1, "cv": 0.02, "lost": 0.0, "chunks": 60, "seconds": 0.06}
FACTS = {
    "cpu": {"model": "AMD EPYC", "cores_logical": 2},
    "os": {"system": "Linux"},
    "machine": "x86_64",
    "noise": NOISE,
}


def suite_of(*benchmarks: str, name: str = "desk", hash: str = "s1") -> Suite:
    cases = tuple(Case(f"c{number:02}", f"What is {number} + 1?", number + 1) for number in range(CASES))
    rubric = Rubric(reference={"seconds": 1.0})
    made = (Benchmark(one, one, cases, rubric=rubric, hash=f"{hash}-{one}") for one in benchmarks)
    return Suite(name, "1", "accuracy", tuple(made), hash=hash)


@dataclass
class Past:
    """Makes one run after another, an hour apart; every figure has an everyday default."""

    store: Store
    agent: str = "desk-agent"
    suite: Suite = field(default_factory=lambda: suite_of("refunds"))
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))
    made: int = 0
    repetitions: int = 3
    """Of every case, in the runs to come."""

    def run(
        self,
        version: str = "1",
        *,
        slower: Mapping[str, float] | float = 1.0,
        wrong: Mapping[str, int] | int = 0,
        failed: int = 0,
        usd: float | None = None,
        hour: float = 1.0,
        facts: Mapping[str, object] = FACTS,
        state: RunState = RunState.COMPLETED,
        simulated: bool = False,
        suite: Suite | None = None,
        only: int | None = None,
        more: Mapping[str, float] | None = None,
    ) -> Run:
        """`more` metrics, each with a constant for every execution; `only` so many cases; `slower` and `wrong` by benchmark, or everywhere; `hour` is a factor on times that all of the run shares."""
        self.made += 1
        chosen = suite or self.suite
        plan = self._plan(chosen, version)
        run_id, began = f"run{self.made:03}", NOON + timedelta(hours=self.made)
        self.store.begin(plan, Environment(facts), run_id, began, "me")
        for index, benchmark in enumerate(chosen.benchmarks):
            factor = slower if isinstance(slower, float) else slower.get(benchmark.id, 1.0)
            made = [
                self._execution(
                    index,
                    n,
                    repetition,
                    hour * factor,
                    wrong=wrong if isinstance(wrong, int) else wrong.get(benchmark.id, 0),
                    failed=failed,
                    more={**({} if usd is None else {"usd": usd}), **(more or {})},
                    simulated=simulated,
                )
                for repetition in range(self.repetitions)
                for n in range(len(benchmark.cases) if only is None else only)
            ]
            self.store.add(run_id, Batch(tuple(made)))
        self.store.finish(run_id, state, began + timedelta(minutes=5))
        return self.store.run(run_id)

    def know_noise(self, version: str = "0") -> None:
        """An A/A run of ten rounds, as `assay noise` makes it, before all others."""
        made, repetitions = self.made, self.repetitions
        self.made, self.repetitions = -1, 10
        self.store.tag(self.run(version).id, ["noise"], [])
        self.made, self.repetitions = made, repetitions

    def to_json(self) -> str:
        """What `go_on` needs, beside the store, to make the runs that this object would make next."""
        return json.dumps({"made": self.made, "chance": self.chance.bit_generator.state})

    def go_on(self, text: str) -> None:
        state = json.loads(text)
        self.made = state["made"]
        self.chance.bit_generator.state = state["chance"]

    def _plan(self, suite: Suite, version: str) -> Plan:
        trials = tuple(
            Trial(
                index,
                f"{benchmark.id} · {self.agent}",
                AgentVersion(self.agent, version),
                benchmark.id,
                "ask",
                {},
                Iterations(measured=self.repetitions),
                agent_use=AgentUse(self.agent, "python", version=version),
                suite=suite.name,
                cases=tuple(case.id for case in benchmark.cases),
            )
            for index, benchmark in enumerate(suite.benchmarks)
        )
        return Plan(suite.name, trials, seed=7, suite=suite)

    def _execution(
        self,
        trial: int,
        case: int,
        repetition: int,
        factor: float,
        *,
        wrong: int,
        failed: int,
        more: Mapping[str, float],
        simulated: bool,
    ) -> Execution:
        """The first cases fail, those after them are wrong."""
        seconds = (1 + case / 10) * factor * float(np.exp(self.chance.normal(0, 0.01)))
        score = 0.0 if failed <= case < failed + wrong else 1.0
        measured = {"seconds": seconds, "score": score, **more}
        ok = case >= failed
        return Execution(
            trial,
            repetition,
            Phase.MEASURED,
            repetition,
            Status.OK if ok else Status.FAILED,
            NOON.timestamp(),
            measured if ok else {},
            case=f"c{case:02}",
            error=None if ok else "ValueError: no",
            detail={"simulated": True} if simulated else None,
        )
