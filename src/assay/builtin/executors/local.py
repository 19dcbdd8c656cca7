"""Workers on this machine: supervised processes, or the runner itself for `isolation: inline`."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator

from assay.execute.patience import Patience
from assay.execute.supervise import Worker
from assay.model import Batch, Isolation, Job, Status
from assay.plugin.executor import Attempt

POLL_SECONDS = 0.02


class Local:
    """Up to `workers` processes at a time, each with one job; a job whose process dies goes on in a new one."""

    def __init__(self, workers: int) -> None:
        self._free = workers

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        waiting = iter(jobs)
        active: list[Ward] = []
        try:
            while not stop():
                while len(active) < self._free and (job := next(waiting, None)) is not None:
                    if job.isolation is Isolation.INLINE:
                        yield from _inline(attempt, job, stop)
                    else:
                        active.append(Ward(job, f"{attempt.__module__}:{attempt.__qualname__}"))
                if not active:
                    return
                select.select([ward.worker.fd for ward in active], [], [], POLL_SECONDS)
                for ward in list(active):
                    yield from ward.look_after()
                    if ward.is_done:
                        active.remove(ward)
            for ward in active:
                yield from ward.cancelled()
        finally:
            for ward in active:
                ward.abandon()


def _inline(attempt: Attempt, job: Job, stop: Callable[[], bool]) -> Iterator[Batch]:
    for batch in attempt(job):
        yield batch
        if stop():
            return


class Ward:
    """A job under supervision: its worker, and what has come of it so far."""

    def __init__(self, job: Job, attempt: str) -> None:
        self._attempt = attempt
        self._stored: dict[str, int] = {}
        self._patience = Patience()
        self.is_done = False
        self.worker = Worker(job, attempt)

    def look_after(self) -> Iterator[Batch]:
        batches = self.worker.listen()
        yield from self._seen(batches)
        if not self.worker.is_done:
            self.worker.keep_within_limits()
            return
        last = self.worker.close()
        yield from self._seen([last])
        self._go_on(last)
        if self._patience.reason and last.executions:
            yield Batch(stopped={self.worker.job.trial: self._patience.reason})

    def _seen(self, batches: list[Batch]) -> Iterator[Batch]:
        for batch in batches:
            for execution in batch.executions:
                self._stored[execution.phase] = execution.repetition + 1
            self._patience.see(batch.executions)
            yield batch

    def _go_on(self, last: Batch) -> None:
        """After a crash the rest of the job is done in a new process, unless there is no point in it."""
        died = bool(last.executions)
        left = self.worker.remaining(self._stored) if died and not self._patience.reason else None
        harness_failed = any(e.status is Status.HARNESS_ERROR for e in last.executions)
        if left is None or harness_failed:
            self.is_done = True
        else:
            self.worker = Worker(left, self._attempt)

    def cancelled(self) -> Iterator[Batch]:
        yield from self._seen(self.worker.cancel())
        last = self.worker.close()
        self.is_done = True
        yield last

    def abandon(self) -> None:
        if not self.is_done:
            self.worker.close()
