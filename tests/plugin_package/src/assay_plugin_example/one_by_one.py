"""An executor: every job in the runner's own process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from assay.model import Batch, Job
from assay.plugin.executor import Attempt


class OneByOne:
    def __init__(self, workers: int) -> None:
        """There is one worker, however many are wanted: the runner itself."""

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        for job in jobs:
            for batch in attempt(job):
                yield batch
                if stop():
                    return
