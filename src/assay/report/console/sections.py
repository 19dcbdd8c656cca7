"""Sections of a report for the terminal.

Findings and pages describe themselves as `PageSection`s (see `assay.model.page`). The terminal shows headings, answers, tables
and lists of them; charts and sections marked as details are left to the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.model.page import Cell, Lane, ListItem, PageSection, Points, Table, Timeline
from assay.report.console.screen import NARROW, bullet, join_texts, literal, new_table
from assay.report.side_by_side import rating_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

_MARKS = {
    "good": ("✓", "green"),
    "warn": ("!", "yellow"),
    "bad": ("✗", "red"),
    "unsure": ("?", "yellow"),
    "": ("·", "dim"),
}
_COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}
_LANES = ("blue", "yellow", "green", "magenta", "cyan", "red")
_WIDEST = 110
"""Maximum width of a timeline: a longer one is no easier to read."""


def print_sections(sections: Iterable[PageSection], console: Console) -> None:
    """Each with its heading, its answer and its figures; charts and details are left to the pages."""
    for section in sections:
        if not section.is_detail:
            _print_heading(section, console)
            print_blocks(section, console)
            console.print()


def _print_heading(section: PageSection, console: Console) -> None:
    subtitle = literal(f"  {section.subtitle}" if section.subtitle else "", "dim")
    chips = [literal(f"  {chip.text}", _COLOURS.get(chip.tone, "")) for chip in section.chips]
    simulated = literal("  simulated" if section.is_simulated else "", "yellow")
    console.print(join_texts(literal(section.title, "bold"), subtitle, *chips, simulated))
    if section.finding:
        console.print(literal(section.finding, _COLOURS.get(section.tone, "")))
    if any(isinstance(block, Table) and block.terminal is None for block in section.blocks):
        console.print()


def print_blocks(section: PageSection, console: Console) -> None:
    """What stands beneath the heading."""
    for block in section.blocks:
        if isinstance(block, Table):
            _print_table(block, console)
        elif isinstance(block, Points):
            print_points(block.points, console)
        elif isinstance(block, Timeline):
            _print_timeline(block, console)
        elif isinstance(block, PageSection) and not block.is_detail:
            _print_heading(block, console)
            print_blocks(block, console)
    for note in section.notes:
        console.print(literal(note, "dim"))


def print_points(points: Iterable[ListItem], console: Console) -> None:
    for point in points:
        mark, colour = _MARKS[point.tone]
        console.print(bullet(mark, str(point), colour))


def _print_table(table: Table, console: Console) -> None:
    """A table, or what stands in for it on a terminal. Minor columns are left out on a narrow one."""
    if table.terminal is not None:
        print_points(table.terminal, console)
        return
    narrow = console.width < NARROW
    columns = [place for place in range(len(table.titles)) if not (narrow and place in table.minor)]
    console.print(_rich_table(table, columns, narrow=narrow))
    if table.caption is not None:
        console.print(literal(_brief(table.caption) if narrow else table.caption.text, "dim"))
    console.print()


def _rich_table(table: Table, columns: Sequence[int], *, narrow: bool) -> RichTable:
    """Columns of figures never wrap, and their first column does: a number that is cut would be a different number."""
    rich_table = new_table()
    for place in columns:
        is_figure = place > 0 and place not in table.words
        rich_table.add_column(
            literal(table.titles[place]),
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
            overflow="fold",
        )
    for row in table.rows:
        rich_table.add_row(*(_cell(row[place], narrow=narrow) for place in columns))
    return rich_table


def _brief(cell: Cell) -> str:
    return cell.brief or cell.text


def _cell(cell: Cell, *, narrow: bool) -> Text:
    text = _brief(cell) if narrow else cell.text
    middle, bracket, ends = (text if cell.rating is None else rating_text(cell.rating)).partition(" [")
    style = "dim" if cell.tone == "quiet" else _COLOURS.get(cell.tone, "")
    note = f" {cell.note}" if cell.note else ""
    return join_texts(literal(middle, style), literal(bracket + ends + note, "dim"))


def _print_timeline(timeline: Timeline, console: Console) -> None:
    """Each lane to one scale, so that what took less time is the shorter bar."""
    names = list(dict.fromkeys(lane.name for lane in timeline.lanes))
    widest, group = max(map(len, names)), max(len(lane.group) for lane in timeline.lanes)
    room = max(20, min(console.width, _WIDEST) - group - widest - 16)
    before = None
    for lane in timeline.lanes:
        parts = (
            literal(f"{lane.group if lane.group != before else '':<{group + 1}}", "dim"),
            literal(f"{lane.name:<{widest}} "),
            literal(_draw_lane(lane, timeline.seconds, room), _LANES[names.index(lane.name) % len(_LANES)]),
            literal(f" {lane.note}" if lane.note else "", "dim"),
        )
        console.print(join_texts(*parts))
        before = lane.group
    console.print(literal(timeline.caption, "dim"))
    console.print()


def _draw_lane(lane: Lane, seconds: float, room: int) -> str:
    """A lane as characters, one for each stretch of time."""

    def cell(moment: float) -> int:
        return max(0, min(room, round(moment / seconds * room))) if seconds > 0 else 0

    cells = [" "] * room
    for bar in lane.bars:
        first, last = cell(bar.begin), cell(bar.end)
        # However short, work is seen; a wait may be too short to show.
        for place in range(first, last if bar.is_waiting else max(last, first + 1)):
            cells[min(place, room - 1)] = "░" if bar.is_waiting else "█"
    return "".join(cells)
