"""Tables of a page in terminals of every width."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from assay.model.page import Cell, Table
from assay.report.console.sections import print_table

TITLES = ("Agent", "Overall", "Accuracy", "Speed", "Efficiency", "Cost", "Reliability", "Latency", "Memory")
INTERVAL = "[0.95, 0.98]"


@pytest.mark.parametrize("width", range(50, 151, 5))
def test_no_figure_is_cut_off(width: int) -> None:
    cells = [Cell(f"0.97 #1–3\n{INTERVAL}") for _ in TITLES[1:]]
    table = Table(
        TITLES, [[Cell("exact 1"), *cells], [Cell("greedy 1"), *cells]], minor=range(3, len(TITLES))
    )
    console = Console(width=width, file=StringIO())
    print_table(table, console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    intervals = [line.count(INTERVAL) for line in lines if "[" in line]
    assert intervals in ([2, 2], [8, 8])
    assert [line.count("[") for line in lines if "[" in line] == intervals
    assert any(line.startswith("greedy 1") for line in lines)
