"""A plan is carried out: jobs go to an executor, and what comes back is handed on in batches worth storing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from assay.execute.attempt import attempt
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
