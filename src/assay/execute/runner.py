"""A plan is carried out: jobs go to an executor, and what comes back is handed on in batches worth storing."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType
from typing import Any

from assay.execute.attempt import attempt
from assay.execute.jobs import Assignment, jobs
from assay.model import Batch, Execution
from assay.plugin.executor import Executor

FLUSH_SECONDS = 0.1
FLUSH_EXECUTIONS = 2000


@dataclass(slots=True)
class Interrupt:
    """Set by the first Ctrl-C or SIGTERM; a second Ctrl-C is not waited for."""

    is_requested: bool = False

    def __call__(self) -> bool:
        return self.is_requested


def carry_out(
    assignment: Assignment, executor: Executor, interrupt: Callable[[], bool], ended: set[int]
) -> Iterator[Batch]:
    """Everything the plan still wants, as it gets done; a trial that has ended gets no further jobs."""
    pending = _Pending()
    for batch in executor.map(attempt, jobs(assignment, ended), interrupt):
        ended.update(batch.stopped)
        pending.add(batch)
        if pending.is_due():
            yield pending.taken()
    if not pending.is_empty:
        yield pending.taken()


@dataclass(slots=True)
class _Pending:
    """Batches put together until they are worth a transaction."""

    batches: list[Batch] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    since: float = field(default_factory=monotonic)

    @property
    def is_empty(self) -> bool:
        return not self.batches

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.executions += batch.executions

    def is_due(self) -> bool:
        return len(self.executions) >= FLUSH_EXECUTIONS or monotonic() - self.since >= FLUSH_SECONDS

    def taken(self) -> Batch:
        batches, self.batches = self.batches, []
        executions, self.executions = self.executions, []
        self.since = monotonic()
        return Batch(
            executions=tuple(executions),
            artifacts=tuple(a for batch in batches for a in batch.artifacts),
            stopped=_merged(batch.stopped for batch in batches),
            costs=_merged(batch.costs for batch in batches),
            unmeasured=_merged(batch.unmeasured for batch in batches),
            settled=tuple(pair for batch in batches for pair in batch.settled),
        )


def _merged(mappings: Any) -> dict[Any, Any]:
    return {key: value for mapping in mappings for key, value in mapping.items()}


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupt]:
    """While this is entered, Ctrl-C and SIGTERM ask the run to end; what is finished is kept."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def request(signum: int, frame: FrameType | None) -> None:
        if interrupt.is_requested and signum == signal.SIGINT:
            raise KeyboardInterrupt
        interrupt.is_requested = True

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
