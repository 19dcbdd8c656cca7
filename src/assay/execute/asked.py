"""One job of a suite, carried out: the agent is opened, put through its cases, closed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic

from assay.errors import AssayError
from assay.execute.account import account_of
from assay.execute.agents import Stable
from assay.execute.asking import Asker
from assay.execute.patience import patience_for
from assay.execute.pulse import Pulse, Stage
from assay.execute.subject import INTERRUPTED, Cancelled
from assay.execute.told import told
from assay.model import Batch, Execution, Job, Phase, Status
from assay.plugin import lookup

LogReader = Callable[[], str | None]
SLICE_SECONDS = 0.05
SLICE_EXECUTIONS = 500
BEAT_SECONDS = 0.2


def asked(job: Job, pulse: Pulse, read_log: LogReader) -> Iterator[Batch]:
    """Carry out a job of a suite, yielding executions as they end; whatever happens, the agent is closed."""
    pulse.enter(Stage.SETUP)
    stable = Stable()
    try:
        for file in job.load:
            lookup.load_file(Path(file))
        asker = Asker(job, stable)
    except BaseException as error:
        yield _unopened(job, error, read_log())
        stable.close()
        return
    try:
        yield Batch(versions={job.trial: asker.version} if asker.version else {})
        yield from _asked(job, asker, pulse, read_log, stable)
    finally:
        pulse.enter(Stage.TEARDOWN)
        stable.close()
        pulse.end()
    yield Batch(settled=((job.trial, job.process),))


def _unopened(job: Job, error: BaseException, log: str | None) -> Batch:
    """An agent that cannot be opened ends its trial: the next process would fare no better."""
    if isinstance(error, Cancelled):
        execution = account_of(job).stand_in(Status.CANCELLED, INTERRUPTED, log=log)
        return Batch((execution,), settled=((job.trial, job.process),))
    text = str(error) if isinstance(error, AssayError) else told(error)
    execution = account_of(job).stand_in(Status.FAILED, f"the agent could not be opened: {text}", log=log)
    reason = f"the agent could not be opened: {text.splitlines()[0]}"
    return Batch((execution,), stopped={job.trial: reason}, settled=((job.trial, job.process),))


def _asked(job: Job, asker: Asker, pulse: Pulse, read_log: LogReader, stable: Stable) -> Iterator[Batch]:
    if job.concurrency > 1:
        executions = _at_once(job, asker, pulse, stable)
    else:
        executions = ([one] for one in asker.one_by_one(_numbers(job), pulse, read_log))
    warmups_kept = any(s.kept for s in job.stretches if s.phase == Phase.WARMUP)
    patience = patience_for(is_suite=True)
    for made in executions:
        kept = tuple(one for one in made if one.phase is Phase.MEASURED or warmups_kept)
        yield Batch(tuple(replace(one, process=job.process) for one in kept))
        if any(one.status is Status.CANCELLED for one in made):
            return
        for one in made:
            if reason := patience.see(one):
                yield Batch(stopped={job.trial: reason})
                return


def _numbers(job: Job) -> Iterator[tuple[Phase, int]]:
    for stretch in job.stretches:
        phase = Phase(stretch.phase)
        for number in range(stretch.first, stretch.end):
            if phase is not Phase.MEASURED or number not in job.done:
                yield phase, number


def _at_once(job: Job, asker: Asker, pulse: Pulse, stable: Stable) -> Iterator[list[Execution]]:
    """Executions in slices of time: the event loop is left only now and then, to hand over what has ended."""
    running = asker.at_once(_numbers(job))
    runner = stable.runner
    beating = runner.get_loop().create_task(_beat(pulse))
    try:
        while made := runner.run(_slice(running)):
            yield made
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            runner.run(_ended(beating))
        runner.run(running.aclose())  # type: ignore[attr-defined]


async def _ended(task: asyncio.Task[None]) -> None:
    await task


async def _beat(pulse: Pulse) -> None:
    """As long as the loop turns, no execution holds it up; when it stands still, the supervisor sees since when."""
    while True:
        pulse.begin(Phase.MEASURED, 0)
        await asyncio.sleep(BEAT_SECONDS)


async def _slice(running: AsyncIterator[Execution]) -> list[Execution]:
    made: list[Execution] = []
    until = monotonic() + SLICE_SECONDS
    async for execution in running:
        made.append(execution)
        if len(made) >= SLICE_EXECUTIONS or monotonic() >= until:
            break
    return made
