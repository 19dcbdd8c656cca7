"""What experiments with files or databases of their own have in common."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.outcome import Outcome, split_result


class ScratchExperiment(Experiment):
    """An experiment with a folder of its own, because processes of one trial may run side by side."""

    _scratch: Path | None = None

    def setup(self, context: ExperimentContext) -> None:
        context.run_dir.mkdir(parents=True, exist_ok=True)
        self._scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=context.run_dir))

    def teardown(self, context: ExperimentContext) -> None:
        if self._scratch:
            shutil.rmtree(self._scratch)

    @property
    def folder(self) -> Path:
        assert self._scratch is not None
        return self._scratch

    def delete_files(self, pattern: str = "*") -> None:
        for file in self.folder.glob(pattern):
            file.unlink()


class SqliteExperiment(ScratchExperiment):
    """An experiment that works on one connection to SQLite at a time."""

    time_metric: ClassVar[str]
    """The metric that is the time of an execution, without what is done before and after the work itself."""
    _connection: sqlite3.Connection | None = None

    def read(self, result: Mapping[str, float]) -> Outcome:
        outcome = split_result(result)
        outcome.seconds = outcome.measurements.get(self.time_metric)
        return outcome

    def teardown(self, context: ExperimentContext) -> None:
        self.disconnect()
        super().teardown(context)

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
