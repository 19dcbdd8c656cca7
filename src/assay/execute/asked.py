"""One job of a suite, carried out: the agent is opened, put through its cases, closed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter

from assay.errors import AssayError
from assay.execute.account import account_of
from assay.execute.agents import Stable
from assay.execute.asking import Asker
from assay.execute.capture import telling_prints_apart
from assay.execute.interruption import BY_USER, Cancelled, UserInterrupt
from assay.execute.patience import patience_for
from assay.execute.pulse import MANY, Pulse, WorkerStage
from assay.execute.subject import INTERRUPTED
from assay.execute.told import told
from assay.model import Artifact, Batch, Execution, Isolation, Job, Phase, Status
from assay.plugin import lookup

LogReader = Callable[[], str | None]
SLICE_SECONDS = 0.05
BEAT_SECONDS = 0.2


def asked(job: Job, pulse: Pulse, read_log: LogReader) -> Iterator[Batch]:
    """Carry out a job of a suite, yielding executions as they end; whatever happens, the agent is closed."""
    pulse.enter(WorkerStage.SETUP)
    stable = Stable()
    is_supervised = job.isolation is not Isolation.INLINE
    needs_new_process = False
    try:
        with telling_prints_apart() if job.concurrency > 1 and is_supervised else nullcontext():
            needs_new_process = yield from _asked(job, stable, pulse, read_log)
    finally:
        pulse.enter(WorkerStage.TEARDOWN)
        stable.close()
        pulse.end()
    if needs_new_process and is_supervised:
        pulse.enter(WorkerStage.RENEWING)
    else:
        yield Batch(settled=((job.trial, job.process),))


def _asked(job: Job, stable: Stable, pulse: Pulse, read_log: LogReader) -> Generator[Batch, None, bool]:
    """Whether the rest of the job needs a new process."""
    try:
        for file in job.load:
            lookup.load_file(Path(file))
        asker = Asker(job, stable)
        version = asker.version
    except BaseException as error:
        yield _unopened(job, error, read_log())
        return False
    try:
        asker.call_scorers()
    except BaseException as error:
        yield _unjudged(job, error, read_log())
        return False
    about = asker.about_instruments() if job.process == 0 else Batch()
    yield replace(about, versions={job.trial: version} if version else {})
    start = perf_counter()
    has_given_up = yield from _answered(job, asker, stable, pulse, read_log)
    artifacts = (*asker.files.taken(), *_about_concurrency(job, asker, perf_counter() - start, read_log))
    yield Batch(artifacts=artifacts, usage={job.trial: asker.usage()})
    if asker.version != version:
        yield Batch(versions={job.trial: asker.version})
    return asker.needs_new_process and not has_given_up


def _about_concurrency(job: Job, asker: Asker, elapsed: float, read_log: LogReader) -> tuple[Artifact, ...]:
    """A doubt about the figures, and what was printed that cannot be told apart by execution."""
    doubt = asker.doubt_about_threads(elapsed) if job.process == 0 else None
    log = read_log() if job.concurrency > 1 else None
    return (
        *([Artifact(job.trial, f"threads-p{job.process}.txt", "remark", doubt.encode())] if doubt else ()),
        *([Artifact(job.trial, f"log-p{job.process}.txt", "log", log.encode())] if log else ()),
    )


def _unopened(job: Job, error: BaseException, log: str | None) -> Batch:
    """An agent that cannot be opened ends its trial: the next process would fare no better."""
    if isinstance(error, BY_USER):
        return Batch((account_of(job).stand_in(Status.CANCELLED, INTERRUPTED, log=log),))
    text = str(error) if isinstance(error, AssayError) else told(error)
    execution = account_of(job).stand_in(Status.FAILED, f"the agent could not be opened: {text}", log=log)
    reason = f"the agent could not be opened: {text.splitlines()[0]}"
    return Batch((execution,), stopped={job.trial: reason})


def _unjudged(job: Job, error: BaseException, log: str | None) -> Batch:
    if isinstance(error, BY_USER):
        return Batch((account_of(job).stand_in(Status.CANCELLED, INTERRUPTED, log=log),))
    text = f"the scorers could not be made: {told(error)}"
    return Batch((account_of(job).stand_in(Status.HARNESS_ERROR, text, log=log),))


def _answered(
    job: Job, asker: Asker, stable: Stable, pulse: Pulse, read_log: LogReader
) -> Generator[Batch, None, bool]:
    """Whether it was given up: because it was cancelled, or failed too often."""
    warmups_kept = any(s.kept for s in job.stretches if s.phase == Phase.WARMUP)
    patience = patience_for(is_suite=True)
    for made in _executions(job, asker, stable, pulse, read_log):
        yield Batch(tuple(one for one in made if one.phase is not Phase.WARMUP or warmups_kept))
        if any(one.status is Status.CANCELLED for one in made):
            return True
        for one in made:
            if reason := patience.see(one):
                yield Batch(stopped={job.trial: reason})
                return True
    return False


def _executions(
    job: Job, asker: Asker, stable: Stable, pulse: Pulse, read_log: LogReader
) -> Iterator[list[Execution]]:
    """Many at a time on the event loop, where that waits for an async agent or for threads; else one after the other."""
    numbers = _numbers(job)
    if not (asker.is_async or asker.uses_threads):
        yield from ([one] for one in asker.one_by_one(numbers, pulse, read_log))
        return
    beating = stable.runner.get_loop().create_task(_beat(pulse, asker, job.limits.seconds))
    try:
        alone = islice(numbers, job.cautious) if job.concurrency > 1 else numbers
        yield from ([one] for one in asker.one_by_one(alone, pulse, read_log))
        if job.concurrency > 1:
            pulse.begin(Phase.MEASURED, MANY)
            yield from _at_once(job, asker, numbers, stable, pulse)
    finally:
        beating.cancel()


def _numbers(job: Job) -> Iterator[tuple[Phase, int]]:
    for stretch in job.stretches:
        phase = Phase(stretch.phase)
        for number in range(stretch.first, stretch.end):
            if phase is not Phase.MEASURED or number not in job.done:
                yield phase, number


async def _beat(pulse: Pulse, asker: Asker, limit: float | None) -> None:
    """While the loop turns, nobody holds it up; when it stands still, the supervisor sees since when."""
    pause = min(BEAT_SECONDS, limit / 4) if limit is not None else BEAT_SECONDS
    while not asker.is_held_up:
        pulse.again()
        await asyncio.sleep(pause)


def _at_once(
    job: Job, asker: Asker, numbers: Iterator[tuple[Phase, int]], stable: Stable, pulse: Pulse
) -> Iterator[list[Execution]]:
    """Executions in slices of time: the event loop is left only now and then, to hand over what has ended."""
    # What is there already stays until the end: looking through it for garbage again and again costs a twentieth.
    gc.freeze()
    ended: list[Execution] = []
    loop = stable.runner.get_loop()

    def ask() -> asyncio.Task[None]:
        return loop.create_task(asker.keep_asking(numbers, ended, pulse))

    asking = [ask() for _ in range(job.concurrency)]
    try:
        while asking:
            _run_slice(stable, asking)
            yield [*ended]
            ended.clear()
            # An agent may cancel every task that it finds; others take the place of ours.
            asking = [ask() if task.cancelled() else task for task in asking if not _is_over(task)]
    except Cancelled:
        yield [*ended]
        raise
    finally:
        asker.is_closing = True
        for task in asking:
            task.cancel()


def _run_slice(stable: Stable, asking: list[asyncio.Task[None]]) -> None:
    """What code of the agent raises past its own tasks only ends the slice: whoever awaits it gets it in the next one."""
    try:
        stable.runner.run(_slice(asking))
    except UserInterrupt:
        raise
    except (SystemExit, KeyboardInterrupt, asyncio.CancelledError):
        return


def _is_over(task: asyncio.Task[None]) -> bool:
    """Raises what the task raised, but not that it was cancelled."""
    return task.done() and not task.cancelled() and task.result() is None


async def _slice(asking: list[asyncio.Task[None]]) -> None:
    await asyncio.wait(asking, timeout=SLICE_SECONDS)
