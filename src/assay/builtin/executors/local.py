"""Workers on this machine: supervised processes, or the runner itself for `isolation: inline`.

The runner calls `Local.map` and stores the batches that it yields. `map` never blocks for long: while workers are busy it
yields an empty batch now and then, so that the runner can store, show progress and see Ctrl-C.

The life of a job: a worker starts; it sends batches until it is done or dies. What it left unfinished continues in a new
worker, unless the trial has failed too often (`early_stop`). Where a worker died between setup and teardown, a worker that
does nothing but the teardown comes first, and the rest of the job waits for it. A worker that dies before it began with its
job is started again, at most `MOST_STARTS` times.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, Self

from assay.execute.attempt import build_skipped_teardown, build_teardown_failure, remark
from assay.execute.early_stop import FailureLimit, failure_limit_for
from assay.execute.guardian import Guardian
from assay.execute.job_progress import account_of
from assay.execute.supervise import SupervisedWorker
from assay.execute.worker_process import take_guardian
from assay.model import Batch, Isolation, Job, ResourceRequest, Status
from assay.plugin import Attempt, GeneratorSite, printing_to_stderr

POLL_SECONDS = 0.02
"""The longest wait for news of a worker: limits of time and memory are checked that often."""
REST_SECONDS = 0.004
"""A runner that woke up for every single execution would disturb the ones that it waits for."""
GRACE_SECONDS = 2.0
"""For the teardown of workers that are asked to end."""
MOST_STARTS = 5
"""How often a worker is started that dies before it begins with its job, as when the machine runs out of memory."""


class Local:
    """Up to `workers` processes at a time, each with one job; a job whose process dies continues in a new one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    @classmethod
    def find_shortage(cls, resources: ResourceRequest) -> str:
        """More processors than there are, or a GPU where there is none; resources with names of their own are a cluster's."""
        cores = os.cpu_count() or 1
        if resources.cpu > cores:
            return f"{resources.cpu:g} processors, but this machine has {cores}"
        if resources.gpu and not _has_gpu():
            return f"{resources.gpu:g} GPU, but this machine has none"
        return ""

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        with WorkerPool(f"{attempt.__module__}:{attempt.__qualname__}", take_guardian()) as pool:
            try:
                yield from self._run_jobs(attempt, iter(jobs), stop, pool)
                yield from _batches(pool.shut_down())
            except KeyboardInterrupt:
                yield from _batches(pool.cut_off())
                raise

    def _run_jobs(
        self, attempt: Attempt, waiting: Iterator[Job], stop: Callable[[], bool], pool: WorkerPool
    ) -> Iterator[Batch]:
        while not stop():
            job = next(waiting, None) if len(pool) < self._workers else None
            if job is None and not len(pool):
                return
            if job is None:
                yield from _batches(pool.collect())
            elif job.isolation is Isolation.INLINE:
                while len(pool) and not stop():
                    yield from _batches(pool.collect())
                yield from run_inline(attempt, job, stop)
            else:
                yield from _batches(pool.start_job(job))

    @classmethod
    @contextlib.contextmanager
    def spread_generators(
        cls, generators: int | None, factory: Callable[[], object], options: Mapping[str, object]
    ) -> Iterator[Sequence[GeneratorSite]]:
        """Several generators on this machine, whose worker processes share its cores."""
        yield [LocalSite(f"local-{number}", factory()) for number in range(1, (generators or 1) + 1)]


def _batches(results: Iterator[JobResult]) -> Iterator[Batch]:
    return (result.batch for result in results)


class JobResult(NamedTuple):
    """A batch of the job that was started under this number; an empty batch without a number ends one pass over all jobs."""

    number: int | None
    batch: Batch


class WorkerPool:
    """The jobs under way on this machine, each with its supervised worker.

    The pool has no thread of its own. Its owner calls `start_job` for each job and `collect` again and again; `collect` waits
    a few milliseconds for the pipes of all workers, takes in what has arrived, and enforces limits. Both the local executor and
    the actor on a Ray node use it, so a job is supervised in the same way on one machine and on a cluster. The owner may number
    jobs, to tell their results apart.

    Leaving the pool ends all workers and everything that they started. If this process is killed instead, the guardian, a
    process beside it, does that.
    """

    def __init__(self, attempt: str, guardian: Guardian | None = None) -> None:
        self._attempt = attempt
        self._guardian = guardian or Guardian()
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

    @property
    def numbers(self) -> list[int]:
        """The numbers of the jobs that are not done."""
        return [active.number for active in self._active]

    def start_job(self, job: Job, number: int = 0, after: int = 0) -> Iterator[JobResult]:
        """Start its worker. After another job, the worker gets ready, and has as many executions under way as that one leaves it."""
        failure_limit = failure_limit_for(job.experiment, is_suite=job.agent is not None)
        before = next((active for active in self._active if after and active.number == after), None)
        active = ActiveJob(self._attempt, self._guardian, failure_limit, number, before)
        self._active.append(active)
        yield from _number_batches(active, active.begin(job))
        self._forget_the_done()

    def collect(self) -> Iterator[JobResult]:
        """Wait until there is something to see to, or a moment, and see to all.

        Ends with an empty batch, which gives the runner a chance to store the batches before it.
        """
        self._wait()
        for active in self._active:
            yield from _number_batches(active, active.collect_batches())
        for active in self._active:
            active.take_over_slots()
        self._forget_the_done()
        yield JobResult(None, Batch())

    def shut_down(self) -> Iterator[JobResult]:
        """All are asked to end at once, and given a moment for teardown."""
        for active in self._active:
            active.worker.ask_to_end()
        deadline = monotonic() + GRACE_SECONDS
        while not all(active.worker.is_done for active in self._active) and monotonic() < deadline:
            self._wait()
            for active in self._active:
                yield from _number_batches(active, active.worker.listen())
            yield JobResult(None, Batch())
        for active in self._active:
            remains = active.worker.close()
            yield from _number_batches(active, remains.batches)
            if remains.teardown is not None:
                skipped = build_skipped_teardown(remains.teardown, "the run was interrupted")
                yield JobResult(active.number, Batch(artifacts=(skipped,)))
        self._active.clear()

    def cut_off(self) -> Iterator[JobResult]:
        """All are ended where they are, without a moment for teardown; yields what they had finished."""
        for active in self._active:
            yield from _number_batches(active, active.abandon())
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


def _number_batches(active: ActiveJob, batches: Iterable[Batch]) -> Iterator[JobResult]:
    return (JobResult(active.number, batch) for batch in batches)


class ActiveJob:
    """A job under supervision: its worker, and what has come of it so far."""

    worker: SupervisedWorker

    def __init__(
        self,
        attempt: str,
        guardian: Guardian,
        failure_limit: FailureLimit,
        number: int,
        before: ActiveJob | None,
    ) -> None:
        self.number = number
        self._before = before
        """The job whose slots it takes over; None once it has all of its own."""
        self._attempt = attempt
        self._guardian = guardian
        self._failure_limit = failure_limit
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
                job,
                self._attempt,
                self._guardian,
                may_restart=self._starts < MOST_STARTS,
                withheld=self._count_withheld(),
            )
        except OSError as error:
            text = f"The worker could not be started: {error}"
            if job.is_after_death:
                yield Batch(artifacts=(build_teardown_failure(job, text),))
            else:
                yield Batch(account_of(job).stand_in_for_all(Status.HARNESS_ERROR, text))
        else:
            self.is_done = False

    def _count_withheld(self) -> int:
        """The slots that the job before it still needs."""
        return 0 if self._before is None or self._before.is_done else self._before.worker.count_busy_slots()

    def take_over_slots(self) -> None:
        if self._before is not None and not self.is_done:
            withheld = self._count_withheld()
            self.worker.withhold(withheld)
            self._before = self._before if withheld else None

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
            text = f"The worker of process {job.process} was started again: while starting, {remains.failed_start}."
            yield Batch(artifacts=(remark(job, f"restart-{self._starts}", text),))
            yield from self.begin(job)
            return
        self._starts = 0
        rest = self._waiting if self.worker.job.is_after_death else remains.job
        self._waiting = None
        if self._failure_limit.reason:
            rest = None
        if remains.teardown is not None:
            self._waiting = rest
            yield from self.begin(remains.teardown)
        elif rest is not None:
            yield from self.begin(rest)

    def _observe_batches(self, batches: list[Batch]) -> Iterator[Batch]:
        for batch in batches:
            for execution in batch.executions:
                self._failure_limit.see(execution)
            # A process is not settled by its teardown when a new one continues its job.
            yield batch if self._waiting is None else replace(batch, settled=())

    def abandon(self) -> list[Batch]:
        """What the job had produced when it was abandoned."""
        if self.is_done:
            return []
        self.is_done = True
        self.worker.ask_to_end()
        return self.worker.close().batches


def _has_gpu() -> bool:
    """Whether there is a sign of a GPU of any vendor; every Mac has one."""
    signs = ("/proc/driver/nvidia/version", "/dev/dxg", "/dev/kfd", "/dev/dri")
    return sys.platform == "darwin" or any(Path(sign).exists() for sign in signs)


def run_inline(attempt: Attempt, job: Job, stop: Callable[[], bool]) -> Iterator[Batch]:
    """Do a job in this process, which waits for it; what the job prints must not get into the results."""
    with printing_to_stderr(), contextlib.closing(attempt(job)) as batches:  # type: ignore[type-var]
        for batch in batches:
            yield batch
            if stop():
                return


class LocalSite:
    """A generator within this process, which starts its workers on this machine: each request is executed at once."""

    def __init__(self, node: str, generator: object) -> None:
        self.node = node
        self._generator = generator

    def request(self, method: str, *arguments: object) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(getattr(self._generator, method)(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future
