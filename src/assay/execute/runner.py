"""A plan is carried out: jobs go to an executor, and what comes back is handed on in batches worth storing."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from assay.execute.attempt import attempt
from assay.execute.interruption import UserInterrupt
from assay.execute.jobs import Assignment, jobs
from assay.execute.patience import Patience, patience_for
from assay.execute.result_check import check_figures
from assay.execute.spending import Spending
from assay.model import Artifact, Batch, Execution
from assay.model.execution import JobUsage
from assay.plugin.executor import Executor

if TYPE_CHECKING:
    from assay.execute.deciding import Deciding

FLUSH_SECONDS = 0.1
FLUSH_EXECUTIONS = 2000


@dataclass(slots=True)
class Interrupt:
    """Set by the first Ctrl-C, SIGTERM or SIGHUP; a second Ctrl-C is not waited for, but for what is being stored."""

    is_requested: bool = False
    _is_urgent: bool = False
    _is_storing: bool = False

    def __call__(self) -> bool:
        return self.is_requested

    def request(self, signum: int, frame: FrameType | None) -> None:
        global _last_signal
        _last_signal = signum
        if signum == signal.SIGHUP:
            _leave_terminal()
        if self.is_requested and signum == signal.SIGINT:
            if self._is_urgent or not self._is_storing:
                raise UserInterrupt
            self._is_urgent = True
        self.is_requested = True

    @contextlib.contextmanager
    def storing(self) -> Iterator[None]:
        """A second Ctrl-C takes effect afterwards, a third one at once."""
        self._is_storing = True
        try:
            yield
        finally:
            self._is_storing = False
        if self._is_urgent:
            raise UserInterrupt


_last_signal: int = signal.SIGINT
_entered: ContextVar[Interrupt | None] = ContextVar("assay_interrupt", default=None)


def carry_out(
    assignment: Assignment,
    executor: Executor,
    stop: Callable[[], bool],
    ended: set[int],
    spending: Spending | None = None,
    deciding: Deciding | None = None,
) -> Iterator[Batch]:
    """Everything the plan still wants, as it gets done; a trial that has ended gets no further jobs."""
    suites = {trial.index for trial in assignment.plan.trials if trial.agent_use is not None}
    pending, patience = _Pending(), _TrialPatience(ended, suites)
    try:
        for batch in map(check_figures, executor.map(attempt, jobs(assignment, ended), stop)):
            pending.add(batch)
            if spending is not None:
                spending.add(batch.executions)
            pending.stopped.update(patience.see(batch))
            if deciding is not None:
                deciding.see(batch, ended)
            if pending.is_due():
                yield pending.taken()
                pending = _Pending()
    except KeyboardInterrupt:
        if not pending.is_empty:
            yield pending.taken()
        raise
    if not pending.is_empty:
        yield pending.taken()


class _TrialPatience:
    """Sees the failures of a trial across its processes, and notes the trials that have ended."""

    def __init__(self, ended: set[int], suites: set[int]) -> None:
        self._ended = ended
        self._suites = suites
        self._patience: dict[int, Patience] = {}

    def see(self, batch: Batch) -> dict[int, str]:
        """The trials that are to be stopped, and why.

        A trial where only the harness failed has ended too, but is not stopped for good: it can be resumed.
        """
        stopped: dict[int, str] = {}
        self._ended.update(batch.stopped)
        for execution in batch.executions:
            if execution.trial not in self._patience:
                self._patience[execution.trial] = patience_for(is_suite=execution.trial in self._suites)
            reason = self._patience[execution.trial].see(execution)
            if reason and execution.trial not in self._ended:
                self._ended.add(execution.trial)
                if execution.status.is_settled:
                    stopped[execution.trial] = reason
        return stopped


@dataclass(slots=True)
class _Pending:
    """What has arrived, put together until it is worth a transaction."""

    executions: list[Execution] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    stopped: dict[int, str] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)
    versions: dict[int, str] = field(default_factory=dict)
    settled: list[tuple[int, int]] = field(default_factory=list)
    usage: dict[int, JobUsage] = field(default_factory=dict)
    judge_retries: Counter[int] = field(default_factory=Counter)
    since: float = field(default_factory=monotonic)

    def add(self, batch: Batch) -> None:
        self.executions += batch.executions
        self.artifacts += batch.artifacts
        self.stopped.update(batch.stopped)
        self.costs.update(batch.costs)
        self.unmeasured.update(batch.unmeasured)
        self.versions.update(batch.versions)
        self.settled += batch.settled
        for trial, used in batch.usage.items():
            self.usage[trial] = used.together_with(self.usage.get(trial, JobUsage()))
        self.judge_retries.update(batch.judge_retries)

    @property
    def is_empty(self) -> bool:
        return not (
            self.executions
            or self.artifacts
            or self.stopped
            or self.costs
            or self.unmeasured
            or self.settled
            or self.judge_retries
        )

    def is_due(self) -> bool:
        if len(self.executions) >= FLUSH_EXECUTIONS:
            return True
        return monotonic() - self.since >= FLUSH_SECONDS and not self.is_empty

    def taken(self) -> Batch:
        return Batch(
            tuple(self.executions),
            tuple(self.artifacts),
            self.stopped,
            self.costs,
            self.unmeasured,
            self.versions,
            tuple(self.settled),
            self.usage,
            self.judge_retries,
        )


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupt]:
    """While this is entered, Ctrl-C, SIGTERM and SIGHUP ask the run to end; what is finished is kept.

    SIGHUP is left alone where it is ignored, as under `nohup`: then the run is to outlive its terminal.

    Only the main thread can catch signals. A run in another thread listens to the one that the main thread has entered
    for it, if the thread was started with a copy of its context.
    """
    interrupt = _entered.get() or Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    is_bound_to_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    numbers = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if is_bound_to_terminal else []))
    before = {number: signal.signal(number, interrupt.request) for number in numbers}
    token = _entered.set(interrupt)
    try:
        yield interrupt
    finally:
        _entered.reset(token)
        for number, previous in before.items():
            signal.signal(number, previous)


def _leave_terminal() -> None:
    """Writing to a terminal that has hung up is an error: what still comes is for nobody to read."""
    import errno
    import os
    import termios

    for fd in (1, 2):
        try:
            termios.tcgetattr(fd)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, fd)
                os.close(nothing)


def interrupted_exit_code() -> int:
    """Of a command whose run was interrupted: 128 and the number of the signal, as shells have it."""
    return 128 + _last_signal
