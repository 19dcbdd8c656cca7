"""The contract of executors: every job is done once, in order, and no job is drawn before a worker is free for it.

The last rule matters most to the runner, which stops handing out jobs of a trial that has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from assay.execute.attempt import attempt
from assay.execute.budget import Spending
from assay.model import Batch, Budget, InstrumentUse, Job, Limits, Status
from assay.plugin import lookup
from assay.testing.samples import COSTLY, ENDLESS, FAILING, STEADY, sample_job


class ExecutorContract:
    """What every executor must do. Name it; it is made with two workers."""

    executor: ClassVar[str]
    enforces_limits: ClassVar[bool] = True
    """False where jobs run in the runner's own process, which cannot be ended when they take too long."""

    def test_every_job_is_carried_out_once(self, tmp_path: Path) -> None:
        executions = [e for batch in self._run_jobs(_jobs(tmp_path, 3)) for e in batch.executions]
        assert sorted((e.trial, e.repetition) for e in executions) == [
            (t, r) for t in range(3) for r in range(3)
        ]
        assert {execution.status for execution in executions} == {Status.OK}

    def test_executions_of_a_job_arrive_in_their_order(self, tmp_path: Path) -> None:
        executions = [e for batch in self._run_jobs(_jobs(tmp_path, 2)) for e in batch.executions]
        for trial in range(2):
            assert [e.repetition for e in executions if e.trial == trial] == [0, 1, 2]

    def test_every_job_is_said_to_be_settled(self, tmp_path: Path) -> None:
        settled = [pair for batch in self._run_jobs(_jobs(tmp_path, 2)) for pair in batch.settled]
        assert sorted(settled) == [(0, 0), (1, 0)]

    def test_a_failure_is_a_result(self, tmp_path: Path) -> None:
        executions = [
            e for batch in self._run_jobs([sample_job(tmp_path, FAILING)]) for e in batch.executions
        ]
        assert {execution.status for execution in executions} == {Status.FAILED}

    def test_an_execution_that_takes_too_long_is_ended(self, tmp_path: Path) -> None:
        if not self.enforces_limits:
            pytest.skip("this executor cannot end an execution")
        job = replace(sample_job(tmp_path, ENDLESS, measured=1), limits=Limits(seconds=0.05))
        executions = [e for batch in self._run_jobs([job]) for e in batch.executions]
        assert [e.status for e in executions] == [Status.TIMEOUT]

    def test_an_execution_that_uses_too_much_is_over_its_limit(self, tmp_path: Path) -> None:
        job = replace(sample_job(tmp_path, COSTLY, measured=1), limits=Limits(tokens=5.0))
        executions = [e for batch in self._run_jobs([job]) for e in batch.executions]
        assert [e.status for e in executions] == [Status.OVER_LIMIT]

    def test_executions_have_the_figures_of_instruments(self, tmp_path: Path) -> None:
        job = replace(sample_job(tmp_path), instruments=(InstrumentUse("timing"), InstrumentUse("rusage")))
        executions = [e for batch in self._run_jobs([job]) for e in batch.executions]
        assert all({"count", "seconds", "user_seconds"} <= e.measurements.keys() for e in executions)

    def test_a_budget_that_is_used_up_ends_the_run_and_all_that_was_spent_is_known(
        self, tmp_path: Path
    ) -> None:
        drawn: list[Job] = []
        spending = Spending(Budget(tokens=60.0))
        jobs = [sample_job(tmp_path, COSTLY, trial=trial) for trial in range(50)]
        executor = lookup.find("executors", self.executor)(2)
        executions = 0
        for batch in executor.map(attempt, _record_drawn_jobs(jobs, drawn), lambda: spending.is_over):
            spending.add(batch.executions)
            executions += len(batch.executions)
        assert len(drawn) < 50
        assert 60.0 <= spending.tokens == 10.0 * executions

    def test_a_job_is_drawn_only_when_a_worker_is_free(self, tmp_path: Path) -> None:
        drawn: list[Job] = []
        settled = 0
        for batch in self._run_jobs(_record_drawn_jobs(_jobs(tmp_path, 5), drawn)):
            settled += len(batch.settled)
            assert len(drawn) <= settled + 2

    def test_it_draws_no_more_jobs_once_it_is_to_stop(self, tmp_path: Path) -> None:
        drawn: list[Job] = []
        seen: list[Batch] = []
        executor = lookup.find("executors", self.executor)(2)
        for batch in executor.map(
            attempt, _record_drawn_jobs(_jobs(tmp_path, 50), drawn), lambda: bool(seen)
        ):
            seen.append(batch)
        assert len(drawn) <= 2

    def _run_jobs(self, jobs: Iterator[Job] | list[Job]) -> Iterator[Batch]:
        batches: Iterator[Batch] = lookup.find("executors", self.executor)(2).map(
            attempt, jobs, lambda: False
        )
        return batches


def _jobs(folder: Path, number: int) -> list[Job]:
    return [sample_job(folder, STEADY, trial=trial) for trial in range(number)]


def _record_drawn_jobs(jobs: list[Job], drawn: list[Job]) -> Iterator[Job]:
    """The jobs one by one; each is added to `drawn` at the moment at which the executor takes it."""
    for job in jobs:
        drawn.append(job)
        yield job
