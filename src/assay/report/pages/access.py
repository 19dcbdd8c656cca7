"""Keys of the server and the audit log as sections; never a secret."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assay.model.access import AuditEntry
from assay.model.page import Cell, PageSection, Table
from assay.report.figures import NOTHING

_REFUSED, _FAILED = 400, 500


def audit_section(entries: Sequence[tuple[int, AuditEntry]]) -> PageSection:
    """The newest first."""
    if not entries:
        return PageSection("Audit log", finding="Nothing has been changed or refused yet.", anchor="audit")
    rows = [
        [
            Cell(f"{entry.method} {entry.path}"),
            Cell(str(entry.status), tone=_find_tone(entry.status)),
            Cell(entry.key or NOTHING),
            Cell(entry.address or NOTHING),
            Cell(f"{entry.at:%Y-%m-%d %H:%M:%S} UTC", tone="quiet"),
        ]
        for _, entry in entries
    ]
    table = Table(["Request", "Status", "Key", "Address", "Time"], rows, words=(1, 2, 3, 4))
    note = "Changes, and requests refused for lack of a valid key. Reads are not recorded."
    return PageSection("Audit log", [table], notes=[note], anchor="audit")


def _find_tone(status: int) -> str:
    return "good" if status < _REFUSED else "warn" if status < _FAILED else "bad"


def format_day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else NOTHING
