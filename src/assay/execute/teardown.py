"""Teardown and cleanup in a process of their own, after the process that was to tear down has died.

There are two ways to tidy up after a dead worker. A teardown that is a static method needs nothing of the experiment's
state, so a new process can call it. A cleanup command of the spec runs after that, or alone. `supervise.py` decides which of
them is due and makes a job of it; `attempt.py` hands such a job to `tidy_up`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.execute.error_text import summary
from assay.execute.worker_channel import StatusBlock, WorkerStage
from assay.model import Batch, Cleanup, Job
from assay.plugin import lookup
from assay.plugin.experiment import Experiment, ExperimentContext, experiment_class

_TAIL_BYTES = 2000
"""How much of the error output of a cleanup command is read to find its last line."""


def has_teardown(job: Job) -> bool:
    """Whether the experiment of a job defines a teardown at all."""
    own = getattr(_class_of(job), "teardown", None)
    return own is not None and own is not Experiment.teardown


def can_run_alone(job: Job) -> bool:
    """Whether the teardown is a static method, so that it needs no experiment that was set up in the same process."""
    return isinstance(inspect.getattr_static(_class_of(job), "teardown", None), staticmethod)


def _class_of(job: Job) -> Any:
    try:
        return experiment_class(lookup.find("experiments", job.experiment))
    except AssayError:
        return None


def teardown_job(job: Job) -> Job:
    """What is left to do for a process that has died: nothing but its teardown."""
    return replace(job, stretches=(), is_teardown=True)


def cleanup_job(job: Job) -> Job | None:
    """What comes after the teardown: the cleanup command; None where there is none."""
    if job.cleanup is None or job.is_cleanup:
        return None
    return replace(job, stretches=(), is_teardown=False, is_cleanup=True)


def tidy_up(job: Job, status_block: StatusBlock) -> Iterator[Batch]:
    """Execute a job that is only a teardown or a cleanup; what goes wrong in it is a remark beside the trial."""
    from assay.execute.attempt import build_teardown_failure

    status_block.enter(WorkerStage.TEARDOWN)
    problem = _run_command(job.cleanup) if job.is_cleanup and job.cleanup else _tear_down(job)
    status_block.end()
    artifacts = (build_teardown_failure(job, problem),) if problem else ()
    yield Batch(artifacts=artifacts, settled=((job.trial, job.process),))


def _run_command(cleanup: Cleanup) -> str | None:
    """Run the cleanup command; returns what went wrong.

    It has no time limit of its own: the supervisor of this process ends it, and the command with it, if it takes too long.
    """
    import shlex
    import subprocess
    import tempfile

    command = shlex.join(cleanup.command)
    # Into a file, not a pipe: a process that the command leaves behind would hold a pipe open.
    with tempfile.TemporaryFile() as errors:
        try:
            code = subprocess.call(
                cleanup.command,
                cwd=cleanup.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        except BaseException as error:
            return f"{command}: {summary(error)}"
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL_BYTES))
        last_lines = errors.read().decode(errors="replace").strip().splitlines()[-1:]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return ": ".join([f"{command} ended with {ended}", *last_lines]) if code else None


def _tear_down(job: Job) -> str | None:
    context = ExperimentContext(
        job.run_id, Path(job.run_dir), job.seed, phase="teardown", process=job.process, params=job.params
    )
    try:
        for file in job.load:
            lookup.load_file(Path(file))
        result = experiment_class(lookup.find("experiments", job.experiment)).teardown(context)
        if inspect.isawaitable(result):
            import asyncio

            asyncio.run(_await_result(result))
    except BaseException as error:
        return summary(error)
    return None


async def _await_result(result: Any) -> Any:
    return await result
