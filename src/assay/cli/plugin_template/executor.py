"""An executor: Assay hands it jobs, and it decides where they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from assay.model import Batch, Job
from assay.plugin import Attempt


class TemplateNameExecutor:
    """Every job in the runner's own process, one after the other."""

    def __init__(self, workers: int) -> None:
        """There is one worker, however many are wanted: the runner itself."""

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        for job in jobs:
            for batch in attempt(job):
                yield batch
                if stop():
                    return
