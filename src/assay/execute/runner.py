"""Executes a plan: hands jobs to an executor and passes on what comes back, in batches that are worth storing.

`carry_out` is the main loop of every run. It stores nothing itself: `pipeline/run.py` iterates over it and writes each batch
in one transaction. On the way, impossible figures are removed, and three observers see every batch: the spending against
the budget, the failure limit of each trial, and the decision of the run's question. The last two end trials by adding them
to the set `ended`, which `jobs` looks at before it gives out the next job.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from assay.execute.attempt import attempt
from assay.execute.budget import Spending
from assay.execute.early_stop import FailureLimit, failure_limit_for
from assay.execute.jobs import Assignment, jobs
from assay.model import Batch, Execution, Status, Trial
from assay.model.execution import join_batches
from assay.plugin.executor import Executor

if TYPE_CHECKING:
    from assay.execute.decision import Deciding

FLUSH_SECONDS = 0.1
FLUSH_EXECUTIONS = 2000
"""A batch is passed on after so many seconds or executions, whichever comes first: each costs a transaction."""
_NOTHING = Batch()
_NEVER_NEGATIVE = frozenset(
    ("seconds", "cpu_seconds", "ttft", "usd", "tokens", "input_tokens", "output_tokens", "rss_max_bytes")
)
"""Metrics that Assay itself gives a meaning; an experiment's own may be negative."""


def carry_out(
    assignment: Assignment,
    executor: Executor,
    stop: Callable[[], bool],
    ended: set[int],
    spending: Spending | None = None,
    deciding: Deciding | None = None,
) -> Iterator[Batch]:
    """Run what is left of the plan, yielding batches as executions end; a trial in `ended` gets no further jobs.

    This is a chain of generators, and the caller pulls. The executor draws a job from `jobs` when a worker is free, and this loop
    draws batches from the executor when the caller has stored the last one. So nothing piles up if the database is slow: the
    pipes of the workers fill, and the workers wait. Because a job is drawn so late, a trial that ends now gets no job after
    those that are already running.

    The executor asks `stop` whether the user wants to end the run. Whatever arrived before an interrupt is yielded before the
    interrupt is raised again, so that the caller stores it. There is no timer: an executor yields an empty batch now and then, and
    with it a pending batch that is old enough is passed on.
    """
    pending, failure_limit = _Pending(), _TrialFailureLimits(ended, assignment.plan.trials)
    try:
        for batch in map(check_figures, executor.map(attempt, jobs(assignment, ended), stop)):
            pending.add(batch)
            if spending is not None:
                spending.add(batch.executions)
            if stopped := failure_limit.see(batch):
                pending.add(Batch(stopped=stopped))
            if deciding is not None:
                deciding.see(batch, ended)
            if pending.is_due():
                yield pending.take()
                pending = _Pending()
    except KeyboardInterrupt:
        if not pending.is_empty:
            yield pending.take()
        raise
    if not pending.is_empty:
        yield pending.take()


def check_figures(batch: Batch) -> Batch:
    """The batch without impossible figures: an execution that has one becomes invalid, and the figure is in no statistic.

    Python agents and experiments are trusted code, but accidents happen: a test helper that replaces the clock, a library
    that reports minus one token.
    """
    if all(_is_sound(execution.measurements) for execution in batch.executions):
        return batch
    return replace(batch, executions=tuple(map(_without_impossible, batch.executions)))


def _is_sound(measurements: Mapping[str, float]) -> bool:
    # Every execution passes here, and nearly all have only finite floats that are not negative.
    for name, value in measurements.items():
        if not (type(value) is float and 0.0 <= value < math.inf) and not _is_possible(name, value):
            return False
    return True


def _is_possible(name: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return value >= 0 or name not in _NEVER_NEGATIVE


def _without_impossible(execution: Execution) -> Execution:
    wrong = {n: value for n, value in execution.measurements.items() if not _is_possible(n, value)}
    if not wrong:
        return execution
    figures = ", ".join(f"{name} is {value!r}" for name, value in wrong.items())
    return replace(
        execution,
        status=Status.INVALID_OUTPUT if execution.status is Status.OK else execution.status,
        measurements={name: value for name, value in execution.measurements.items() if name not in wrong},
        error=execution.error or f"invalid measurements: {figures}",
    )


class _TrialFailureLimits:
    """Counts the failures of each trial across its processes, and notes the trials that have ended."""

    def __init__(self, ended: set[int], trials: Sequence[Trial]) -> None:
        self._ended = ended
        self._trials = {trial.index: trial for trial in trials}
        self._limits: dict[int, FailureLimit] = {}

    def see(self, batch: Batch) -> dict[int, str]:
        """The trials that are to be stopped, and why.

        A trial where only the harness failed has ended too, but is not stopped for good: it can be resumed.
        """
        stopped: dict[int, str] = {}
        self._ended.update(batch.stopped)
        for execution in batch.executions:
            if execution.trial not in self._limits:
                trial = self._trials[execution.trial]
                is_suite = trial.agent_use is not None
                self._limits[execution.trial] = failure_limit_for(trial.experiment, is_suite=is_suite)
            reason = self._limits[execution.trial].see(execution)
            if reason and execution.trial not in self._ended:
                self._ended.add(execution.trial)
                if execution.status.is_settled:
                    stopped[execution.trial] = reason
        return stopped


class _Pending:
    """What has arrived from the workers, collected until it is worth a transaction.

    A transaction for each execution would take longer than a quick execution itself. A batch is due when
    it has many executions or when something in it has waited for a while, so that little is lost if this
    process dies. `take` returns everything in the order in which it arrived.
    """

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._executions = 0
        self._since = monotonic()

    def add(self, batch: Batch) -> None:
        if batch != _NOTHING:
            self._batches.append(batch)
            self._executions += len(batch.executions)

    @property
    def is_empty(self) -> bool:
        return not self._batches

    def is_due(self) -> bool:
        if self._executions >= FLUSH_EXECUTIONS:
            return True
        return monotonic() - self._since >= FLUSH_SECONDS and not self.is_empty

    def take(self) -> Batch:
        return join_batches(self._batches)
