"""The contract of reporters: they name every file that they write, write no others, and also cope with a run that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from assay.model import Report
from assay.plugin import lookup
from assay.testing.samples import sample_report


class ReporterContract:
    """What every reporter must do. Name it; where it writes only one kind of run, give it one."""

    reporter: ClassVar[str]

    def sample(self) -> Report:
        """The run to write; override it for a reporter that can write only runs of one experiment."""
        return sample_report()

    def test_it_names_the_files_that_it_wrote_into_the_folder(self, tmp_path: Path) -> None:
        files = self._write_report(self.sample(), tmp_path)
        assert files
        assert all(file.is_file() and file.stat().st_size for file in files)
        assert all(file.is_relative_to(tmp_path) for file in files)

    def test_it_leaves_nothing_else_there(self, tmp_path: Path) -> None:
        files = self._write_report(self.sample(), tmp_path)
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(files)

    def test_it_can_write_a_second_time(self, tmp_path: Path) -> None:
        first = self._write_report(self.sample(), tmp_path)
        assert set(self._write_report(self.sample(), tmp_path)) == set(first)

    def test_it_can_write_a_run_without_any_estimate(self, tmp_path: Path) -> None:
        report = self.sample()
        bare = [replace(t, estimates=(), series={}, counts={"failed": 3}) for t in report.trials]
        assert self._write_report(replace(report, trials=tuple(bare), axes=()), tmp_path)

    def _write_report(self, report: Report, folder: Path) -> Sequence[Path]:
        files: Sequence[Path] = lookup.find("reporters", self.reporter)().write(report, folder)
        return files
