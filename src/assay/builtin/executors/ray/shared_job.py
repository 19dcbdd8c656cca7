"""A job during its execution on a cluster: its shares, what has arrived of each, and what is left when a node is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import monotonic

from assay.execute.attempt import remark
from assay.execute.early_stop import failure_limit_for
from assay.execute.job_progress import Account, account_of
from assay.execute.shares import cut_job
from assay.execute.wire import decode_batches
from assay.model import Batch, Job, Status
from assay.plugin import find

MOST_LOSSES = 5
"""How often in a row a share begins again without any result after its node was lost: a job that takes down its machine must
not take down all of them."""
AHEAD_SECONDS = 2.0
"""The worker of a share is started so long before the share ahead of it has a slot to spare: about what a start takes."""


class SharedJob:
    """A job and its shares: it is settled once, when all of them are; its limit of failures holds for all together."""

    def __init__(self, job: Job, workers: int) -> None:
        self.job = job
        is_local = job.agent is not None and getattr(find("agents", job.agent.type), "is_local", False)
        self._shares = cut_job(job, workers, warms_up_again=is_local)
        self._failure_limit = failure_limit_for(job.experiment, is_suite=job.agent is not None)
        self._open = 0
        self._is_exhausted = False
        self.is_stopped = False
        """Whether it has failed too often: what is left of it is not wanted."""
        self._is_settled = True

    def next_share(self) -> Job | None:
        share = None if self.is_stopped else next(self._shares, None)
        self._is_exhausted = share is None
        self._open += share is not None
        return share

    def see(self, batch: Batch) -> Batch:
        """The batch without what only the whole job can say: that it is settled."""
        for execution in batch.executions:
            self.is_stopped = bool(self._failure_limit.see(execution)) or self.is_stopped
        self.is_stopped = self.is_stopped or bool(batch.stopped)
        return replace(batch, settled=()) if batch.settled else batch

    def close_share(self, is_settled: bool) -> Iterator[Batch]:
        self._open -= 1
        self._is_settled = self._is_settled and is_settled
        if not self._open and self._is_over() and self._is_settled:
            yield Batch(settled=((self.job.trial, self.job.process),))

    def _is_over(self) -> bool:
        if not self._is_exhausted and not self.is_stopped:
            following = next(self._shares, None)
            if following is not None:
                self._shares = _put_back(following, self._shares)
            self._is_exhausted = following is None
        return self._is_exhausted or self.is_stopped


def _put_back(job: Job, others: Iterator[Job]) -> Iterator[Job]:
    yield job
    yield from others


@dataclass(slots=True)
class WorkShare:
    """A share that is, or will be, in flight; it has a new number each time it is sent, so that late results are not mixed up."""

    number: int
    job: Job
    whole: SharedJob
    after: int = 0
    """The number of the share whose slots it takes over; 0 where it has slots of its own."""
    losses: int = 0
    is_settled: bool = False
    account: Account = field(init=False)
    arrived: int = 0
    since: float = field(default_factory=monotonic)

    def __post_init__(self) -> None:
        self.account = account_of(self.job)

    @property
    def is_ending(self) -> bool:
        """Whether it will soon, at the pace so far, have nothing left to begin with."""
        left = self.account.count_due() - self.job.concurrency
        return left <= 0 or left * (monotonic() - self.since) <= AHEAD_SECONDS * self.arrived

    def is_like(self, other: WorkShare) -> bool:
        """Whether it is one of several, and needs the same of its node."""
        job, other_job = self.job, other.job
        is_part = len(job.cases) < len(self.whole.job.cases)
        return is_part and (job.concurrency, job.resources) == (other_job.concurrency, other_job.resources)

    def take_lines(self, lines: bytes) -> Iterator[Batch]:
        """The batches that a node sent, without an execution that has arrived before."""
        for batch in decode_batches(lines.splitlines()):
            new = tuple(execution for execution in batch.executions if self.account.is_asked(execution))
            for execution in new:
                self.account.take(execution)
            self.arrived += len(new)
            self.losses = 0 if new else self.losses
            self.is_settled = self.is_settled or bool(batch.settled)
            yield self.whole.see(
                replace(batch, executions=new) if len(new) < len(batch.executions) else batch
            )

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is wanted any more, though executions may be due: its worker has ended it, or its job was stopped."""
        return self.is_settled or self.whole.is_stopped

    def finish(self) -> Iterator[Batch]:
        yield from self.whole.close_share(self.is_over or self.account.is_closed())

    def note_loss(self, node: str, why: str) -> Iterator[Batch]:
        """A remark that the rest of the share moves, and why; after too many losses, its executions fail instead."""
        self.losses += 1
        text = f"Process {self.job.process} was moved to another node: node {node} was lost ({why})."
        yield Batch(artifacts=(remark(self.job, f"moved-{self.number}", text),))
        if self.losses > MOST_LOSSES and not self.account.is_closed():
            text = f"its node was lost {self.losses} times, most recently {node}: {why}"
            yield Batch(self.account.stand_in_for_all(Status.HARNESS_ERROR, text))

    def rest(self) -> Job | None:
        """What is left of it for another node; None where all has arrived."""
        rest = self.account.rest()
        # Nothing says that a case brought the node down, so the cases are asked as before.
        return replace(rest, cautious=0) if rest is not None and self.losses <= MOST_LOSSES else None

    def fail(self, why: str) -> Iterator[Batch]:
        if not self.is_over and not self.account.is_closed():
            yield Batch(self.account.stand_in_for_all(Status.HARNESS_ERROR, why))
        yield from self.finish()
