"""Teardown in a process of its own, after the one that was to do it has died."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.execute.pulse import Pulse, Stage
from assay.execute.told import summary
from assay.model import Batch, Job
from assay.plugin import lookup
from assay.plugin.experiment import Experiment, ExperimentContext, experiment_class


def has_teardown(job: Job) -> bool:
    """Whether the experiment of a job defines a teardown at all."""
    own = getattr(_class_of(job), "teardown", None)
    return own is not None and own is not Experiment.teardown


def can_run_alone(job: Job) -> bool:
    """Whether its teardown is a static method: then it needs no experiment that was set up in the same process."""
    return isinstance(inspect.getattr_static(_class_of(job), "teardown", None), staticmethod)


def _class_of(job: Job) -> Any:
    try:
        return experiment_class(lookup.find("experiments", job.experiment))
    except AssayError:
        return None


def teardown_job(job: Job) -> Job:
    """What is left to do for a process that has died: nothing but its teardown."""
    return replace(job, stretches=(), is_teardown=True)


def tear_down(job: Job, pulse: Pulse) -> Iterator[Batch]:
    """Carry out a job that is only a teardown; what goes wrong in it is a remark beside the trial."""
    from assay.execute.attempt import teardown_failed

    pulse.enter(Stage.TEARDOWN)
    context = ExperimentContext(
        job.run_id, Path(job.run_dir), job.seed, phase="teardown", process=job.process, params=job.params
    )
    problem = None
    try:
        for file in job.load:
            lookup.load_file(Path(file))
        result = experiment_class(lookup.find("experiments", job.experiment)).teardown(context)
        if inspect.isawaitable(result):
            import asyncio

            asyncio.run(_awaited(result))
    except BaseException as error:
        problem = summary(error)
    pulse.end()
    artifacts = (teardown_failed(job, problem),) if problem else ()
    yield Batch(artifacts=artifacts, settled=((job.trial, job.process),))


async def _awaited(result: Any) -> Any:
    return await result
