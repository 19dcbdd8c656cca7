"""Executes one job: setup, executions, teardown.

`attempt` is what an executor runs: in a worker process (`worker.py`), or inline in the runner. It is a generator of batches,
so that every execution is reported as soon as it has ended and survives whatever happens to the next one. Jobs that put an
agent through the cases of a suite are handed to `suite_job.py`; this module does the jobs of experiments.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import time

from assay.execute.early_stop import StoppingRule, failure_limit_for
from assay.execute.error_text import format_error
from assay.execute.job_progress import first_due
from assay.execute.subject import INTERRUPTED, Subject, blame_for_start
from assay.execute.teardown import can_run_alone, tidy_up
from assay.execute.worker_channel import StatusBlock, WorkerStage
from assay.model import Artifact, Batch, Execution, ExecutionRange, Isolation, Job, Phase, Status
from assay.plugin.experiment import ExperimentContext

LogReader = Callable[[], str | None]


def attempt(
    job: Job, status_block: StatusBlock | None = None, read_log: LogReader | None = None
) -> Iterator[Batch]:
    """Execute a job, yielding each execution as it ends; whatever happens, teardown runs.

    `status_block` tells the supervisor what is going on; `read_log` returns what was printed since it was last called. Both are
    absent where the job runs inline. The last batch names the job as settled: without it the job counts as broken off.
    """
    status_block = status_block or StatusBlock()
    read_log = read_log or (lambda: None)
    if job.is_after_death:
        yield from tidy_up(job, status_block)
        return
    if job.agent is not None:
        # Code experiments are spared the event loop and all that comes with it.
        from assay.execute.suite_job import run_suite_job

        seed_chance(job.seed)
        yield from run_suite_job(job, status_block, read_log)
        return
    status_block.enter(WorkerStage.SETUP)
    started = time()
    settled = Batch(settled=((job.trial, job.process),))
    try:
        subject = _build_subject(job, status_block)
    except BaseException as error:
        yield Batch((_instead(job, started, "could not be made", error, read_log()),))
        yield settled
        return
    try:
        yield from _run_stretches(job, subject, status_block, read_log)
    finally:
        status_block.enter(WorkerStage.TEARDOWN)
        problem = subject.close()
        status_block.end()
    remarks = [remark(job, f"remark-{n}", text) for n, text in enumerate(subject.context.remarks)]
    yield replace(
        settled,
        artifacts=(*remarks, *([build_teardown_failure(job, problem)] if problem else ())),
        usage={job.trial: subject.meter.usage()},
    )


def _build_subject(job: Job, status_block: StatusBlock) -> Subject:
    """Seed the random generators before the experiment is imported, and again afterwards: it may have imported numpy."""
    seed_chance(job.seed)
    run_dir = Path(job.run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    context = ExperimentContext(
        job.run_id,
        run_dir,
        job.seed,
        process=job.process,
        isolation=job.isolation.value,
        params=job.params,
    )
    context.report_progress = status_block.write_note
    subject = Subject(job, context)
    seed_chance(job.seed)
    return subject


def _run_stretches(
    job: Job, subject: Subject, status_block: StatusBlock, read_log: LogReader
) -> Iterator[Batch]:
    """Set the experiment up and go through the stretches of the job: warm-up, measured and profiled executions.

    It ends early where an execution says nothing about the subject (it was cancelled, or the harness failed), and where
    the subject has failed so often that `FailureLimit` gives up; the batch then says why under `stopped`.
    """
    started = time()
    had_numpy = "numpy" in sys.modules
    try:
        subject.setup()
        if not had_numpy:
            _seed_numpy(job.seed)
        about_instruments = subject.about_instruments() if job.process == 0 else Batch()
    except BaseException as error:
        yield Batch((_instead(job, started, "setup failed", error, read_log()),))
        return
    yield about_instruments
    failure_limit = failure_limit_for(job.experiment)
    for stretch in job.stretches:
        for execution in _run_stretch(job, stretch, subject, status_block, read_log):
            if stretch.kept:
                yield Batch((execution,))
            if execution.status is not Status.OK and not execution.status.is_settled:
                return
            if reason := failure_limit.see(execution):
                yield Batch(artifacts=subject.files.take(), stopped={job.trial: reason})
                return
        if artifacts := subject.files.take():
            yield Batch(artifacts=artifacts)


def _run_stretch(
    job: Job, stretch: ExecutionRange, subject: Subject, status_block: StatusBlock, read_log: LogReader
) -> Iterator[Execution]:
    phase = Phase(stretch.phase)
    context = subject.context
    context.phase = phase
    earlier = job.process - job.iterations.warmup if job.isolation is Isolation.COLD else 0
    is_enough = (
        StoppingRule(job.iterations.until) if phase is Phase.MEASURED and job.iterations.until else None
    )
    for repetition in range(stretch.first, stretch.end):
        context.iteration_index = earlier + repetition if phase is Phase.MEASURED else None
        context.execution = repetition
        status_block.begin(phase, repetition)
        if subject.loops is None:
            subject.find_loops()
            status_block.begin(phase, repetition)
        execution = subject.execute(phase, repetition, status_block)
        if log := read_log():
            execution = replace(execution, log=log)
        status_block.end()
        yield execution
        if is_enough and is_enough(execution):
            return


def seed_chance(seed: int) -> None:
    """Seed `random`, and numpy where it is imported, so that all arms of a comparison draw the same numbers."""
    random.seed(seed)
    _seed_numpy(seed)


def _seed_numpy(seed: int) -> None:
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def remark(job: Job, what: str, text: str) -> Artifact:
    """A note that is shown beside the figures of a trial."""
    return Artifact(job.trial, f"{what}-p{job.process}.txt", "remark", text.encode())


def build_teardown_failure(job: Job, problem: str) -> Artifact:
    """The note that a teardown, or the cleanup command in place of it, went wrong."""
    what = "cleanup" if job.is_cleanup else "teardown"
    return remark(job, what, f"The {what} of process {job.process} failed: {problem.rstrip('.')}.")


def build_skipped_teardown(job: Job, why: str) -> Artifact:
    """The note that neither the worker nor a new process ran the teardown, and how to have it run next time."""
    what = "cleanup" if job.is_cleanup else "teardown"
    text = f"{what.title()} of process {job.process} did not run because the process was stopped: {why}."
    if not (job.cleanup or can_run_alone(job)):
        text += " Declare teardown with @staticmethod, or give the spec a cleanup command, to have it run in a new process."
    return remark(job, what, text)


def _instead(job: Job, started: float, what: str, error: BaseException, log: str | None) -> Execution:
    """The execution that reports an error from before any execution: it takes the place of the first that was due."""
    due = first_due(job.stretches)
    assert due is not None
    status = blame_for_start(error)
    text = INTERRUPTED if status is Status.CANCELLED else f"{what}: {format_error(error)}"
    return Execution(job.trial, job.process, *due, status, started, {}, case=job.case_id, error=text, log=log)
