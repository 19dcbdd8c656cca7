"""`framework_comparison.json` and `framework_comparison.md`: seed 000's names for true figures, and facts in place of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.builtin.findings.framework import FrameworkResults
from assay.errors import ReportError
from assay.model import Report
from assay.plugin import format_strict_json, to_json_data, write_private
from assay.report.pages.page import section_markdown


class FrameworkFiles:
    """Writes both files; ReportError for a run without a comparison of frameworks."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        found = report.findings.get("framework")
        if not isinstance(found, FrameworkResults):
            raise ReportError(
                f"Run '{report.run.id}' compares no frameworks: the format 'framework_comparison' is for assay run framework_comparison."
            )
        document = {
            "timestamp": report.run.started.isoformat(),
            "run_id": report.run.id,
            **found.document()["frameworks"],
        }
        sections = [section_markdown(section) for section in found.sections(with_charts=False)]
        data, page = folder / "framework_comparison.json", folder / "framework_comparison.md"
        write_private(data, format_strict_json(to_json_data(document), indent=2) + "\n")
        write_private(page, "# Framework comparison\n\n" + "\n\n".join(sections) + "\n")
        return [data, page]
