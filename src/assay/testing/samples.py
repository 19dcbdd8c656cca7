"""Jobs and reports to hand to a plug-in in a test.

They are made without running anything, always the same, and small enough to read in a debugger.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.analysis.estimates.trial import add_estimates
from assay.analysis.findings import build_report
from assay.model import (
    AgentVersion,
    Environment,
    Execution,
    ExecutionRange,
    Isolation,
    Iterations,
    Job,
    Limits,
    Phase,
    Report,
    Run,
    RunState,
    Series,
    Status,
    StoredTrial,
    Trial,
    TrialReport,
)

STEADY = "assay.testing.experiments:Steady"
FAILING = "assay.testing.experiments:Failing"
COSTLY = "assay.testing.experiments:Costly"
ENDLESS = "assay.testing.experiments:Endless"
_BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def sample_job(
    folder: Path,
    experiment: str = STEADY,
    *,
    trial: int = 0,
    measured: int = 3,
    params: Mapping[str, object] | None = None,
    isolation: Isolation = Isolation.PROCESS,
) -> Job:
    """Return a job with this many measured executions of an experiment in one process."""
    return Job(
        trial=trial,
        process=0,
        experiment=experiment,
        params=params or {},
        stretches=(ExecutionRange(Phase.MEASURED, 0, measured),),
        iterations=Iterations(measured=measured),
        instruments=(),
        isolation=isolation,
        limits=Limits(),
        seed=1,
        load=(),
        run_id="sample",
        run_dir=str(folder / f"trial-{trial}"),
    )


def sample_report() -> Report:
    """A run of two trials in ten processes each; the second has one execution that failed, and nothing but text for it."""
    trials = [_trial(0, "quick", 0.001, failures=0), _trial(1, "slow", 0.002, failures=1)]
    run = Run(
        id="5a3b1e0c2d",
        name="sample",
        state=RunState.COMPLETED,
        started=_BEGIN,
        ended=_BEGIN + timedelta(seconds=3),
        seed=1,
        tags=("sample",),
        notes="",
        environment=Environment({"os": "Linux", "python": "3.11.0"}),
        trials=tuple(trial.stored for trial in trials),
        source={"experiment": "sample"},
    )
    return build_report(run, trials)


def _trial(index: int, arm: str, seconds: float, failures: int) -> TrialReport:
    """Ten processes with five repetitions each, which differ a little; the text of a failure is hard to show safely."""
    ok = [
        Execution(index, process, Phase.MEASURED, repetition, Status.OK, _BEGIN.timestamp(), {
            "seconds": seconds * (1 + 0.01 * process + 0.001 * repetition)})
        for process in range(10) for repetition in range(5)
    ]  # fmt: skip
    failed = tuple(
        Execution(index, 0, Phase.MEASURED, 5, Status.FAILED, _BEGIN.timestamp(), {}, error="ValueError: <boom> & \x1b[0m")
        for _ in range(failures)
    )  # fmt: skip
    series = Series(
        [e.process for e in ok], [e.repetition for e in ok], [e.measurements["seconds"] for e in ok]
    )
    report = TrialReport(
        StoredTrial(index + 1, _build_trial(index, arm)),
        estimates=(),
        counts={"ok": len(ok), **({"failed": failures} if failures else {})},
        series={"seconds": series},
        failures=failed,
        executions=(*ok, *failed),
    )
    return add_estimates(report, {})


def _build_trial(index: int, arm: str) -> Trial:
    return Trial(
        index=index,
        name=f"sample[arm={arm}]",
        agent=AgentVersion("sample", "1"),
        benchmark="sample",
        experiment="sample",
        params={"arm": arm},
        iterations=Iterations(measured=5),
        axes={"arm": arm},
        processes=10,
    )
