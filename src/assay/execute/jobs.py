"""Turns a plan into jobs, in an order that treats all arms alike.

A job is what one worker process does: one process of one trial. The runner iterates over `jobs`, and the executor takes the
next one whenever it has room. What an earlier, interrupted run of the plan has stored already is left out, so the same
function starts a run and resumes it. docs/architecture.md shows where this stands.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from assay.execute.blocks import blocks
from assay.execute.checkout import from_checkout
from assay.execute.instruments import slows
from assay.execute.job_progress import account_of, select_remaining
from assay.model import Benchmark, ExecutionRange, Isolation, Job, Order, Phase, Plan, Trial
from assay.plugin import lookup
from assay.plugin.agent_pool import make_agent
from assay.plugin.experiment import find_trait

Progress = Mapping[tuple[int, int, str], int]
"""How many executions are stored already, by trial, process and phase."""
Done = Mapping[int, Set[tuple[str, str, int]]]
"""Phase, case and repetition of the executions of a suite that are stored already, by trial."""
Shares = Mapping[tuple[int, int], tuple[str, ...]]
"""The cases that each process of a trial asks; empty where all of them ask all."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A plan to execute, with the id of its run, the folder of each trial, and what is stored of it already."""

    plan: Plan
    run_id: str
    folders: Mapping[int, str]
    progress: Progress
    done: Done = field(default_factory=dict)
    temporary: str = ""
    """The folder that holds the trials' where it goes with the run; "" where the user named one."""


def jobs(assignment: Assignment, ended: Set[int]) -> Iterator[Job]:
    """What is still to do, job by job; trials that have `ended` meanwhile are skipped.

    It is a generator because `ended` grows during the run: whether a job is still wanted is decided when an
    executor asks for it.
    """
    plan = assignment.plan
    shares: Shares = {}
    if plan.question is not None and plan.suite is not None:
        shares = {
            (trial, block.process): block.cases
            for block in blocks(plan)
            for trial in (block.first, block.second)
        }
    recorded = {trial.index: count_recorded_repetitions(trial) for trial in plan.trials if trial.is_recorded}
    for trial, process in _order(plan):
        if trial.index in ended:
            continue
        job = _job(assignment, trial, process)
        if trial.agent_use is not None:
            job = _without_unrecorded(
                _asking(assignment, trial, process, job, shares), recorded.get(trial.index)
            )
        elif trial.suite:
            job = _build_code_job(assignment, trial, process, job)
        if checkout := plan.checkouts.get(trial.index):
            job = from_checkout(job, checkout)
        if not account_of(job).is_closed():
            yield job


def _order(plan: Plan) -> Iterator[tuple[Trial, int]]:
    """Every trial with the number of a process, in the order in which they run.

    Interleaved, which is the default: every round gives each trial one process, in a new random order, so that a machine
    that gets slower over time slows all of them alike. Sequential: one trial after the other. The plan's seed makes the
    order the same each time, also for a run that is resumed.
    """
    if plan.question is not None:
        yield from _pairs(plan)
        return
    counts = {trial.index: count_processes(trial, plan.order) for trial in plan.trials}
    if plan.order is Order.SEQUENTIAL:
        yield from ((trial, process) for trial in plan.trials for process in range(counts[trial.index]))
        return
    chance = random.Random(plan.seed)
    for process in range(max(counts.values(), default=0)):
        groups = _side_by_side(trial for trial in plan.trials if process < counts[trial.index])
        chance.shuffle(groups)
        for group in groups:
            chance.shuffle(group)
            yield from ((trial, process) for trial in group)


def _pairs(plan: Plan) -> Iterator[tuple[Trial, int]]:
    """Put both arms of a pair next to each other, in an order drawn for each pair."""
    trials = {trial.index: trial for trial in plan.trials}
    chance = random.Random(plan.seed)
    for block in blocks(plan):
        arms = [trials[block.first], trials[block.second]]
        chance.shuffle(arms)
        yield from ((trial, block.process) for trial in arms)


def _side_by_side(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials one by one; those that are compared pair by pair, such as the legs of a team, next to each other."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        paired = find_trait(trial.experiment, "paired_axis") if trial.axes else None
        others = {name: value for name, value in trial.axes.items() if name != paired}
        is_paired = len(others) < len(trial.axes)
        groups.setdefault(f"{trial.benchmark} {others!r}" if is_paired else str(trial.index), []).append(
            trial
        )
    return list(groups.values())


def count_processes(trial: Trial, order: Order) -> int:
    """How many processes a trial has.

    An agent in a suite has one for each repetition of all cases, or a single one with `order: sequential`. Cold executions
    have one each, the warm-ups first. Code that is put through cases has as many processes again for each case.
    """
    if trial.agent_use is not None:
        return trial.iterations.measured if order is Order.INTERLEAVED else 1
    cases = max(1, len(trial.cases))
    if trial.isolation is not Isolation.COLD:
        return trial.processes * cases
    return (trial.iterations.warmup + trial.processes * trial.iterations.measured) * cases


def _job(assignment: Assignment, trial: Trial, process: int) -> Job:
    """What all kinds of jobs have in common; `_asking` and `_build_code_job` add what a suite needs."""
    plan = assignment.plan
    done: dict[str, int] = {
        phase: assignment.progress.get((trial.index, process, phase), 0) for phase in Phase
    }
    # Processes of a trial may run at the same time, so each has a folder of its own where there are several.
    folder = assignment.folders[trial.index]
    is_alone = not plan.question and count_processes(trial, plan.order) == 1
    return Job(
        trial=trial.index,
        process=process,
        experiment=trial.experiment,
        params=trial.params,
        stretches=select_remaining(_plan_stretches(trial, process), done),
        iterations=trial.iterations,
        instruments=trial.instruments,
        isolation=trial.isolation,
        limits=trial.limits,
        cleanup=trial.cleanup,
        seed=(plan.seed + process) % 2**32,
        load=plan.load,
        run_id=assignment.run_id,
        run_dir=folder if is_alone else f"{folder}/process-{process}",
        name=trial.name,
        temporary=assignment.temporary,
        resources=trial.resources,
    )


def _asking(assignment: Assignment, trial: Trial, round_: int, job: Job, shares: Shares) -> Job:
    """The job of one round of a suite: every case once, or with `order: sequential` all repetitions of all cases.

    In a run that ends once a question is decided, it has all repetitions of the cases of one block (`shares`). Executions
    are numbered repetition by repetition: number = repetition × cases + place of the case.
    """
    assert trial.agent_use is not None
    benchmark = _benchmark(assignment.plan, trial)
    by_id = {case.id: case for case in benchmark.cases}
    cases = tuple(by_id[name] for name in shares.get((trial.index, round_), trial.cases))
    is_by_round = assignment.plan.order is Order.INTERLEAVED and not shares
    rounds = 1 if is_by_round else trial.iterations.measured
    first = round_ * len(cases) if is_by_round else 0
    measured = ExecutionRange(Phase.MEASURED, first, first + rounds * len(cases))
    stored = assignment.done.get(trial.index, frozenset())
    place = {case.id: index for index, case in enumerate(cases)}
    done = {
        r * len(cases) + place[name] for phase, name, r in stored if phase == Phase.MEASURED and name in place
    }
    # An agent that lives in the worker is cold in every new one. Others warm up once: more would be paid for in vain.
    is_local = getattr(lookup.find("agents", trial.agent_use.type), "is_local", False)
    warm = min(trial.iterations.warmup, len(cases)) if round_ == 0 or is_local else 0
    are_stored = round_ > 0 or any(phase == Phase.WARMUP for phase, _, _ in stored)
    return replace(
        job,
        agent=trial.agent_use,
        cases=cases,
        scorers=benchmark.scorers,
        concurrency=trial.concurrency,
        # Those of other rounds are no part of what is due here.
        done=frozenset(done.intersection(range(measured.first, measured.end))),
        wants_memory=_wants_memory(benchmark),
        stretches=(
            ExecutionRange(Phase.WARMUP, 0, warm, kept=not are_stored),
            *_alternate(
                trial,
                measured,
                list(_plan_profiling(trial, round_, stored)),
                len(cases),
            ),
        ),
    )


def count_recorded_repetitions(trial: Trial) -> dict[str, int]:
    """Return, for each case of a trial that replays recorded answers, how many repetitions were recorded."""
    assert trial.agent_use is not None
    agent = make_agent(trial.agent_use)
    return {case: agent.count_repetitions(case) for case in trial.cases}  # type: ignore[attr-defined]


def _without_unrecorded(job: Job, recorded: Mapping[str, int] | None) -> Job:
    """The job without repetitions that were not recorded: none is made up from the answer of another."""
    if recorded is None:
        return job
    missing = {
        number
        for stretch in job.stretches
        if stretch.phase == Phase.MEASURED
        for number in range(stretch.first, stretch.end)
        if number // len(job.cases) >= recorded[job.cases[number % len(job.cases)].id]
    }
    return replace(job, done=job.done | missing)


def _plan_profiling(trial: Trial, round_: int, stored: Set[tuple[str, str, int]]) -> Iterator[ExecutionRange]:
    """One profiled execution of the first case for each instrument that slows the agent; no more, as they cost money, too."""
    slowing = sum(slows(use.name) for use in trial.instruments)
    done = {repetition for phase, _, repetition in stored if phase == Phase.PROFILED}
    for number in range(slowing if round_ == 0 else 0):
        if number not in done:
            yield ExecutionRange(Phase.PROFILED, number, number + 1)


def _alternate(
    trial: Trial, measured: ExecutionRange, profiled: Sequence[ExecutionRange], size: int = 1
) -> Iterator[ExecutionRange]:
    """Measured executions, then profiled ones; or both in turn, where an instrument is listed several times.

    That is how `assay profile` asks what its sampling costs: each execution with it follows one without, so that a drift of the
    machine meets both alike. `size` is how many measured executions make one repetition.
    """
    names = [use.name for use in trial.instruments]
    if len(set(names)) == len(names):
        yield from (measured, *profiled)
        return
    waiting = [
        ExecutionRange(Phase.PROFILED, number, number + 1)
        for stretch in profiled
        for number in range(stretch.first, stretch.end)
    ]
    for first in range(measured.first, measured.end, size):
        yield ExecutionRange(Phase.MEASURED, first, min(first + size, measured.end))
        if waiting:
            yield waiting.pop(0)
    yield from waiting


def _build_code_job(assignment: Assignment, trial: Trial, process: int, job: Job) -> Job:
    """The job of code in a suite: one case in one process, the next case in the next."""
    benchmark = _benchmark(assignment.plan, trial)
    job = replace(job, is_rated=True, wants_memory=_wants_memory(benchmark))
    if not trial.cases:
        return job
    name = trial.cases[process % len(trial.cases)]
    case = next(case for case in benchmark.cases if case.id == name)
    assert isinstance(case.input, Mapping)
    return replace(job, cases=(case,), scorers=benchmark.scorers, params={**trial.params, **case.input})


def _wants_memory(benchmark: Benchmark) -> bool:
    return bool(benchmark.limits.memory_bytes or benchmark.rubric.reference.get("memory_mb"))


def _benchmark(plan: Plan, trial: Trial) -> Benchmark:
    assert plan.suite is not None
    return next(benchmark for benchmark in plan.suite.benchmarks if benchmark.id == trial.benchmark)


def _plan_stretches(trial: Trial, process: int) -> Iterator[ExecutionRange]:
    """The executions of one process of an experiment, phase by phase; the first process that measures profiles, too."""
    if trial.cases and trial.agent_use is None:
        process //= len(trial.cases)
    if trial.isolation is Isolation.COLD:
        is_warmup, first_measured = process < trial.iterations.warmup, trial.iterations.warmup
        yield ExecutionRange(Phase.WARMUP if is_warmup else Phase.MEASURED, 0, 1)
    else:
        first_measured = 0
        yield ExecutionRange(Phase.WARMUP, 0, trial.iterations.warmup)
    slowing = sum(slows(use.name) for use in trial.instruments)
    profiled = [ExecutionRange(Phase.PROFILED, 0, slowing)] if process == first_measured and slowing else []
    if trial.isolation is Isolation.COLD:
        yield from profiled
    else:
        yield from _alternate(trial, ExecutionRange(Phase.MEASURED, 0, trial.iterations.measured), profiled)
