"""The contract of experiments: they can be executed again and again, in the runner and in a process of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from assay.builtin.executors.local import Local
from assay.execute.attempt import attempt
from assay.model import Execution, Isolation, Job, Status
from assay.plugin import lookup
from assay.testing.samples import sample_job


class ExperimentContract:
    """What every experiment must do. Name it, and give the params of an execution that is quick."""

    experiment: ClassVar[str]
    """Its slug, or `module:Class`."""
    params: ClassVar[Mapping[str, object]] = {}

    def test_it_can_be_executed_again_and_again(self, tmp_path: Path) -> None:
        made = _executions(self._job(tmp_path, Isolation.INLINE))
        assert [execution.status for execution in made] == [Status.OK] * 3, _errors(made)

    def test_it_runs_in_a_process_of_its_own(self, tmp_path: Path) -> None:
        made = _executions(self._job(tmp_path, Isolation.PROCESS))
        assert [execution.status for execution in made] == [Status.OK] * 3, _errors(made)

    def test_it_measures_what_it_declares(self, tmp_path: Path) -> None:
        declared = getattr(lookup.find("experiments", self.experiment), "metrics", {})
        for execution in _executions(self._job(tmp_path, Isolation.INLINE)):
            assert set(declared) <= set(execution.measurements)

    def _job(self, folder: Path, isolation: Isolation) -> Job:
        return sample_job(folder, self.experiment, params=self.params, isolation=isolation)


def _executions(job: Job) -> list[Execution]:
    batches = Local(1).map(attempt, [job], lambda: False)
    return [execution for batch in batches for execution in batch.executions]


def _errors(made: list[Execution]) -> str:
    return "\n".join(execution.error or "" for execution in made)
