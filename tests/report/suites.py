"""Reports of suites made by hand: agents with known quality, speed, price and faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from assay.analysis.estimates.case_results import case_series
from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import build_report
from assay.analysis.ranking.ratings import rate
from assay.model import (
    AgentUse,
    AgentVersion,
    Benchmark,
    Case,
    Environment,
    Execution,
    Iterations,
    Limits,
    Phase,
    Report,
    Rubric,
    Run,
    RunState,
    ScorerUse,
    Status,
    StoredTrial,
    Suite,
    SuiteRef,
    Trial,
    TrialReport,
    Turn,
)
from assay.report.cases import case_table

WRONG_OUTPUT = "I think it is 999."
WRONG_REASON = "999 is not within 0 of what was expected"
SCORER_FAILED = "the scorer failed: ValueError: no number in the text"
START = datetime(2026, 5, 4, 12, 30, 15, tzinfo=UTC)


@dataclass(frozen=True)
class Made:
    """An agent as the executions show it."""

    name: str
    quality: float
    seconds: float
    tokens: int | None = None
    usd: float | None = 0.0
    ttft: float | None = None
    faults: Mapping[Status, float] = field(default_factory=dict)
    unscored: float = 0.0
    type: str = "python"
    version: str = ""
    simulated: bool = False
    axes: Mapping[str, object] = field(default_factory=dict)


EXACT = Made("exact-search", 1.0, 0.042, version="2.1.0")
GREEDY = Made(
    "greedy", 0.62, 0.0011, version="9c1d7e04b2", faults={Status.FAILED: 0.05, Status.HARNESS_ERROR: 0.01}
)
COMPLETE = replace(GREEDY, faults={Status.FAILED: 0.05})
"""Without harness errors, which leave `GREEDY` without a rank."""
TINY = Made(
    "tiny-llm",
    0.45,
    1.9,
    tokens=310,
    usd=None,
    ttft=0.21,
    faults={Status.TIMEOUT: 0.04, Status.INVALID_OUTPUT: 0.03},
    unscored=0.02,
    type="llama",
    version="smol-135m-q8",
)
CLOUD = Made("cloud-sim", 0.88, 0.8, tokens=520, usd=0.0031, ttft=0.3, type="openai", simulated=True)

_TRACE = (
    "Traceback (most recent call last):\n  File \"agent.py\", line 31, in answer\nKeyError: 'order total'"
)
_ERRORS = {
    Status.FAILED: _TRACE,
    Status.TIMEOUT: "took longer than 5 s",
    Status.INVALID_OUTPUT: "the answer is not JSON: Expecting value at column 1",
    Status.HARNESS_ERROR: "the worker was lost",
    Status.CRASHED: "the process ended with signal 11",
}


def cases(number: int, prefix: str = "refund") -> tuple[Case, ...]:
    return tuple(
        Case(
            f"{prefix}-{n:03d}",
            f"Order {1000 + n}: {n % 7 + 1} items at {4 + n % 9} each, {n % 3} of them returned. What is refunded?",
            str((n % 3) * (4 + n % 9)),
            tags=("arithmetic",),
        )
        for n in range(1, number + 1)
    )


def talks() -> tuple[Case, ...]:
    """Conversations of two turns."""
    return tuple(
        Case(f"talk-{n}", "", turns=(Turn("Where is my parcel?"), Turn(f"It is number {n}.", f"hub {n}")))
        for n in range(1, 13)
    )


def benchmark(name: str, asked: Sequence[Case], **rubric: object) -> Benchmark:
    return Benchmark(
        id=name,
        name=name.capitalize(),
        cases=tuple(asked),
        scorers=(ScorerUse("numeric", label="correctness"), ScorerUse("f1", 0.0, label="relevance")),
        limits=Limits(seconds=5.0),
        rubric=Rubric(**rubric),  # type: ignore[arg-type]
        hash="b" * 64,
    )


@dataclass(frozen=True)
class Asked:
    """Executions of an agent on a benchmark, made anew each time they are iterated, as the store gives them."""

    trial: int
    made: Made
    asked: Sequence[Case]
    repetitions: int
    hostile: str = ""

    def __iter__(self) -> Iterator[Execution]:
        chance = np.random.default_rng(self.trial)
        ease = np.random.default_rng(1).normal(0, 0.35, len(self.asked))
        for number, case in enumerate(self.asked[:2]):
            yield self._done(case, 0, Phase.WARMUP, Status.OK, True, 0.9, number)
        for repetition in range(self.repetitions):
            draws = chance.random((len(self.asked), 3))
            for number, case in enumerate(self.asked):
                status = self._status(draws[number, 0])
                right = draws[number, 1] < self.made.quality + (ease[number] if self.made.quality < 1 else 0)
                yield self._done(
                    case, repetition, Phase.MEASURED, status, bool(right), float(draws[number, 2]), number
                )

    def _status(self, draw: float) -> Status:
        for status, share in self.made.faults.items():
            if draw < share:
                return status
            draw -= share
        return Status.OK

    def _done(
        self, case: Case, repetition: int, phase: Phase, status: Status, right: bool, draw: float, number: int
    ) -> Execution:
        ok = status is Status.OK
        is_unscored = ok and draw < self.made.unscored
        expected = case.turns[-1].expected if case.turns else case.expected
        return Execution(
            self.trial,
            repetition,
            phase,
            repetition,
            status,
            START.timestamp() + repetition + number * 0.01,
            self._measured(right, draw, ok and not is_unscored),
            case=case.id,
            output=(self.hostile or (str(expected) if right else WRONG_OUTPUT)) if ok else None,
            applied={"model": self.made.version} if self.made.version else None,
            error=None if ok else self.hostile or _ERRORS[status],
            log=self.hostile or ("loading weights\nwarning: context cut" if not ok else None),
            detail=self._detail(right, ok, is_unscored),
        )

    def _measured(self, right: bool, draw: float, scored: bool) -> dict[str, float]:
        found = {"seconds": self.made.seconds * (0.5 + draw)}
        if self.made.ttft is not None:
            found["ttft"] = self.made.ttft * (0.8 + 0.4 * draw)
        if self.made.tokens is not None:
            found["tokens"] = float(round(self.made.tokens * (0.7 + 0.6 * draw)))
        if self.made.usd is not None:
            found["usd"] = self.made.usd
        if scored:
            found |= {"score": float(right), "score.correctness": float(right), "score.relevance": draw}
        return found

    def _detail(self, right: bool, ok: bool, is_unscored: bool) -> dict[str, object] | None:
        found: dict[str, object] = {"simulated": True} if self.made.simulated else {}
        if ok and not right:
            found["reasons"] = {"correctness": self.hostile or WRONG_REASON}
        if is_unscored:
            found["unscored"] = ["correctness"]
            found["reasons"] = {"correctness": SCORER_FAILED}
        if self.made.ttft is not None and ok:
            found["spans"] = [
                ["queue", "queue", 0.0, 0.05],
                ["chat", "llm", 0.05, self.made.seconds * 0.7],
                [
                    self.hostile or "lookup_order",
                    "tool",
                    0.05 + self.made.seconds * 0.7,
                    self.made.seconds * 0.2,
                ],
            ]
            found["tool_calls"] = [{"name": self.hostile or "lookup_order", "arguments": {"order": 1001}}]
            found["attempts"] = [{"error": "HTTP 429: slow down", "seconds": 0.12}]
        return found or None


def trial_of(
    number: int, made: Made, benchmark: Benchmark, repetitions: int = 3, hostile: str = ""
) -> TrialReport:
    name = f"{benchmark.id} · {made.name}"
    trial = Trial(
        index=number - 1,
        name=name,
        agent=AgentVersion(made.name, made.version),
        benchmark=benchmark.id,
        experiment="ask",
        params=dict(made.axes),
        axes=dict(made.axes),
        iterations=Iterations(warmup=2, measured=repetitions),
        limits=benchmark.limits,
        agent_use=AgentUse(made.name, made.type, version=made.version),
        suite="support-desk",
        cases=tuple(case.id for case in benchmark.cases),
        concurrency=4,
    )
    executions = Asked(number, made, benchmark.cases, repetitions, hostile)
    measured = [one for one in executions if one.phase is Phase.MEASURED]
    table = case_table(executions)
    report = TrialReport(
        StoredTrial(number, trial),
        estimates=(),
        counts=dict(Counter(one.status.value for one in measured)),
        series=case_series(table),
        failures=tuple(one for one in measured if one.status is not Status.OK)[:20],
        executions=executions,
        applied={"model": made.version} if made.version else {},
        ratings=rate(table, benchmark.rubric, benchmark.limits),
    )
    return add_estimates(report, {})


def suite_report(
    agents: Sequence[Made] = (EXACT, GREEDY, TINY, CLOUD),
    benchmarks: Sequence[Benchmark] | None = None,
    repetitions: int = 3,
    hostile: str = "",
    **changes: object,
) -> Report:
    """All agents on all benchmarks."""
    chosen = benchmarks if benchmarks is not None else (benchmark("refunds", cases(40)),)
    suite = Suite("support-desk", "1.2", "reasoning", tuple(chosen), hash="a1" * 32)
    pairs = [(made, one) for one in chosen for made in agents]
    trials = [trial_of(n, made, one, repetitions, hostile) for n, (made, one) in enumerate(pairs, 1)]
    facts = {"cpu": {"model": "AMD EPYC 7763", "cores_logical": 2}, "os": {"system": "Linux"}}
    values: dict[str, object] = {
        "id": "20260504-77aa01",
        "name": "support-desk",
        "state": RunState.COMPLETED,
        "started": START,
        "ended": START + timedelta(seconds=312),
        "seed": 7,
        "tags": ("nightly",),
        "notes": "",
        "environment": Environment(facts),
        "trials": tuple(trial.stored for trial in trials),
        "source": {"suite": "support-desk"},
        "suite": SuiteRef("support-desk", "1.2", "reasoning", "a1" * 32),
    }
    return build_report(Run(**{**values, **changes}), trials, suite)  # type: ignore[arg-type]
