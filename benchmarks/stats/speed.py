"""Whole families of comparisons: how often one fails though nothing changed, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from assay.analysis.comparison.compare import compare_reports
from assay.analysis.comparison.policy import judge
from assay.analysis.comparison.verdict import Contrast
from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import build_report
from assay.model import (
    AgentVersion,
    Environment,
    Iterations,
    Metric,
    Report,
    Run,
    RunState,
    Series,
    StoredTrial,
    Trial,
    TrialReport,
    Verdict,
    metric_named,
)
from assay.stats.effect import compare_unpaired
from stats.simulate import NOISES, chance_for

METRICS = 20
UNITS = 10


def gates_failed(repetitions: int) -> float:
    """Share of families of twenty unchanged metrics in which any is called worse."""
    chance = chance_for("gates")
    names = list(NOISES)
    failed = 0
    for _ in range(repetitions):
        contrasts = [_unchanged(chance, names[place % len(names)], place) for place in range(METRICS)]
        failed += any(one.verdict is Verdict.WORSE for one in judge(contrasts))
    return failed / repetitions


def _unchanged(chance: np.random.Generator, noise: str, place: int) -> Contrast:
    a, b = NOISES[noise](chance, (2, UNITS))
    return Contrast(
        metric_named(f"part{place}_seconds"),
        "a",
        "b",
        1.0,
        1.0,
        UNITS,
        UNITS,
        compare_unpaired(a, b),
        is_paired=False,
    )


def compare_seconds(benchmarks: int = 100, units: int = 30) -> float:
    """A hundred benchmarks of five metrics, two runs of thirty processes with three executions each."""
    a, b = (_report(run, benchmarks, units) for run in ("a", "b"))
    started = time.perf_counter()
    compare_reports(a, b)
    return time.perf_counter() - started


def _report(run_id: str, benchmarks: int, units: int) -> Report:
    chance = chance_for(run_id)
    names = ("seconds", "load_seconds", "rss_bytes", "rows_per_sec", "usd")
    trials = [_trial(f"b{n}", {name: _series(chance, units) for name in names}) for n in range(benchmarks)]
    run = Run(
        id=run_id,
        name="speed",
        state=RunState.COMPLETED,
        started=datetime(2025, 7, 4, tzinfo=UTC),
        ended=None,
        seed=1,
        tags=(),
        notes="",
        environment=Environment({}),
        trials=tuple(trial.stored for trial in trials),
        source={},
        order="interleaved",
        parallelism=1,
        unmeasured={},
    )
    return build_report(run, trials)


def _trial(name: str, series: Mapping[str, Series]) -> TrialReport:
    trial = Trial(
        index=0,
        name=name,
        agent=AgentVersion("code"),
        benchmark=name,
        experiment=name,
        params={},
        iterations=Iterations(measured=3),
        processes=30,
    )
    metrics: dict[str, Metric] = {}
    return add_estimates(TrialReport(StoredTrial(1, trial, None), (), {"ok": 90}, series), metrics)


def _series(chance: np.random.Generator, units: int) -> Series:
    order = range(3 * units)
    values = NOISES["spiky"](chance, (units, 3)).ravel()
    return Series([i // 3 for i in order], [i % 3 for i in order], values.tolist())
