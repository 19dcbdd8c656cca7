"""Runs one job of a suite: opens the agent, asks it the cases, closes it.

`attempt.py` hands jobs that have an agent over to `run_suite_job`. The cases run one after the other, or many at a time on
the event loop of the agent pool. In the second case the generator runs the loop in slices of `SLICE_SECONDS`, and between
them yields what has ended.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter, sleep

from assay.errors import AssayError
from assay.execute.case_runner import CaseRunner
from assay.execute.early_stop import failure_limit_for
from assay.execute.error_text import format_error
from assay.execute.job_progress import account_of
from assay.execute.output_capture import capture_prints_per_execution
from assay.execute.subject import INTERRUPTED
from assay.execute.worker_channel import MANY, StatusBlock, WorkerStage
from assay.model import Artifact, Batch, Execution, Isolation, Job, Phase, Status
from assay.plugin import lookup
from assay.plugin.agent_pool import AgentPool
from assay.plugin.interruption import BY_USER, Cancelled, UserInterrupt

LogReader = Callable[[], str | None]
SLICE_SECONDS = 0.05
SLOT_SECONDS = 0.005
"""Between two looks whether a worker that was started ahead may begin."""
BEAT_SECONDS = 0.2
"""How often a task on the event loop shows the supervisor that the loop is not held up."""


def run_suite_job(job: Job, status_block: StatusBlock, read_log: LogReader) -> Iterator[Batch]:
    """Execute a job of a suite, yielding executions as they end; whatever happens, the agent is closed.

    A worker in which a thread does not end stops early in the stage RENEWING, and the supervisor gives the rest of the job
    to a new process; the job is then not settled.
    """
    status_block.enter(WorkerStage.SETUP)
    pool = AgentPool()
    is_supervised = job.isolation is not Isolation.INLINE
    needs_new_process = False
    try:
        with capture_prints_per_execution() if job.concurrency > 1 and is_supervised else nullcontext():
            needs_new_process = yield from _open_and_run(job, pool, status_block, read_log)
    finally:
        status_block.enter(WorkerStage.TEARDOWN)
        pool.close()
        status_block.end()
    if needs_new_process and is_supervised:
        status_block.enter(WorkerStage.RENEWING)
    else:
        yield Batch(settled=((job.trial, job.process),))


def _open_and_run(
    job: Job, pool: AgentPool, status_block: StatusBlock, read_log: LogReader
) -> Generator[Batch, None, bool]:
    """Open the agent and its scorers and run the cases; returns whether the rest of the job needs a new process."""
    try:
        for file in job.load:
            lookup.load_file(Path(file))
        case_runner = CaseRunner(job, pool)
        version = case_runner.version
    except BaseException as error:
        yield _build_open_failure(job, error, read_log())
        return False
    try:
        case_runner.create_scorers()
    except BaseException as error:
        status, text = Status.HARNESS_ERROR, f"the scorers could not be created: {format_error(error)}"
        if isinstance(error, BY_USER):
            status, text = Status.CANCELLED, INTERRUPTED
        yield Batch((account_of(job).stand_in(status, text, log=read_log()),))
        return False
    about = case_runner.about_instruments() if job.process == 0 else Batch()
    yield replace(about, versions={job.trial: version} if version else {})
    yield from _wait_for_slot(job, status_block)
    start = perf_counter()
    has_given_up = yield from _run_executions(job, case_runner, pool, status_block, read_log)
    artifacts = (
        *case_runner.files.take(),
        *_about_concurrency(job, case_runner, perf_counter() - start, read_log),
    )
    yield Batch(artifacts=artifacts, usage={job.trial: case_runner.usage()})
    if case_runner.version != version:
        yield Batch(versions={job.trial: case_runner.version})
    return case_runner.needs_new_process and not has_given_up


def _wait_for_slot(job: Job, status_block: StatusBlock) -> Iterator[Batch]:
    """A worker may be started while another still has its slots, so that its start costs no time; it yields to see that it is cancelled."""
    while not status_block.count_slots(job.concurrency):
        status_block.end()
        sleep(SLOT_SECONDS)
        yield Batch()


def _about_concurrency(
    job: Job, case_runner: CaseRunner, elapsed: float, read_log: LogReader
) -> tuple[Artifact, ...]:
    """A doubt about the times of threads, and what was printed that cannot be assigned to an execution."""
    doubt = case_runner.doubt_about_threads(elapsed) if job.process == 0 else None
    log = read_log() if job.concurrency > 1 else None
    return (
        *([Artifact(job.trial, f"threads-p{job.process}.txt", "remark", doubt.encode())] if doubt else ()),
        *([Artifact(job.trial, f"log-p{job.process}.txt", "log", log.encode())] if log else ()),
    )


def _build_open_failure(job: Job, error: BaseException, log: str | None) -> Batch:
    """An agent that cannot be opened ends its trial, because opening it in another process would fail as well."""
    if isinstance(error, BY_USER):
        return Batch((account_of(job).stand_in(Status.CANCELLED, INTERRUPTED, log=log),))
    text = str(error) if isinstance(error, AssayError) else format_error(error)
    execution = account_of(job).stand_in(Status.FAILED, f"the agent could not be started: {text}", log=log)
    reason = f"the agent could not be started: {text.splitlines()[0]}"
    return Batch((execution,), stopped={job.trial: reason})


def _run_executions(
    job: Job, case_runner: CaseRunner, pool: AgentPool, status_block: StatusBlock, read_log: LogReader
) -> Generator[Batch, None, bool]:
    """Run the cases; returns whether the job was given up, because it was cancelled or failed too often."""
    warmups_kept = any(s.kept for s in job.stretches if s.phase == Phase.WARMUP)
    failure_limit = failure_limit_for(job.experiment, is_suite=True)
    for ended in _executions(job, case_runner, pool, status_block, read_log):
        yield Batch(tuple(e for e in ended if e.phase is not Phase.WARMUP or warmups_kept))
        if any(execution.status is Status.CANCELLED for execution in ended):
            return True
        for execution in ended:
            if reason := failure_limit.see(execution):
                yield Batch(stopped={job.trial: reason})
                return True
    return False


def _executions(
    job: Job, case_runner: CaseRunner, pool: AgentPool, status_block: StatusBlock, read_log: LogReader
) -> Iterator[list[Execution]]:
    """Executions as they end: many at a time for an async agent or one in threads, otherwise one after the other.

    After a process has died, the first `cautious` cases of the rest of its job are asked one at a time even so.
    """
    numbers = (
        (phase, number)
        for stretch in job.stretches
        for phase in [Phase(stretch.phase)]
        for number in range(stretch.first, stretch.end)
        if phase is not Phase.MEASURED or number not in job.done
    )
    if not (case_runner.is_async or case_runner.uses_threads):
        yield from ([execution] for execution in case_runner.run_cases(numbers, status_block, read_log))
        return
    beating = pool.runner.get_loop().create_task(_beat(status_block, case_runner, job.limits.seconds))
    try:
        alone = islice(numbers, job.cautious) if job.concurrency > 1 else numbers
        yield from ([execution] for execution in case_runner.run_cases(alone, status_block, read_log))
        if job.concurrency > 1:
            status_block.begin(Phase.MEASURED, MANY)
            yield from _ask_concurrently(job, case_runner, numbers, pool, status_block)
    finally:
        beating.cancel()


async def _beat(status_block: StatusBlock, case_runner: CaseRunner, limit: float | None) -> None:
    """Renew the status block as long as the loop runs; when an agent blocks the loop, the supervisor sees since when."""
    pause = min(BEAT_SECONDS, limit / 4) if limit is not None else BEAT_SECONDS
    while not case_runner.is_held_up:
        status_block.again()
        await asyncio.sleep(pause)


def _ask_concurrently(
    job: Job,
    case_runner: CaseRunner,
    numbers: Iterator[tuple[Phase, int]],
    pool: AgentPool,
    status_block: StatusBlock,
) -> Iterator[list[Execution]]:
    """Executions in slices of time: the event loop is left only now and then, to hand over what has ended."""
    # What is there already stays until the end: looking through it for garbage again and again costs a twentieth.
    gc.freeze()
    ended: list[Execution] = []
    loop = pool.runner.get_loop()

    def ask() -> asyncio.Task[None]:
        return loop.create_task(case_runner.run_cases_async(numbers, ended, status_block))

    slots = status_block.count_slots(job.concurrency)
    asking = [ask() for _ in range(slots)]
    try:
        while asking:
            _run_slice(pool, asking)
            yield [*ended]
            ended.clear()
            # An agent may cancel every task that it finds; others take the place of ours.
            asking = [ask() if task.cancelled() else task for task in asking if not _is_over(task)]
            if asking and slots < job.concurrency:
                more = status_block.count_slots(job.concurrency) - slots
                asking += [ask() for _ in range(more)]
                slots += max(0, more)
    except Cancelled:
        yield [*ended]
        raise
    finally:
        case_runner.is_closing = True
        for task in asking:
            task.cancel()


def _run_slice(pool: AgentPool, asking: list[asyncio.Task[None]]) -> None:
    """Run the event loop for a moment.

    An exception that code of the agent raises outside of its own tasks only ends the slice: the caller that awaits it gets it in
    the next one.
    """
    try:
        pool.runner.run(asyncio.wait(asking, timeout=SLICE_SECONDS))
    except UserInterrupt:
        raise
    except (SystemExit, KeyboardInterrupt, asyncio.CancelledError):
        return


def _is_over(task: asyncio.Task[None]) -> bool:
    """Raises what the task raised, but not that it was cancelled."""
    return task.done() and not task.cancelled() and task.result() is None
