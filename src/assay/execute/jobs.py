"""A plan becomes jobs, in an order that treats all arms alike."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

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
        if any(stretch.kept for stretch in job.stretches):
            yield job


def _order(plan: Plan) -> Iterator[tuple[Trial, int]]:
    """Interleaved: every round gives each trial one process, in an order drawn anew, so that drift hits all alike."""
    rounds = max(_process_count(trial) for trial in plan.trials) if plan.trials else 0
    if plan.order is Order.SEQUENTIAL:
        yield from ((trial, process) for trial in plan.trials for process in range(_process_count(trial)))
        return
    chance = random.Random(plan.seed)
    for process in range(rounds):
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
        stretches=_stretches(trial, process, assignment.progress),
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


def _folder(assignment: Assignment, trial: Trial, process: int) -> str:
    """The trial's folder; where it has several processes, one of its own for each, because they may run at a time."""
    folder = assignment.folders[trial.index]
    return folder if _process_count(trial) == 1 else f"{folder}/process-{process}"


def _stretches(trial: Trial, process: int, progress: Progress) -> tuple[Stretch, ...]:
    planned = _cold(trial, process) if trial.isolation is Isolation.COLD else _warm(trial, process)
    return tuple(
        _left(stretch, progress.get((trial.index, process, stretch.phase), 0))
        for stretch in planned
        if stretch
    )


def _warm(trial: Trial, process: int) -> list[Stretch | None]:
    profiled = sum(1 for use in trial.instruments if slows(use.name)) and process == 0
    return [
        Stretch(Phase.WARMUP, 0, trial.iterations.warmup),
        Stretch(Phase.MEASURED, 0, trial.iterations.measured),
        Stretch(Phase.PROFILED, 0, 1) if profiled else None,
    ]


def _cold(trial: Trial, process: int) -> list[Stretch | None]:
    """The process's one execution; its number among its like is its place among the processes of its phase."""
    warmup = trial.iterations.warmup
    if process < warmup:
        return [Stretch(Phase.WARMUP, process, process + 1)]
    number = process - warmup
    profiled = number == 0 and any(slows(use.name) for use in trial.instruments)
    return [Stretch(Phase.MEASURED, number, number + 1), Stretch(Phase.PROFILED, 0, 1) if profiled else None]


def _left(stretch: Stretch, stored: int) -> Stretch:
    """What is not stored yet; warm-ups are repeated all the same, because a new process is cold."""
    if stretch.phase == Phase.WARMUP and stored:
        return Stretch(stretch.phase, stretch.first, stretch.end, kept=False)
    return Stretch(
        stretch.phase, stretch.first + stored, stretch.end, kept=stretch.first + stored < stretch.end
    )
