"""`assay power` held against what it forecasts: a stored pilot run, its forecast, then runs of that size and their verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
from numpy.typing import NDArray

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
    Verdict,
)
from assay.pipeline.compare import compare_refs
from assay.store.store import Store

RUBRIC = Rubric({}, {"seconds": 1.0, "usd": 0.01, "tokens": 300.0})
SEED = 20260412
PILOTS, RUNS = 3, 40
QUICK_PILOTS, QUICK_RUNS = 1, 20
CLAIMS = (Verdict.BETTER, Verdict.WORSE)

Floats = NDArray[np.float64]
Side = Mapping[str, Floats]
"""Metric to values; a row for each case."""
Draw = Callable[[np.random.Generator, int, int], tuple[Side, Side]]
"""Two agents on so many cases, so often each."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Two agents, or two versions of code, of which we know what they differ by."""

    name: str
    claim: str
    metric: str
    effect: float
    cases: int
    """Of the pilot run."""
    repetitions: int
    draw: Draw
    pilot: Draw | None = None
    """Where the pilot run is one of other agents."""
    is_code: bool = False
    """Then cases are processes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one truth, by one way to get there: cases or repetitions."""

    truth: Truth
    way: str
    sizes: tuple[int, ...]
    """What each pilot run led to."""
    found: int
    runs: int

    @property
    def share(self) -> float:
        return self.found / self.runs


def measure(quick: bool = False, names: Sequence[str] = ()) -> Iterator[Outcome]:
    pilots, runs = (QUICK_PILOTS, QUICK_RUNS) if quick else (PILOTS, RUNS)
    for number, truth in enumerate(TRUTHS):
        if names and truth.name not in names:
            continue
        found: dict[str, list[tuple[int, int]]] = {}
        for pilot in range(pilots):
            for way, size, decided in _check(truth, np.random.default_rng([SEED, number, pilot]), runs):
                found.setdefault(way, []).append((size, decided))
        for way, each in found.items():
            sizes = tuple(size for size, _ in each)
            yield Outcome(truth, way, sizes, sum(decided for _, decided in each), runs * len(each))


def _check(truth: Truth, chance: np.random.Generator, runs: int) -> Iterator[tuple[str, int, int]]:
    """Way, size, and how many of the runs of that size end with a verdict."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        url = f"sqlite:///{folder}/forecasts.db"
        keep = _store_code if truth.is_code else _store_suite
        with Store.open(url) as store:
            keep(store, "pilot", *(truth.pilot or truth.draw)(chance, truth.cases, truth.repetitions))
        need = _forecast(url, truth)
        ways = {
            "processes" if truth.is_code else "cases": (need["units_needed"], truth.repetitions),
            "repetitions": (truth.cases, need["repetitions_needed"]),
        }
        with Store.open(url) as store:
            for way, (cases, repetitions) in ways.items():
                if cases is None or repetitions is None:
                    continue
                decided = 0
                for number in range(runs):
                    keep(store, f"{way}-{number}", *truth.draw(chance, cases, repetitions))
                    decided += _is_decided(store, f"{way}-{number}", truth)
                yield way, repetitions if way == "repetitions" else cases, decided


def _forecast(url: str, truth: Truth) -> dict[str, int | None]:
    words = [
        sys.executable,
        "-m",
        "assay",
        "power",
        "pilot",
        "--effect",
        f"{truth.effect:%}",
        "--json",
        "--db",
        url,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    needs = json.loads(done.stdout)["needs"]
    return next(need for need in needs if need["metric"] == truth.metric)


def _is_decided(store: Store, name: str, truth: Truth) -> bool:
    if truth.is_code:
        found = compare_refs(store, f"{name}-a", f"{name}-b")
    else:
        found = compare_refs(store, "a", "b", suite=name)
    return any(one.metric.name == truth.metric and one.verdict in CLAIMS for one in found.comparisons)


_HOURS = count()


def _store_suite(store: Store, name: str, a: Side, b: Side) -> None:
    """A run of two agents that took turns."""
    cases, repetitions = a["score"].shape
    asked = tuple(Case(f"c{number}", number, number) for number in range(cases))
    suite = Suite(
        name, "1", "comprehensive", (Benchmark("work", "work", asked, rubric=RUBRIC, hash=name),), hash=name
    )
    trials = tuple(
        Trial(
            index, f"work · {agent}", AgentVersion(agent, "1"), "work", "ask", {}, Iterations(measured=repetitions),
            agent_use=AgentUse(agent, "python"), suite=name, cases=tuple(case.id for case in asked),
        )
        for index, agent in enumerate("ab")
    )  # fmt: skip
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=next(_HOURS))
    run = store.begin(
        Plan(name, trials, seed=1, suite=suite), Environment({}, {}), f"run-{name}", began, "benchmark"
    )
    store.add(run.id, Batch(tuple(_executions((a, b), began.timestamp()))))
    store.finish(run.id, RunState.COMPLETED, began + timedelta(minutes=10))


def _store_code(store: Store, name: str, a: Side, b: Side) -> None:
    """Two versions of code, each in a run of its own; the pilot is a run of the first one."""
    for version, side in (("a", a), ("b", b)) if name != "pilot" else (("", a),):
        values = side["seconds"]
        trial = Trial(
            0, "work", AgentVersion("code", version), f"work {name}", "work", {}, Iterations(measured=values.shape[1]),
            processes=values.shape[0],
        )  # fmt: skip
        began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=next(_HOURS))
        run_id = f"{name}-{version}" if version else name
        run = store.begin(Plan(name, (trial,), seed=1), Environment({}, {}), run_id, began, "benchmark")
        executions = (
            Execution(
                0,
                process,
                Phase.MEASURED,
                repetition,
                Status.OK,
                began.timestamp(),
                {"seconds": float(value)},
            )
            for (process, repetition), value in np.ndenumerate(values)
        )
        store.add(run.id, Batch(tuple(executions)))
        store.finish(run.id, RunState.COMPLETED, began + timedelta(minutes=10))


def _executions(sides: tuple[Side, Side], started: float) -> Iterator[Execution]:
    for trial, side in enumerate(sides):
        cases, repetitions = side["score"].shape
        for repetition in range(repetitions):
            for case in range(cases):
                values = {name: float(table[case, repetition]) for name, table in side.items()}
                yield Execution(
                    trial, 0, Phase.MEASURED, repetition, Status.OK, started, values, case=f"c{case}"
                )


def _passes(chance: np.random.Generator, rates: Floats, repetitions: int) -> Floats:
    return (chance.random((rates.size, repetitions)) < np.clip(rates, 0, 1)[:, None]).astype(float)


def _times(
    chance: np.random.Generator, cases: int, repetitions: int, ratio: float, noise: float
) -> tuple[Floats, Floats]:
    """Cases differ much, agents on a case a little, and each agent's rounds by 2 %."""
    level = chance.normal(0, 0.8, (cases, 1))
    a, b = (
        level
        + chance.normal(0, 0.05, (cases, 1))
        + chance.normal(0, noise, (cases, repetitions))
        + chance.normal(0, 0.02, repetitions)
        for _ in range(2)
    )
    return np.exp(a), np.exp(b) * ratio


def _pair(
    chance: np.random.Generator, scores: tuple[Floats, Floats], ratio: float = 1.0, noise: float = 0.2
) -> tuple[Side, Side]:
    times = _times(chance, *scores[0].shape, ratio, noise)
    costs = _times(chance, *scores[0].shape, 1.0, 0.1)
    first, second = (
        {"score": score, "seconds": seconds, "usd": usd / 100}
        for score, seconds, usd in zip(scores, times, costs, strict=True)
    )
    return first, second


def _accuracies(chance: np.random.Generator, cases: int, repetitions: int) -> tuple[Side, Side]:
    """70 and 80 %: cases are hard or easy for both, and a little more so for either."""
    hard = chance.normal(0, 0.15, cases)
    a, b = (mean + hard + chance.normal(0, 0.08, cases) for mean in (0.70, 0.80))
    return _pair(chance, (_passes(chance, a, repetitions), _passes(chance, b, repetitions)))


def _chance_only(chance: np.random.Generator, cases: int, repetitions: int) -> tuple[Side, Side]:
    """70 and 80 %, of every case alike."""
    a, b = (np.full(cases, rate) for rate in (0.7, 0.8))
    return _pair(chance, (_passes(chance, a, repetitions), _passes(chance, b, repetitions)))


def _all_pass(chance: np.random.Generator, cases: int, repetitions: int) -> tuple[Side, Side]:
    right = np.ones((cases, repetitions))
    return _pair(chance, (right, right))


def _tenth_lost(chance: np.random.Generator, cases: int, repetitions: int) -> tuple[Side, Side]:
    lost = (chance.random((cases, 1)) >= 0.1) * np.ones((cases, repetitions))
    return _pair(chance, (np.ones((cases, repetitions)), lost))


def _marks(chance: np.random.Generator, cases: int, repetitions: int) -> tuple[Side, Side]:
    """Scores from 0 to 1, five points apart."""
    level = chance.normal(0.55, 0.12, (cases, 1))
    a, b = (
        np.clip(
            level + more + chance.normal(0, 0.06, (cases, 1)) + chance.normal(0, 0.1, (cases, repetitions)), 0, 1
        )
        for more in (0.0, 0.05)
    )  # fmt: skip
    return _pair(chance, (a, b))


def _slower(ratio: float, noise: float) -> Draw:
    def draw(chance: np.random.Generator, cases: int, repetitions: int) -> tuple[Side, Side]:
        rates = np.full(cases, 0.7)
        scores = _passes(chance, rates, repetitions), _passes(chance, rates, repetitions)
        return _pair(chance, scores, ratio, noise)

    return draw


def _code(chance: np.random.Generator, processes: int, repetitions: int) -> tuple[Side, Side]:
    """5 % slower; processes differ by 3 %, executions of one by 5 %."""
    first, second = (
        {
            "seconds": ratio
            * chance.lognormal(0, 0.03, (processes, 1))
            * chance.lognormal(0, 0.05, (processes, repetitions))
        }
        for ratio in (1.0, 1.05)
    )
    return first, second


TRUTHS = (
    Truth("accuracy", "Accuracies of 70 and 80 %, cases hard or easy", "score", 0.1, 50, 3, _accuracies),
    Truth("accuracy-chance", "Accuracies of 70 and 80 %, all cases alike", "score", 0.1, 50, 3, _chance_only),
    Truth("all-pass", "Both pass every case; then B loses every tenth", "score", 0.1, 40, 3, _tenth_lost, _all_pass),
    Truth("marks", "Scores between 0 and 1, five points apart", "score", 0.05, 40, 3, _marks),
    Truth("slower-10", "10 % slower, noise of 20 %", "seconds", 0.1, 40, 8, _slower(1.1, 0.2)),
    Truth("slower-20", "20 % slower, noise of 50 %", "seconds", 0.2, 40, 8, _slower(1.2, 0.5)),
    Truth("code", "Code that is 5 % slower, processes that differ by 3 %", "seconds", 0.05, 20, 5, _code, is_code=True),
)  # fmt: skip


if __name__ == "__main__":
    words = sys.argv[1:]
    for outcome in measure("--quick" in words, [word for word in words if word != "--quick"]):
        print(
            outcome.truth.name,
            outcome.way,
            outcome.sizes,
            f"{outcome.share:.0%} of {outcome.runs}",
            flush=True,
        )
