"""What reporters of one finding share: they find it in the report, and write JSON and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from assay.errors import ReportError
from assay.model import Report
from assay.plugin import Finding, format_strict_json, make_folder, to_json_data, write_private
from assay.report.pages.page import section_markdown

F = TypeVar("F", bound=Finding)


def find_finding(report: Report, kind: type[F], missing: str) -> F:
    """The finding of that class; `missing` ends the message for a run without one."""
    for finding in report.findings.values():
        if isinstance(finding, kind):
            return finding
    raise ReportError(f"Run '{report.run.id}' {missing}")


def write_comparison(
    report: Report, found: Finding, document: Mapping[str, Any], base: Path, title: str
) -> list[Path]:
    """Write the document with the facts of the run as JSON, and the sections of the finding as Markdown."""
    sections = [section_markdown(section) for section in found.sections(with_charts=False)]
    facts = {"timestamp": report.run.started.isoformat(), "run_id": report.run.id}
    return [
        write_json(base.with_suffix(".json"), {**facts, **document}),
        write_text(base.with_suffix(".md"), "\n\n".join([f"# {title}", *sections]) + "\n"),
    ]


def write_json(path: Path, document: object) -> Path:
    return write_text(path, format_strict_json(to_json_data(document), indent=2) + "\n")


def write_text(path: Path, text: str) -> Path:
    make_folder(path.parent)
    write_private(path, text)
    return path
