"""Workers on this machine: supervised processes, or the runner itself for `isolation: inline`.

The runner calls `Local.map` and stores the batches that it yields. `map` never blocks for long: while workers are busy it
yields an empty batch now and then, so that the runner can store, show progress and see Ctrl-C.

The life of a job: a worker starts; it sends batches until it is done or dies. What it left unfinished goes on in a new
worker, unless the trial has failed too often (`early_stop`). Where a worker died between setup and teardown, a worker that
does nothing but the teardown comes first, and the rest of the job waits for it. A worker that dies before it began with its
job is started again, at most `MOST_STARTS` times.
"""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from time import monotonic, sleep
from typing import Self

from assay.execute.attempt import build_skipped_teardown, build_teardown_failure, remark
from assay.execute.early_stop import Patience, patience_for
from assay.execute.guardian import Guardian
from assay.execute.job_progress import account_of
from assay.execute.supervise import SupervisedWorker
from assay.model import Batch, Isolation, Job, Status
from assay.plugin.executor import Attempt
from assay.plugin.output import printing_to_stderr

POLL_SECONDS = 0.02
"""The longest wait for news of a worker: limits of time and memory are checked that often."""
REST_SECONDS = 0.004
"""A runner that woke up for every single execution would disturb the ones that it waits for."""
GRACE_SECONDS = 2.0
"""For the teardown of workers that are asked to end."""
MOST_STARTS = 5
"""How often a worker is started that dies before it begins with its job, as when the machine runs out of memory."""


class Local:
    """Up to `workers` processes at a time, each with one job; a job whose process dies goes on in a new one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        with WorkerPool(f"{attempt.__module__}:{attempt.__qualname__}") as pool:
            try:
                yield from self._run_jobs(attempt, iter(jobs), stop, pool)
                yield from pool.shut_down()
            except KeyboardInterrupt:
                yield from pool.cut_off()
                raise

    def _run_jobs(
        self, attempt: Attempt, waiting: Iterator[Job], stop: Callable[[], bool], pool: WorkerPool
    ) -> Iterator[Batch]:
        while not stop():
            job = next(waiting, None) if len(pool) < self._workers else None
            if job is None and not len(pool):
                return
            if job is None:
                yield from pool.collect_batches()
            elif job.isolation is Isolation.INLINE:
                while len(pool) and not stop():
                    yield from pool.collect_batches()
                yield from _run_inline(attempt, job, stop)
            else:
                yield from pool.start_job(job)


class WorkerPool:
    """The jobs that are being done at this time."""

    def __init__(self, attempt: str) -> None:
        self._attempt = attempt
        self._guardian = Guardian()
        self._active: list[ActiveJob] = []
        self._last_look = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            list(self.cut_off())
        finally:
            self._guardian.close()

    def __len__(self) -> int:
        return len(self._active)

    def start_job(self, job: Job) -> Iterator[Batch]:
        patience = patience_for(job.experiment, is_suite=job.agent is not None)
        active = ActiveJob(self._attempt, self._guardian, patience)
        self._active.append(active)
        yield from active.begin(job)
        self._forget_the_done()

    def collect_batches(self) -> Iterator[Batch]:
        """Wait until there is something to see to, or a moment, and see to all.

        Ends with an empty batch, which gives the runner a chance to store the batches before it.
        """
        self._wait()
        for active in self._active:
            yield from active.collect_batches()
        self._forget_the_done()
        yield Batch()

    def shut_down(self) -> Iterator[Batch]:
        """All are asked to end at once, and given a moment for teardown."""
        for active in self._active:
            active.worker.ask_to_end()
        deadline = monotonic() + GRACE_SECONDS
        while not all(active.worker.is_done for active in self._active) and monotonic() < deadline:
            self._wait()
            for active in self._active:
                yield from active.worker.listen()
            yield Batch()
        for active in self._active:
            remains = active.worker.close()
            yield from remains.batches
            if remains.teardown is not None:
                skipped = build_skipped_teardown(remains.teardown, "the run was interrupted")
                yield Batch(artifacts=(skipped,))
        self._active.clear()

    def cut_off(self) -> Iterator[Batch]:
        """All are ended where they are, without a moment for teardown; yields what they had finished."""
        for active in self._active:
            yield from active.abandon()
        self._active.clear()

    def _wait(self) -> None:
        poll = select.poll()
        for active in self._active:
            if not active.worker.is_done:
                poll.register(active.worker.fd, select.POLLIN)
        poll.poll(POLL_SECONDS * 1000)
        sleep(max(0.0, self._last_look + REST_SECONDS - monotonic()))
        self._last_look = monotonic()

    def _forget_the_done(self) -> None:
        self._active = [active for active in self._active if not active.is_done]


class ActiveJob:
    """A job under supervision: its worker, and what has come of it so far."""

    worker: SupervisedWorker

    def __init__(self, attempt: str, guardian: Guardian, patience: Patience) -> None:
        self._attempt = attempt
        self._guardian = guardian
        self._patience = patience
        self._waiting: Job | None = None
        """The rest of the job, while a teardown or cleanup runs before it."""
        self._starts = 0
        self.is_done = False

    def begin(self, job: Job) -> Iterator[Batch]:
        """Start a worker for the job; where it cannot be started, yields that as the result of every execution."""
        self.is_done = True
        self._starts += 1
        try:
            self.worker = SupervisedWorker(
                job, self._attempt, self._guardian, may_restart=self._starts < MOST_STARTS
            )
        except OSError as error:
            text = f"The worker could not be started: {error}"
            if job.is_after_death:
                yield Batch(artifacts=(build_teardown_failure(job, text),))
            else:
                yield Batch(account_of(job).stand_in_for_all(Status.HARNESS_ERROR, text))
        else:
            self.is_done = False

    def collect_batches(self) -> Iterator[Batch]:
        yield from self._observe_batches(self.worker.listen())
        if self.worker.is_done:
            yield from self._finish()
        else:
            self.worker.keep_within_limits()

    def _finish(self) -> Iterator[Batch]:
        """What the worker leaves behind; the rest of its job, if that has a point, begins in a new one."""
        self.is_done = True
        remains = self.worker.close()
        yield from self._observe_batches(remains.batches)
        if remains.failed_start:
            job = self.worker.job
            text = f"The worker of process {job.process} was started again: while it started, {remains.failed_start}."
            yield Batch(artifacts=(remark(job, f"restart-{self._starts}", text),))
            yield from self.begin(job)
            return
        self._starts = 0
        rest = self._waiting if self.worker.job.is_after_death else remains.job
        self._waiting = None
        if self._patience.reason:
            rest = None
        if remains.teardown is not None:
            self._waiting = rest
            yield from self.begin(remains.teardown)
        elif rest is not None:
            yield from self.begin(rest)

    def _observe_batches(self, batches: list[Batch]) -> Iterator[Batch]:
        for batch in batches:
            for execution in batch.executions:
                self._patience.see(execution)
            # A process is not settled by its teardown when a new one goes on with its job.
            yield batch if self._waiting is None else replace(batch, settled=())

    def abandon(self) -> list[Batch]:
        """What had come of it when nobody waited any longer."""
        if self.is_done:
            return []
        self.is_done = True
        self.worker.ask_to_end()
        return self.worker.close().batches


def _run_inline(attempt: Attempt, job: Job, stop: Callable[[], bool]) -> Iterator[Batch]:
    """Do a job in this process, which waits for it; what the job prints must not get into the results."""
    with printing_to_stderr(), contextlib.closing(attempt(job)) as batches:  # type: ignore[type-var]
        for batch in batches:
            yield batch
            if stop():
                return
