"""A stress test for the terminal: each scenario's score and what it rests on, then limits and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.stress import StressFinding
from assay.report.screen import NARROW, bullet, joined, literal, new_table
from assay.report.stress import COLUMNS, headline, notes, row, setting_text

if TYPE_CHECKING:
    from rich.console import Console

_LEFT_OUT_WHEN_NARROW = frozenset({2, 4, 6})
_COLOURS = {"✓": "green", "✗": "red", "!": "yellow", "?": "yellow", "·": "dim"}


def print_stress(finding: StressFinding, console: Console) -> None:
    mark = literal("  simulated", "yellow") if finding.is_simulated else literal("")
    console.print(joined(literal(headline(finding), "bold"), mark))
    console.print(literal(setting_text(finding), "dim"))
    console.print()
    if finding.scores:
        console.print(_table(finding, narrow=console.width < NARROW), "", sep="\n")
    _print_notes(finding, console)
    for title, lines in (("Limits", finding.limits), ("Recommendations", finding.recommendations)):
        if lines:
            console.print(literal(title, "bold"))
            for text in lines:
                console.print(bullet("·", text, "cyan"))
            console.print()
    for text in finding.warnings:
        console.print(bullet("!", text, "yellow"))


def _table(finding: StressFinding, *, narrow: bool) -> object:
    table = new_table()
    columns = [place for place in range(len(COLUMNS)) if not (narrow and place in _LEFT_OUT_WHEN_NARROW)]
    for place in columns:
        table.add_column(literal(COLUMNS[place]), justify="left" if not place else "right", no_wrap=True)
    by_name = {one.scenario: one for one in finding.scenarios}
    for score in finding.scores:
        cells = row(by_name[score.scenario], score)
        table.add_row(*(literal(cells[place]) for place in columns))
    return table


def _print_notes(finding: StressFinding, console: Console) -> None:
    for one in finding.scenarios:
        if one.skipped:
            console.print(literal(one.scenario, "bold"), literal(f"left out: {one.skipped}", "dim"))
            continue
        console.print(literal(one.scenario, "bold"))
        for mark, text in notes(one):
            console.print(bullet(mark, text, _COLOURS[mark]))
    console.print()
