"""A stress test for the terminal: each scenario's score and what it rests on, then limits and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.stress import StressFinding
from assay.report.screen import NARROW, bullet, joined, literal, new_table
from assay.report.stress import calm_text, columns, detail_text, headline, notes, rows, setting_text

if TYPE_CHECKING:
    from rich.console import Console

_LEFT_OUT_WHEN_NARROW = frozenset({"In time", "Right in time", "P50", "Failed"})
_LEFT_OUT_FOR_QUALITY = frozenset({"Sustained", "P95", "Broke"})
"""What broke, and how much was sustained, stands beneath the table as well."""
_COLOURS = {"✓": "green", "✗": "red", "!": "yellow", "?": "yellow", "·": "dim"}


def print_stress(finding: StressFinding, console: Console) -> None:
    mark = literal("  simulated", "yellow") if finding.is_simulated else literal("")
    console.print(joined(literal(headline(finding), "bold"), mark))
    console.print(literal(setting_text(finding), "dim"))
    if told := calm_text(finding):
        console.print(literal(told, "yellow" if finding.calm_errors.failed else "dim"))
    for one in finding.calm_errors.details:
        console.print(bullet("✗", detail_text(one), "red"))
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
    names = columns(finding)
    left_out = _LEFT_OUT_WHEN_NARROW if narrow else frozenset()
    if narrow and finding.judged_by:
        left_out |= _LEFT_OUT_FOR_QUALITY
    shown = [place for place, name in enumerate(names) if name not in left_out]
    for place in shown:
        table.add_column(literal(names[place]), justify="left" if not place else "right", no_wrap=True)
    for cells in rows(finding):
        table.add_row(*(literal(cells[place]) for place in shown))
    return table


def _print_notes(finding: StressFinding, console: Console) -> None:
    scores = {score.scenario: score for score in finding.scores}
    for one in finding.scenarios:
        if one.skipped:
            console.print(literal(one.scenario, "bold"), literal(f"skipped: {one.skipped}", "dim"))
            continue
        console.print(literal(one.scenario, "bold"))
        for mark, text in notes(one, scores.get(one.scenario)):
            console.print(bullet(mark, text, _COLOURS[mark]))
    console.print()
