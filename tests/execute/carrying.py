"""Plans made from the nouns and carried out by real processes, without a spec and without a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.builtin.executors.local import Local
from assay.execute.jobs import Assignment, Progress
from assay.execute.runner import carry_out
from assay.model import (
    AgentVersion,
    Artifact,
    Batch,
    Execution,
    InstrumentUse,
    Isolation,
    Iterations,
    Limits,
    Order,
    Plan,
    Status,
    Trial,
)
from assay.plugin import lookup

HERE = Path(__file__).parent
SUBJECTS = HERE / "subjects.py"


def trial(
    experiment: str = "deeds",
    *,
    index: int = 0,
    measured: int = 3,
    warmup: int = 0,
    loops: int | None = 1,
    until: Any = None,
    processes: int = 1,
    instruments: tuple[str, ...] = ("timing",),
    isolation: Isolation = Isolation.PROCESS,
    limits: Limits | None = None,
    **params: object,
) -> Trial:
    return Trial(
        index=index,
        name=f"{experiment}-{index}",
        agent=AgentVersion("test"),
        benchmark=experiment,
        experiment=experiment,
        params=params,
        iterations=Iterations(warmup, measured, until, loops),
        processes=processes,
        instruments=tuple(InstrumentUse(name) for name in instruments),
        isolation=isolation,
        limits=limits or Limits(),
    )


@dataclass(frozen=True)
class Carried:
    """What came of carrying out a plan."""

    batches: list[Batch]

    @property
    def executions(self) -> list[Execution]:
        return [execution for batch in self.batches for execution in batch.executions]

    @property
    def statuses(self) -> list[Status]:
        return [execution.status for execution in self.executions]

    @property
    def places(self) -> list[tuple[int, int, str, int]]:
        return [(e.trial, e.process, str(e.phase), e.repetition) for e in self.executions]

    @property
    def stopped(self) -> dict[int, str]:
        return {trial: reason for batch in self.batches for trial, reason in batch.stopped.items()}

    @property
    def artifacts(self) -> list[Artifact]:
        return [artifact for batch in self.batches for artifact in batch.artifacts]

    @property
    def remarks(self) -> list[str]:
        return [a.content.decode() for a in self.artifacts if a.type == "remark"]

    def values(self, metric: str) -> list[float]:
        return [execution.measurements[metric] for execution in self.executions]


def carry_out_plan(
    folder: Path,
    *trials: Trial,
    seed: int = 1,
    order: Order = Order.INTERLEAVED,
    parallelism: int = 1,
    progress: Progress | None = None,
    interrupt: Callable[[], bool] = lambda: False,
    load: Path = SUBJECTS,
) -> Carried:
    """Carry out a plan of these trials by real processes, with a folder for what they leave."""
    lookup.load_file(load)
    plan = Plan("test", trials, seed, order, parallelism, load=(str(load),))
    folders = {one.index: str(folder / f"trial-{one.index}") for one in trials}
    assignment = Assignment(plan, "run", folders, progress or {})
    return Carried(list(carry_out(assignment, Local(parallelism), interrupt, set())))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
