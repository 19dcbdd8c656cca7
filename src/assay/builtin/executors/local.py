"""Workers on this machine: supervised processes, or the runner itself for `isolation: inline`."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from time import monotonic, sleep
from typing import Self

from assay.execute.account import account_of
from assay.execute.attempt import remark, teardown_failed, teardown_skipped
from assay.execute.guardian import Guardian
from assay.execute.patience import Patience, patience_for
from assay.execute.supervise import SupervisedWorker
from assay.model import Batch, Isolation, Job, Status
from assay.plugin.executor import Attempt
from assay.plugin.output import printing_to_stderr

POLL_SECONDS = 0.02
REST_SECONDS = 0.004
"""A runner that woke up for every single execution would disturb the ones that it waits for."""
GRACE_SECONDS = 2.0
MOST_STARTS = 5
"""How often a worker is started that dies before it begins with its job, as when the machine runs out of memory."""


class Local:
    """Up to `workers` processes at a time, each with one job; a job whose process dies goes on in a new one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        with Wards(f"{attempt.__module__}:{attempt.__qualname__}") as wards:
            try:
                yield from self._done(attempt, iter(jobs), stop, wards)
                yield from wards.sent_away()
            except KeyboardInterrupt:
                yield from wards.cut_off()
                raise

    def _done(
        self, attempt: Attempt, waiting: Iterator[Job], stop: Callable[[], bool], wards: Wards
    ) -> Iterator[Batch]:
        while not stop():
            job = next(waiting, None) if len(wards) < self._workers else None
            if job is None and not len(wards):
                return
            if job is None:
                yield from wards.looked_after()
            elif job.isolation is Isolation.INLINE:
                while len(wards) and not stop():
                    yield from wards.looked_after()
                yield from _inline(attempt, job, stop)
            else:
                yield from wards.taken_in(job)


class Wards:
    """The jobs that are being done at this time."""

    def __init__(self, attempt: str) -> None:
        self._attempt = attempt
        self._guardian = Guardian()
        self._active: list[Ward] = []
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

    def taken_in(self, job: Job) -> Iterator[Batch]:
        ward = Ward(self._attempt, self._guardian)
        self._active.append(ward)
        yield from ward.begin(job)
        self._forget_the_done()

    def looked_after(self) -> Iterator[Batch]:
        """Wait until there is something to see to, or a moment, and see to all.

        Ends with a batch that says nothing, but gives the runner a chance to store what it was told before.
        """
        self._wait()
        for ward in self._active:
            yield from ward.looked_after()
        self._forget_the_done()
        yield Batch()

    def sent_away(self) -> Iterator[Batch]:
        """All are asked to end at once, and given a moment for teardown."""
        for ward in self._active:
            ward.worker.ask_to_end()
        deadline = monotonic() + GRACE_SECONDS
        while not all(ward.worker.is_done for ward in self._active) and monotonic() < deadline:
            self._wait()
            for ward in self._active:
                yield from ward.worker.listen()
            yield Batch()
        for ward in self._active:
            remains = ward.worker.close()
            yield from remains.batches
            if remains.teardown is not None:
                skipped = teardown_skipped(remains.teardown, "the run was interrupted")
                yield Batch(artifacts=(skipped,))
        self._active.clear()

    def cut_off(self) -> Iterator[Batch]:
        """All are ended where they are, without a moment for teardown; what they had finished is told."""
        for ward in self._active:
            yield from ward.abandoned()
        self._active.clear()

    def _wait(self) -> None:
        poll = select.poll()
        for ward in self._active:
            if not ward.worker.is_done:
                poll.register(ward.worker.fd, select.POLLIN)
        poll.poll(POLL_SECONDS * 1000)
        sleep(max(0.0, self._last_look + REST_SECONDS - monotonic()))
        self._last_look = monotonic()

    def _forget_the_done(self) -> None:
        self._active = [ward for ward in self._active if not ward.is_done]


class Ward:
    """A job under supervision: its worker, and what has come of it so far."""

    worker: SupervisedWorker

    def __init__(self, attempt: str, guardian: Guardian) -> None:
        self._attempt = attempt
        self._guardian = guardian
        self._patience = Patience()
        self._waiting: Job | None = None
        """The rest of the job, while a teardown or cleanup runs before it."""
        self._starts = 0
        self.is_done = False

    def begin(self, job: Job) -> Iterator[Batch]:
        if job.agent is not None:
            self._patience = patience_for(is_suite=True)
        self.is_done = True
        self._starts += 1
        try:
            self.worker = SupervisedWorker(
                job, self._attempt, self._guardian, may_restart=self._starts < MOST_STARTS
            )
        except OSError as error:
            yield _not_begun(job, error)
        else:
            self.is_done = False

    def looked_after(self) -> Iterator[Batch]:
        yield from self._seen(self.worker.listen())
        if self.worker.is_done:
            yield from self.ended()
        else:
            self.worker.keep_within_limits()

    def ended(self) -> Iterator[Batch]:
        """What the worker leaves behind; the rest of its job, if that has a point, begins in a new one."""
        self.is_done = True
        remains = self.worker.close()
        yield from self._seen(remains.batches)
        if remains.failed_start:
            yield from self._start_again(remains.failed_start)
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

    def _start_again(self, why: str) -> Iterator[Batch]:
        job = self.worker.job
        text = f"The worker of process {job.process} was started again: while it started, {why}."
        yield Batch(artifacts=(remark(job, f"restart-{self._starts}", text),))
        yield from self.begin(job)

    def _seen(self, batches: list[Batch]) -> Iterator[Batch]:
        for batch in batches:
            for execution in batch.executions:
                self._patience.see(execution)
            # A process is not settled by its teardown when a new one goes on with its job.
            yield batch if self._waiting is None else replace(batch, settled=())

    def abandoned(self) -> list[Batch]:
        """What had come of it when nobody waited any longer."""
        if self.is_done:
            return []
        self.is_done = True
        self.worker.ask_to_end()
        return self.worker.close().batches


def _not_begun(job: Job, error: OSError) -> Batch:
    text = f"The worker could not be started: {error}"
    if job.is_after_death:
        return Batch(artifacts=(teardown_failed(job, text),))
    return Batch(account_of(job).stand_in_for_all(Status.HARNESS_ERROR, text))


def _inline(attempt: Attempt, job: Job, stop: Callable[[], bool]) -> Iterator[Batch]:
    with printing_to_stderr(), contextlib.closing(attempt(job)) as batches:  # type: ignore[type-var]
        for batch in batches:
            yield batch
            if stop():
                return
