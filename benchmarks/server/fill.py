"""Fills databases as a team would in two months: 200 agents, 50 suites, several versions, a million executions.

Every agent is on every suite once (`wide`), twenty agents run ten suites every day in new versions (`daily`), and one suite has many
cases and repetitions (`large`). Agents differ in skill, speed and price, some versions are worse than the one before, some
executions fail, and a few runs are baselines. Ratings are computed as the pipeline does, and stored with everything else through
the store; only the transactions are larger than those of real runs.

    python -m server.fill URL [URL ...] [--scale 0.1]     from the folder benchmarks; databases must be empty
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.analysis.ranking.ratings import rate, with_plan
from assay.execute.environment import environment
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
    Phase,
    Plan,
    Ratings,
    Rubric,
    RunState,
    ScorerUse,
    Status,
    Suite,
    Trial,
)
from assay.pipeline.regressions import Inquiry, regressions_of
from assay.store import cases, totals
from assay.store.store import Store
from assay.store.tables import runs, trials

AGENTS, SUITES, CASES, MANY_CASES = 200, 50, 20, 500
DAILY_AGENTS, DAILY_SUITES, DAYS = 20, 10, 21
TOGETHER = 40
"""Agents in a run of `wide`."""
LARGE_RUNS, LARGE_AGENTS, REPETITIONS = 22, 4, 5
VARIANTS = 5
LARGE = "long-documents"
CATEGORIES = ("accuracy", "speed", "cost", "reliability", "safety")
BENCHMARKS = ("questions", "tasks")
METRICS = (
    "score",
    "seconds",
    "usd",
    "tokens",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "api_calls",
)
RUBRIC = Rubric(reference={"seconds": 1.0, "usd": 0.002, "tokens": 500.0})


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run to store: which agents, in which version, when."""

    suite: Suite
    agents: range
    version: str
    started: datetime
    repetitions: int = 1
    is_worse: bool = False
    """Whether a third of its agents got worse in this version."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many agents are on how many suites; a scale below 1 leaves out days, groups of agents and large runs."""

    agents: int = AGENTS
    suites: int = SUITES
    scale: float = 1.0


def plan_runs(now: datetime, size: Size) -> Iterator[PlannedRun]:
    """All runs, the oldest first."""
    suites, scale = [make_suite(number) for number in range(size.suites - 1)], size.scale
    first = now - timedelta(days=60)
    groups = [start for start in range(0, size.agents, TOGETHER) if not start or start / size.agents < scale]
    apart = min(timedelta(hours=3.5), timedelta(days=38) / (len(suites) * len(groups)))
    for number, (suite, start) in enumerate((suite, start) for suite in suites for start in groups):
        agents = range(start, min(start + TOGETHER, size.agents))
        yield PlannedRun(suite, agents, "1.0", first + apart * number)
    for day in range(max(2, round(DAYS * scale))):
        for number, suite in enumerate(suites[:DAILY_SUITES]):
            started = now - timedelta(days=DAYS - day, minutes=-20 * number)
            yield PlannedRun(suite, range(DAILY_AGENTS), f"1.{day + 1}", started, is_worse=day in (9, 18))
    large = make_suite(size.suites - 1, LARGE, MANY_CASES)
    for number in range(max(1, round(LARGE_RUNS * scale))):
        agents = range(number * LARGE_AGENTS, (number + 1) * LARGE_AGENTS)
        started = now - timedelta(days=22 - number, hours=-3)
        yield PlannedRun(large, agents, "2.0", started, REPETITIONS)


def make_suite(number: int, name: str = "", count: int = CASES) -> Suite:
    name = name or f"suite-{number:02}"
    made = tuple(
        Case(f"{number:02}-{n:03}", f"Question {n} of {name}: what does paragraph {n} say?", str(n))
        for n in range(count)
    )
    benchmarks = tuple(
        Benchmark(one, one.title(), made, scorers=(ScorerUse("exact"),), rubric=RUBRIC, hash=f"{name}-{one}")
        for one in BENCHMARKS
    )
    return Suite(name, "1", CATEGORIES[number % len(CATEGORIES)], benchmarks, hash=name)


Columns = dict[str, NDArray[Any]]
"""Metric to its value in each execution of a trial."""


class Filler:
    """Writes the same runs to several stores."""

    def __init__(self, urls: Sequence[str], seed: int = 1) -> None:
        self._stores = [Store.open(url) for url in urls]
        self._chance = np.random.default_rng(seed)
        self._environment: Environment = environment(Path.cwd())
        self._rated: dict[tuple[object, ...], tuple[Columns, Ratings]] = {}
        self.executions = 0

    def add(self, planned: PlannedRun, run_id: str) -> None:
        planned_trials = tuple(_trials(planned))
        plan = Plan(planned.suite.name, planned_trials, seed=1, suite=planned.suite, tags=("nightly",))
        made: list[Execution] = []
        ratings: list[Ratings] = []
        for trial in planned_trials:
            columns, rated = self._measure_and_rate(trial, planned)
            made += _executions(trial, columns, planned.started)
            ratings.append(replace(rated, names=trial.cases))
        ended = planned.started + timedelta(minutes=8)
        for store in self._stores:
            run = store.begin(plan, self._environment, run_id, planned.started, "bench")
            store.add(run_id, Batch(tuple(made)))
            with store._writer.begin() as connection:
                for stored, rated in zip(run.trials, ratings, strict=True):
                    cases.write_ratings(connection, stored.id, rated)
        self._finish(run_id, ended)
        self.executions += len(made)

    def _finish(self, run_id: str, ended: datetime) -> None:
        for store in self._stores:
            # Not by `finish`, which refreshes the matrix of PostgreSQL every time.
            with store._writer.begin() as connection:
                chosen = runs.update().where(runs.c.id == run_id)
                connection.execute(chosen.values(state=RunState.COMPLETED.value, ended=ended))
                totals.write_totals(connection, trials.c.run_id == run_id)
                totals.note_run_change(connection, run_id)
            store._ledgers.clear()

    def name_baselines(self, suites: Sequence[str], run_ids: Sequence[str]) -> None:
        for store in self._stores:
            for suite, run_id in zip(suites, run_ids, strict=True):
                store.set_baseline(suite, run_id)

    def close(self) -> None:
        """With what the planner of PostgreSQL would know after a night, and the regressions that somebody looked for."""
        for store in self._stores:
            store.refresh()
            with store._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("ANALYZE")
            for number in range(3):
                regressions_of(store, Inquiry(_agent(number), tolerance=0.1))
            store.close()

    def _measure_and_rate(self, trial: Trial, planned: PlannedRun) -> tuple[Columns, Ratings]:
        """An agent does as well as on one of a few suites before: rating takes longest, and is done once for these."""
        variant = int(self._chance.integers(VARIANTS))
        key = (trial.agent.name, planned.is_worse, len(trial.cases), planned.repetitions, variant)
        if key not in self._rated:
            columns = self._measure(trial, planned)
            self._rated[key] = columns, _rate(trial, columns)
        return self._rated[key]

    def _measure(self, trial: Trial, planned: PlannedRun) -> Columns:
        """What each execution of a trial measured, column by column, case by case in each round."""
        number, chance = int(trial.agent.name.rpartition("-")[2]), self._chance
        count = len(trial.cases) * planned.repetitions
        is_worse = planned.is_worse and number % 3 == 0
        skill = 0.45 + 0.5 * ((number * 37) % AGENTS) / AGENTS - 0.2 * is_worse
        pace = 0.5 + 1.5 * ((number * 61) % AGENTS) / AGENTS + 0.4 * is_worse
        price = 0.5 + 4 * ((number * 17) % AGENTS) / AGENTS
        fresh, written = chance.integers(150, 350, count), chance.integers(20, 80, count)
        return {
            "is_ok": chance.random(count) > 0.02,
            "score": (chance.random(count) < skill).astype(float),
            "seconds": pace * chance.lognormal(0, 0.3, count),
            "usd": (fresh * price + 50 * 0.1 * price + written * 5 * price) / 1e6,
            "input_tokens": fresh + 50.0,
            "output_tokens": written.astype(float),
            "cached_tokens": np.full(count, 50.0),
            "tokens": fresh + 50.0 + written,
            "api_calls": np.ones(count),
        }


def _agent(number: int) -> str:
    return f"agent-{number:03}"


def _trials(planned: PlannedRun) -> Iterator[Trial]:
    arms = ((benchmark, number) for benchmark in planned.suite.benchmarks for number in planned.agents)
    for index, (benchmark, number) in enumerate(arms):
        name = _agent(number)
        use = AgentUse(name, "openai", {"model": f"model-{number % 12}"}, planned.version)
        yield Trial(
            index, f"{benchmark.id} · {name}", AgentVersion(name, planned.version), benchmark.id, "ask", {},
            Iterations(measured=planned.repetitions), agent_use=use, suite=planned.suite.name,
            cases=tuple(case.id for case in benchmark.cases),
        )  # fmt: skip


def _executions(trial: Trial, columns: Columns, started: datetime) -> Iterator[Execution]:
    listed = {name: columns[name].tolist() for name in METRICS}
    begun = started.timestamp() + trial.index
    for n, is_ok in enumerate(columns["is_ok"].tolist()):
        repetition, place = divmod(n, len(trial.cases))
        measured = {name: values[n] for name, values in listed.items() if is_ok or name == "seconds"}
        yield Execution(
            trial.index, 0, Phase.MEASURED, repetition, Status.OK if is_ok else Status.FAILED, begun + n, measured,
            case=trial.cases[place],
            output=f"The paragraph says that {place} is the answer, as far as I can see." if is_ok else None,
            error=None if is_ok else "HTTP 500: the model is overloaded",
        )  # fmt: skip


def _rate(trial: Trial, columns: Columns) -> Ratings:
    """As `pipeline.ratings.ratings_of` rates what it reads from the store."""
    count, is_ok = len(columns["is_ok"]), columns["is_ok"].tolist()
    metrics: dict[str, list[float | None]] = {
        name: [value if ok or name == "seconds" else None for value, ok in zip(columns[name].tolist(), is_ok, strict=True)]
        for name in METRICS
    }  # fmt: skip
    metrics |= {name: [None] * count for name in ("cpu_seconds", "rss_max_bytes", "ttft")}
    numbers = [divmod(n, len(trial.cases)) for n in range(count)]
    table = CaseTable(
        [trial.cases[place] for _, place in numbers],
        [repetition for repetition, _ in numbers],
        ["ok" if ok else "failed" for ok in is_ok],
        metrics,
        [0] * count,
    )
    return with_plan(rate(table, RUBRIC, Benchmark("", "", ()).limits), trial.number_of_planned_executions)


def fill(urls: Sequence[str], size: Size, now: datetime | None = None) -> int:
    """Fill empty databases; how many executions each of them has then."""
    filler, started = Filler(urls), perf_counter()
    first_runs: dict[str, str] = {}
    for number, planned in enumerate(plan_runs(now or datetime.now(UTC), size)):
        run_id = f"{number:04x}f1d0c7"
        filler.add(planned, run_id)
        first_runs.setdefault(planned.suite.name, run_id)
        if number % 50 == 0:
            elapsed = perf_counter() - started
            print(f"  {number + 1} runs, {filler.executions:,} executions, {elapsed:.0f} s", file=sys.stderr)
    named = [*list(first_runs)[:DAILY_SUITES], LARGE]
    filler.name_baselines(["main", *named], [first_runs[LARGE], *(first_runs[name] for name in named)])
    filler.close()
    return filler.executions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--scale", type=float, default=1.0)
    asked = parser.parse_args()
    os.environ.setdefault("ASSAY_DB", asked.urls[0])
    print(f"{fill(asked.urls, Size(scale=asked.scale)):,} executions")


if __name__ == "__main__":
    main()
