"""`framework_comparison.json` and `framework_comparison.md`: seed 000's names for true figures, and facts in place of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.builtin.findings.framework import FrameworkResults
from assay.builtin.reporters.finding_files import find_finding, write_comparison
from assay.model import Report


class FrameworkFiles:
    """Writes both files; ReportError for a run without a comparison of frameworks."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        missing = (
            "compares no frameworks: the format 'framework_comparison' is for assay run framework_comparison."
        )
        found = find_finding(report, FrameworkResults, missing)
        document = found.document()["frameworks"]
        return write_comparison(
            report, found, document, folder / "framework_comparison", "Framework comparison"
        )
