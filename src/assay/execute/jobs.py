"""A plan becomes jobs, in an order that treats all arms alike."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from assay.execute.due import first_due, left
from assay.execute.instruments import slows
from assay.model import Isolation, Job, Order, Phase, Plan, Stretch, Trial

Progress = Mapping[tuple[int, int, str], int]
"""How many executions are stored already, by trial, process and phase."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A plan, under the run's id, with the folder of each trial."""

    plan: Plan
    run_id: str
    folders: Mapping[int, str]
    progress: Progress


def jobs(assignment: Assignment, ended: Set[int]) -> Iterator[Job]:
    """What is still to do, job by job; trials that have `ended` meanwhile are passed over."""
    for trial, process in _order(assignment.plan):
        if trial.index in ended:
            continue
        job = _job(assignment, trial, process)
        if first_due(job.stretches):
            yield job


def _order(plan: Plan) -> Iterator[tuple[Trial, int]]:
    """Interleaved: every round gives each trial one process, in an order drawn anew, so that drift hits all alike."""
    if plan.order is Order.SEQUENTIAL:
        yield from ((trial, process) for trial in plan.trials for process in range(_process_count(trial)))
        return
    chance = random.Random(plan.seed)
    for process in range(max(map(_process_count, plan.trials), default=0)):
        due = [trial for trial in plan.trials if process < _process_count(trial)]
        chance.shuffle(due)
        yield from ((trial, process) for trial in due)


def _process_count(trial: Trial) -> int:
    """Cold executions have a process each; the warm-ups come first."""
    if trial.isolation is not Isolation.COLD:
        return trial.processes
    return trial.iterations.warmup + trial.processes * trial.iterations.measured


def _job(assignment: Assignment, trial: Trial, process: int) -> Job:
    plan = assignment.plan
    return Job(
        trial=trial.index,
        process=process,
        experiment=trial.experiment,
        params=trial.params,
        stretches=left(_planned(trial, process), _done(assignment.progress, trial, process)),
        iterations=trial.iterations,
        instruments=trial.instruments,
        isolation=trial.isolation,
        limits=trial.limits,
        seed=(plan.seed + process) % 2**32,
        load=plan.load,
        run_id=assignment.run_id,
        run_dir=_folder(assignment, trial, process),
        name=trial.name,
    )


def _done(progress: Progress, trial: Trial, process: int) -> dict[str, int]:
    return {phase: progress.get((trial.index, process, phase), 0) for phase in Phase}


def _folder(assignment: Assignment, trial: Trial, process: int) -> str:
    """The trial's folder; where it has several processes, one of its own for each, because they may run at a time."""
    folder = assignment.folders[trial.index]
    return folder if _process_count(trial) == 1 else f"{folder}/process-{process}"


def _planned(trial: Trial, process: int) -> Iterator[Stretch]:
    if trial.isolation is Isolation.COLD:
        is_warmup, first_measured = process < trial.iterations.warmup, trial.iterations.warmup
        yield Stretch(Phase.WARMUP if is_warmup else Phase.MEASURED, 0, 1)
    else:
        first_measured = 0
        yield Stretch(Phase.WARMUP, 0, trial.iterations.warmup)
        yield Stretch(Phase.MEASURED, 0, trial.iterations.measured)
    if process == first_measured and any(slows(use.name) for use in trial.instruments):
        yield Stretch(Phase.PROFILED, 0, 1)
