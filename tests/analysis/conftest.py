"""Trials and runs made by hand, with exact figures behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pytest

from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import build_report
from assay.model import (
    AgentVersion,
    Environment,
    Execution,
    Isolation,
    Iterations,
    Metric,
    Report,
    Run,
    RunState,
    Series,
    StoredTrial,
    Trial,
    TrialReport,
)

FACTS = {
    "cpu": {"model": "AMD EPYC 7763", "cores_logical": 2},
    "os": {"system": "Linux"},
    "python": {"version": "3.11.9", "implementation": "CPython"},
}


@dataclass(frozen=True)
class Lab:
    """Makes series, trials and reports; every argument has an everyday default."""

    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))

    def series(self, values: Sequence[float] | np.ndarray, processes: int = 1) -> Series:
        """Values in the order they were made, process after process."""
        each = -(-len(values) // processes)
        order = range(len(values))
        return Series(
            [i // each for i in order], [i % each for i in order], [float(value) for value in values]
        )

    def times(self, median: float = 1.0, processes: int = 10, each: int = 5, spread: float = 0.02) -> Series:
        """Lognormal, with as much difference between processes as within."""
        between = np.repeat(self.chance.normal(0, spread, processes), each)
        within = self.chance.normal(0, spread, processes * each)
        return self.series(median * np.exp(between + within), processes)

    def trial(
        self,
        name: str = "parse",
        seconds: Series | None = None,
        *,
        params: Mapping[str, object] | None = None,
        axes: Mapping[str, object] | None = None,
        benchmark: str = "parse",
        agent: str = "parser",
        more: Mapping[str, Series] | None = None,
        metrics: Mapping[str, Metric] | None = None,
        counts: Mapping[str, int] | None = None,
        failures: tuple[Execution, ...] = (),
        applied: Mapping[str, object] | None = None,
        stopped: str | None = None,
        isolation: Isolation = Isolation.PROCESS,
        is_brief: bool = False,
    ) -> TrialReport:
        series = {**({} if seconds is None else {"seconds": seconds}), **(more or {})}
        planned = Trial(
            index=0,
            name=name,
            agent=AgentVersion(agent),
            benchmark=benchmark,
            experiment=benchmark,
            params={**(params or {}), **(axes or {})},
            iterations=Iterations(measured=5),
            axes=axes or {},
            processes=10,
            isolation=isolation,
        )
        ok = max((len(column.values) for column in series.values()), default=0)
        stored = StoredTrial(1, planned, stopped)
        report = TrialReport(stored, (), counts or {"ok": ok}, series, failures, applied=applied or {})
        return add_estimates(report, metrics or {}, is_brief=is_brief)

    def report(
        self,
        *trials: TrialReport,
        run_id: str = "r1",
        facts: Mapping[str, object] = FACTS,
        doubts: tuple[str, ...] = (),
        parallelism: int = 1,
        unmeasured: Mapping[str, str] | None = None,
        order: str = "interleaved",
    ) -> Report:
        run = Run(
            id=run_id,
            name="parse",
            state=RunState.COMPLETED,
            started=datetime(2026, 5, 4, tzinfo=UTC),
            ended=None,
            seed=1,
            tags=(),
            notes="",
            environment=Environment(facts, doubts=doubts),
            trials=tuple(trial.stored for trial in trials),
            source={},
            order=order,
            parallelism=parallelism,
            unmeasured=unmeasured or {},
        )
        return build_report(run, trials)


@pytest.fixture
def lab() -> Lab:
    return Lab()
