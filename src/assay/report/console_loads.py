"""Loads of a stored run, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Report
from assay.report.capacity import print_capacity, stored_capacity
from assay.report.load import COLUMNS, print_findings, row
from assay.report.load_findings import remarks_of
from assay.report.screen import bullet, new_table
from assay.report.stored_loads import StoredLoad, stored_loads

if TYPE_CHECKING:
    from rich.console import Console

_NARROW = 100
_LEFT_OUT = ("tokens/s", "in flight", "TTFT P50")
"""Columns that a narrow terminal has no room for."""


def print_stored_loads(report: Report, console: Console) -> None:
    loads = stored_loads(report)
    if not loads:
        return
    if (capacity := stored_capacity(report)) is not None:
        print_capacity(capacity, console)
        console.print()
    else:
        # A search for the capacity breaks the objective on purpose.
        for load in loads:
            print_findings(load.document, console, f"{load.label}: " if len(loads) > 1 else "")
    places = [place for place, name in enumerate(COLUMNS) if _is_shown(name, loads, console.width)]
    table = new_table()
    for place in places:
        table.add_column(COLUMNS[place], justify="left" if not place else "right", no_wrap=True)
    for load in loads:
        cells = row(load.label, load.document, brief=True)
        table.add_row(*(cells[place] for place in places))
    console.print(table)
    # Steps of a search are short by design, and its own warnings were printed above.
    remarked = [] if capacity is not None else loads
    for warning in dict.fromkeys(text for load in remarked for text in remarks_of(load.document)):
        console.print(bullet("!", warning, "yellow"))
    console.print()


def _is_shown(column: str, loads: Sequence[StoredLoad], width: int) -> bool:
    if column == "score":
        return any(load.document.get("quality") for load in loads)
    return width >= _NARROW or column not in _LEFT_OUT
