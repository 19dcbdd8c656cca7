"""A plan becomes jobs, in an order that treats all arms alike."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from assay.execute.account import account_of
from assay.execute.agents import make_agent
from assay.execute.blocks import blocks
from assay.execute.checkout import from_checkout
from assay.execute.due import left
from assay.execute.instruments import slows
from assay.model import Benchmark, ExecutionRange, Isolation, Job, Order, Phase, Plan, Trial
from assay.plugin import lookup

Progress = Mapping[tuple[int, int, str], int]
"""How many executions are stored already, by trial, process and phase."""
Done = Mapping[int, Set[tuple[str, str, int]]]
"""Phase, case and repetition of the executions of a suite that are stored already, by trial."""
Shares = Mapping[tuple[int, int], tuple[str, ...]]
"""The cases that each process of a trial asks; empty where all of them ask all."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A plan, under the run's id, with the folder of each trial."""

    plan: Plan
    run_id: str
    folders: Mapping[int, str]
    progress: Progress
    done: Done = field(default_factory=dict)
    temporary: str = ""
    """The folder that holds the trials' where it goes with the run; "" where the user named one."""


def jobs(assignment: Assignment, ended: Set[int]) -> Iterator[Job]:
    """What is still to do, job by job; trials that have `ended` meanwhile are passed over."""
    shares = _shares(assignment.plan)
    recorded = {
        trial.index: recorded_repetitions(trial) for trial in assignment.plan.trials if trial.is_recorded
    }
    for trial, process in _order(assignment.plan):
        if trial.index in ended:
            continue
        job = _job(assignment, trial, process)
        if trial.agent_use is not None:
            job = _without_unrecorded(
                _asking(assignment, trial, process, job, shares), recorded.get(trial.index)
            )
        elif trial.suite:
            job = _of_suite(assignment, trial, process, job)
        if checkout := assignment.plan.checkouts.get(trial.index):
            job = from_checkout(job, checkout)
        if not account_of(job).is_closed():
            yield job


def _order(plan: Plan) -> Iterator[tuple[Trial, int]]:
    """Interleaved: every round gives each trial one process, in an order drawn anew, so that drift hits all alike."""
    if plan.question is not None:
        yield from _pairs(plan)
        return
    counts = {trial.index: _process_count(trial, plan.order) for trial in plan.trials}
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
    """Both arms next to each other, in an order drawn for each pair."""
    trials = {trial.index: trial for trial in plan.trials}
    chance = random.Random(plan.seed)
    for block in blocks(plan):
        arms = [trials[block.first], trials[block.second]]
        chance.shuffle(arms)
        yield from ((trial, block.process) for trial in arms)


def _side_by_side(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials one by one; the legs of a team, which are compared pair by pair, next to each other."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        others = {name: value for name, value in trial.axes.items() if name != "leg"}
        is_leg = trial.experiment == "team" and "leg" in trial.axes
        groups.setdefault(f"{trial.benchmark} {others!r}" if is_leg else str(trial.index), []).append(trial)
    return list(groups.values())


def _process_count(trial: Trial, order: Order) -> int:
    """Cold executions have a process each, the warm-ups first; of a suite, each repetition of all cases has one.

    Code that is put through cases has as many processes for each of them.
    """
    if trial.agent_use is not None:
        return trial.iterations.measured if order is Order.INTERLEAVED else 1
    cases = max(1, len(trial.cases))
    if trial.isolation is not Isolation.COLD:
        return trial.processes * cases
    return (trial.iterations.warmup + trial.processes * trial.iterations.measured) * cases


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
        cleanup=trial.cleanup,
        seed=(plan.seed + process) % 2**32,
        load=plan.load,
        run_id=assignment.run_id,
        run_dir=_folder(assignment, trial, process),
        name=trial.name,
        temporary=assignment.temporary,
    )


def _asking(assignment: Assignment, trial: Trial, round_: int, job: Job, shares: Shares) -> Job:
    """The job of one round of a suite: every case once, or with `order: sequential` all repetitions of all cases.

    Of a run that is to end once a question is decided: all repetitions of a few cases.
    """
    benchmark = _benchmark(assignment.plan, trial)
    by_id = {case.id: case for case in benchmark.cases}
    cases = tuple(by_id[name] for name in shares.get((trial.index, round_), trial.cases))
    is_by_round = assignment.plan.order is Order.INTERLEAVED and not shares
    rounds = 1 if is_by_round else trial.iterations.measured
    first = round_ * len(cases) if is_by_round else 0
    stored = assignment.done.get(trial.index, frozenset())
    place = {case.id: index for index, case in enumerate(cases)}
    done = {
        r * len(cases) + place[name] for phase, name, r in stored if phase == Phase.MEASURED and name in place
    }
    warm = min(trial.iterations.warmup, len(cases)) if round_ == 0 or _is_local(trial) else 0
    are_stored = round_ > 0 or any(phase == Phase.WARMUP for phase, _, _ in stored)
    return replace(
        job,
        agent=trial.agent_use,
        cases=cases,
        scorers=benchmark.scorers,
        concurrency=trial.concurrency,
        done=frozenset(done),
        wants_memory=_wants_memory(benchmark),
        stretches=(
            ExecutionRange(Phase.WARMUP, 0, warm, kept=not are_stored),
            ExecutionRange(Phase.MEASURED, first, first + rounds * len(cases)),
            *_profiled(trial, round_, stored),
        ),
    )


def recorded_repetitions(trial: Trial) -> dict[str, int]:
    """Case to how many of its repetitions were recorded."""
    assert trial.agent_use is not None
    agent = make_agent(trial.agent_use)
    return {case: agent.count_repetitions(case) for case in trial.cases}  # type: ignore[attr-defined]


def _without_unrecorded(job: Job, recorded: Mapping[str, int] | None) -> Job:
    """A repetition that was not recorded is not made up from another one's answer: it does not take place."""
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


def _profiled(trial: Trial, round_: int, stored: Set[tuple[str, str, int]]) -> Iterator[ExecutionRange]:
    """Once each, of the first case: executions with an instrument that slows the agent may be paid for like any other."""
    slowing = sum(slows(use.name) for use in trial.instruments)
    done = {repetition for phase, _, repetition in stored if phase == Phase.PROFILED}
    for number in range(slowing if round_ == 0 else 0):
        if number not in done:
            yield ExecutionRange(Phase.PROFILED, number, number + 1)


def _of_suite(assignment: Assignment, trial: Trial, process: int, job: Job) -> Job:
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


def _shares(plan: Plan) -> Shares:
    if plan.question is None or plan.suite is None:
        return {}
    return {(trial, one.process): one.cases for one in blocks(plan) for trial in (one.first, one.second)}


def _is_local(trial: Trial) -> bool:
    """Whether the agent lives in the worker, and so is cold again in each: others are not asked, and paid, in vain."""
    assert trial.agent_use is not None
    return bool(getattr(lookup.find("agents", trial.agent_use.type), "is_local", False))


def _done(progress: Progress, trial: Trial, process: int) -> dict[str, int]:
    return {phase: progress.get((trial.index, process, phase), 0) for phase in Phase}


def _folder(assignment: Assignment, trial: Trial, process: int) -> str:
    """The trial's folder; where it has several processes, one of its own for each, because they may run at a time."""
    folder = assignment.folders[trial.index]
    is_alone = not assignment.plan.question and _process_count(trial, assignment.plan.order) == 1
    return folder if is_alone else f"{folder}/process-{process}"


def _planned(trial: Trial, process: int) -> Iterator[ExecutionRange]:
    if trial.cases and trial.agent_use is None:
        process //= len(trial.cases)
    if trial.isolation is Isolation.COLD:
        is_warmup, first_measured = process < trial.iterations.warmup, trial.iterations.warmup
        yield ExecutionRange(Phase.WARMUP if is_warmup else Phase.MEASURED, 0, 1)
    else:
        first_measured = 0
        yield ExecutionRange(Phase.WARMUP, 0, trial.iterations.warmup)
        yield ExecutionRange(Phase.MEASURED, 0, trial.iterations.measured)
    slowing = sum(slows(use.name) for use in trial.instruments)
    if process == first_measured and slowing:
        yield ExecutionRange(Phase.PROFILED, 0, slowing)
