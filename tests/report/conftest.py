"""Reports made by hand, with exact figures behind them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.report.browsing import browser, open_page, pages

from assay.analysis.findings import read_findings
from assay.model import (
    AgentVersion,
    Artifact,
    AxisEffect,
    Better,
    Doubt,
    Environment,
    Estimate,
    Execution,
    InstrumentUse,
    Iterations,
    Kind,
    Limits,
    Metric,
    Phase,
    Report,
    Run,
    RunState,
    Series,
    Status,
    StoredTrial,
    Trial,
    TrialReport,
    metric_named,
)

__all__ = ["browser", "open_page", "pages"]

NOISE, NOISE_HINT = "The noise probe varied by 6.2 %.", "Close other programs and run again."
LAST_LINE = "ValueError: bad invoice 7"
NO_GPU = "no NVIDIA driver was found"
START = datetime(2026, 5, 4, 12, 30, 15, tzinfo=UTC)

SECONDS = metric_named("seconds")
ROWS = Metric("rows_per_sec", "1/s", Better.HIGHER)
PEAK = Metric("peak_bytes", "bytes", Better.LOWER)
PRICE = Metric("usd", "usd", Better.LOWER, Kind.SIMULATED)


def estimate(metric: Metric, values: Sequence[float], units: int) -> Estimate:
    """Order statistics of all values; the interval is simply the middle half of them."""
    numbers = np.asarray(values, dtype=float)
    low, median, high, p90, p95, p99 = (float(x) for x in np.percentile(numbers, [25, 50, 75, 90, 95, 99]))
    enough = len(numbers) * 0.05 >= 10
    return Estimate(
        metric=metric,
        n=len(numbers),
        units=units,
        mean=float(numbers.mean()),
        median=median,
        std=float(numbers.std()),
        min=float(numbers.min()),
        max=float(numbers.max()),
        p90=p90,
        p95=p95,
        p99=p99,
        low=low if units > 4 else None,
        high=high if units > 4 else None,
        level=0.95,
        outliers=2,
        median_without_outliers=median,
        insufficient=() if enough else ("p95", "p99"),
    )


@dataclass(frozen=True, slots=True)
class Repeatable:
    """Executions made anew each time they are iterated, as the store gives them."""

    trial: int
    columns: Mapping[str, Series]
    extra: tuple[Execution, ...] = ()

    def __iter__(self):
        first = next(iter(self.columns.values()))
        for number, (process, repetition) in enumerate(zip(first.processes, first.repetitions, strict=True)):
            measurements = {name: float(series.values[number]) for name, series in self.columns.items()}
            yield Execution(
                self.trial,
                process,
                Phase.MEASURED,
                repetition,
                Status.OK,
                START.timestamp() + number * 0.01,
                measurements,
            )
        yield from self.extra


def trial_report(
    number: int,
    name: str,
    seconds: float,
    *,
    processes: int = 10,
    repetitions: int = 50,
    params: Mapping[str, object] | None = None,
    axes: Mapping[str, object] | None = None,
    failures: tuple[Execution, ...] = (),
    metrics: Sequence[Metric] = (SECONDS, ROWS, PEAK),
    artifacts: tuple[Artifact, ...] = (),
    ok: bool = True,
) -> TrialReport:
    """One trial whose times are log-normal around `seconds` with an effect of the process."""
    chance = np.random.default_rng(number)
    columns = _columns(chance, seconds, processes, repetitions, metrics) if ok else {}
    trial = Trial(
        index=number - 1,
        name=name,
        agent=AgentVersion("invoice-parser", "3f2a91c"),
        benchmark="parse",
        experiment="parse_invoices",
        params=params or {"size": 1000, "mode": "fast"},
        iterations=Iterations(warmup=2, measured=repetitions),
        axes=axes or {},
        processes=processes,
        instruments=(InstrumentUse("timing"), InstrumentUse("psutil", {"interval_ms": 100})),
        limits=Limits(seconds=30.0),
    )
    by_metric = {metric.name: metric for metric in metrics}
    counts = {"ok": processes * repetitions if ok else 0}
    for failure in failures:
        if failure.phase is Phase.MEASURED:
            counts[failure.status.value] = counts.get(failure.status.value, 0) + 1
    return TrialReport(
        stored=StoredTrial(number, trial),
        estimates=tuple(estimate(by_metric[m], s.values, processes) for m, s in columns.items()),
        counts=counts,
        series=columns,
        failures=failures,
        executions=Repeatable(number, columns, failures) if ok else failures,
        applied={"journal_mode": "wal"},
        artifacts=artifacts,
    )


def _columns(
    chance: np.random.Generator, seconds: float, processes: int, repetitions: int, metrics: Sequence[Metric]
) -> dict[str, Series]:
    n = processes * repetitions
    process = np.tile(np.arange(processes), repetitions)
    repetition = np.repeat(np.arange(repetitions), processes)
    warm = 1 + 0.25 * np.exp(-repetition / 4)
    between = chance.normal(0, 0.03, processes)[process]
    times = seconds * warm * np.exp(between + chance.normal(0, 0.05, n) + (chance.random(n) < 0.02) * 0.5)
    made = {
        "seconds": times,
        "rows_per_sec": 1000 / times,
        "peak_bytes": 48 * 2**20 + chance.integers(0, 2**20, n),
        "usd": chance.normal(0.002, 0.0001, n),
    }
    return {m.name: Series(process.tolist(), repetition.tolist(), made[m.name].tolist()) for m in metrics}


def samples(seconds: float = 20.0) -> Artifact:
    """What the psutil instrument leaves, with one line that was cut off."""
    chance = np.random.default_rng(5)
    rows = [
        {
            "ts": START.timestamp() + at,
            "cpu_percent": float(60 + 25 * np.sin(at / 2) + chance.normal(0, 6)),
            "rss_bytes": int(48 * 2**20 + at * 2**18 + chance.integers(0, 2**18)),
            "read_bytes": int(at * 9000),
            "write_bytes": int(at * 42000),
        }
        for at in np.arange(0, seconds, 0.1)
    ]
    content = "\n".join(json.dumps(row) for row in rows) + '\n{"ts": 12'
    return Artifact(1, "psutil.jsonl", "psutil", content.encode())


def failure(trial: int, status: Status, error: str, log: str | None = None, repetition: int = 0) -> Execution:
    return Execution(
        trial, 0, Phase.MEASURED, 100 + repetition, status, START.timestamp() + 9, {}, error=error, log=log
    )


def report_of(
    *trials: TrialReport, doubts: tuple[Doubt, ...] = (), axes: tuple[AxisEffect, ...] = (), **changes
) -> Report:
    run = Run(
        id="20260504-8f3a1c",
        name="parse invoices",
        state=RunState.COMPLETED,
        started=START,
        ended=START + timedelta(seconds=95),
        seed=42,
        tags=("parser", "nightly"),
        notes="Is the streaming parser worth its complexity?",
        environment=Environment(
            facts={
                "os": {"system": "Linux", "release": "6.8.0", "distribution": "Debian GNU/Linux 12"},
                "machine": "x86_64",
                "hostname": "bench-1",
                "cpu": {"model": "AMD EPYC 7763", "cores_logical": 2, "governor": None},
                "memory": {"total_bytes": 8 * 2**30},
                "python": {"version": "3.11.9", "implementation": "CPython"},
                "packages": {"numpy": "2.1.0", "pydantic": "2.9.2"},
                "container": None,
                "virtual_machine": "kvm",
                "gpus": [],
                "clock": {"resolution_seconds": 1e-9},
                "load": [0.4, 0.3, 0.2],
                "noise": {"spread": 0.021, "lost": 0.004},
            },
            vcs={"commit": "3f2a91c0d4e5", "branch": "main", "dirty": True},
        ),
        trials=tuple(trial.stored for trial in trials),
        source={"experiment": "parse_invoices"},
        instrument_costs={"timing": 8e-8, "psutil": 0.00012},
        unmeasured={"gpu": NO_GPU},
    )
    shown, found = read_findings(trials)
    return Report(replace(run, **changes), tuple(shown), axes, doubts, findings=found)


def sweep() -> Report:
    """Two axes, six trials, one of them partly failing, with every part that a report can have."""
    points = [(size, mode) for size in (100, 1000, 10000) for mode in ("fast", "safe")]
    trials = []
    for number, (size, mode) in enumerate(points, 1):
        seconds = size * 1.2e-6 * (1.6 if mode == "safe" else 1.0)
        broken = size == 10000 and mode == "safe"
        trials.append(
            trial_report(
                number,
                f"parse size={size} mode={mode}",
                seconds,
                params={"size": size, "mode": mode, "encoding": "utf-8"},
                axes={"size": size, "mode": mode},
                artifacts=(samples(),) if number == 1 else (),
                failures=_broken(number) if broken else (),
            )
        )
    return report_of(*trials, doubts=_doubts(), axes=_axes())


def _broken(number: int) -> tuple[Execution, ...]:
    trace = f'Traceback (most recent call last):\n  File "parse.py", line 12, in parse\n{LAST_LINE}'
    return (
        failure(number, Status.FAILED, trace, "reading invoice 7\nunexpected token", 0),
        failure(number, Status.TIMEOUT, "took longer than 30 s and was killed", None, 1),
    )


def _doubts() -> tuple[Doubt, ...]:
    return (
        Doubt("noisy-machine", NOISE, NOISE_HINT),
        Doubt(
            "outliers",
            "seconds has 9 outliers of 500 executions; without them the median is 115 µs.",
            "Look at the plot by repetition.",
            "parse size=100 mode=fast",
        ),
    )


def _axes() -> tuple[AxisEffect, ...]:
    return (
        AxisEffect(
            "size",
            SECONDS,
            (100, 1000, 10000),
            (1.5e-4, 1.5e-3, 1.5e-2),
            (1.4e-4, 1.3e-3, 1.4e-2),
            (1.6e-4, 1.8e-3, 1.7e-2),
            100,
            10000,
        ),
        AxisEffect(
            "mode",
            SECONDS,
            ("fast", "safe"),
            (1.2e-3, 1.9e-3),
            (1.1e-3, None),
            (1.3e-3, None),
            "fast",
            "safe",
        ),
    )


@pytest.fixture
def small() -> Report:
    """One trial in ten processes."""
    return report_of(trial_report(1, "parse", 0.0123))


@pytest.fixture
def swept() -> Report:
    return sweep()


@pytest.fixture
def make_report() -> Callable[..., Report]:
    return report_of


@pytest.fixture
def make_trial() -> Callable[..., TrialReport]:
    return trial_report


@pytest.fixture
def make_failure() -> Callable[..., Execution]:
    return failure
