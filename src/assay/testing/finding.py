from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from assay.model import TrialReport
from assay.plugin import lookup
from assay.plugin.finding import Finding
from assay.report.documents.result import run_document
from assay.testing.samples import sample_report


class FindingContract:
    """What every finding must do. Name it; where it needs trials of its own experiment, give it some that show something."""

    finding: ClassVar[str]

    def trials(self) -> Sequence[TrialReport]:
        return sample_report().trials

    def test_it_adds_keys_to_the_result_document_and_replaces_none(self) -> None:
        common = run_document(sample_report())
        finding = self._read()
        assert not common.keys() & finding.document().keys()
        whole = run_document(replace(sample_report(), findings={"sample": finding}))
        assert whole.keys() - common.keys() == finding.document().keys()

    def test_every_format_shows_it(self, tmp_path: Path) -> None:
        report = replace(sample_report(), trials=tuple(self.trials()), findings={"sample": self._read()})
        for name in ("html", "md", "json", "junit"):
            assert lookup.find("reporters", name)().write(report, tmp_path)

    def test_every_section_has_a_title_and_charts_only_where_they_are_drawn(self) -> None:
        finding = self._read()
        assert all(section.title for section in finding.sections(with_charts=True))
        assert not [chart for section in finding.sections(with_charts=False) for chart in section.charts()]

    def test_trials_without_any_estimate_raise_nothing(self) -> None:
        finding_class = self._find()
        bare = [
            finding_class.adjust(replace(trial, estimates=(), series={}, counts={"failed": 3}, executions=()))
            for trial in self.trials()
        ]
        finding = finding_class.read(bare)
        if finding is not None:
            assert run_document(replace(sample_report(), findings={"sample": finding}))
            finding.sections(with_charts=True)

    def _find(self) -> type[Finding]:
        found: type[Finding] = lookup.find("findings", self.finding)
        return found

    def _read(self) -> Finding:
        finding_class = self._find()
        finding = finding_class.read([finding_class.adjust(trial) for trial in self.trials()])
        assert finding is not None
        return finding
