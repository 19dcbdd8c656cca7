"""Loads in Markdown: objectives, validity and errors first, then the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.model import Report
from assay.report.capacity import stored_capacity
from assay.report.load import COLUMNS, row, time_rows
from assay.report.load_findings import error_rows, findings_of, objective_figure, remarks_of, verdict_of
from assay.report.marking import table, text
from assay.report.stored_loads import StoredLoad, shown, stored_loads

_MARKS = {"good": "✓", "warn": "⚠", "bad": "✗"}
_MET = {True: "✓ kept", False: "✗ broken", None: "not measured"}


def load_sections(report: Report) -> str:
    """Nothing for a run without loads; of a search of the capacity the table alone, as it breaks the objective on purpose."""
    loads = stored_loads(report)
    if not loads:
        return ""
    is_search = stored_capacity(report) is not None
    has_score = any(load.document.get("quality") for load in loads)
    columns = COLUMNS if has_score else COLUMNS[:-1]
    rows = [
        [*map(text, row(load.label, load.document)[: len(columns)]), *_verdict(load, is_search)]
        for load in loads
    ]
    titles = [*columns, *([] if is_search else ["verdict"])]
    parts = ["## Load", table(titles, rows, right=range(1, len(columns)))]
    if not is_search:
        parts += [_load(load, len(loads) > 1) for load in shown(loads)]
    return "\n\n".join(part for part in parts if part)


def _verdict(load: StoredLoad, is_search: bool) -> list[str]:
    if is_search:
        return []
    verdict = verdict_of(load.document)
    return [f"{_MARKS[verdict.tone]} {verdict.text}"]


def _load(load: StoredLoad, has_heading: bool) -> str:
    document = load.document
    findings = [
        f"- {_MARKS[finding.tone]} {text(str(finding))}"
        for finding in findings_of(document)
        if not finding.is_objective
    ]
    remarks = [f"- {_MARKS['warn']} {text(remark)}" for remark in remarks_of(document)]
    parts = [
        f"### {text(load.label)}" if has_heading else "",
        _objectives(document),
        "\n".join(findings),
        _errors(document),
        "\n".join(remarks),
        table(("Time", "P50", "P90", "P95", "P99", "P99.9", "max"), time_rows(document), right=range(1, 7)),
    ]
    return "\n\n".join(part for part in parts if part)


def _objectives(document: Mapping[str, Any]) -> str:
    if not document["slo"]:
        return ""
    rows = [
        (text(one["objective"]), text(objective_figure(one)), _MET[one["met"]]) for one in document["slo"]
    ]
    return table(("Objective", "Measured, 95 % interval", "Verdict"), rows)


def _errors(document: Mapping[str, Any]) -> str:
    rows = [[text(cell) for cell in cells] for cells in error_rows(document)]
    return table(("Error", "Requests", "Share", "Reason"), rows, right=(1, 2)) if rows else ""
