"""Sections of a report for the terminal.

Findings and pages describe themselves as `PageSection`s (see `assay.model.page`). The terminal shows headings, answers, tables
and lists of them; charts and sections marked as details are left to the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.model.page import Cell, Charts, Lane, ListItem, PageSection, Points, Table, Timeline
from assay.report.console.screen import NARROW, bullet, join_texts, literal, new_table
from assay.report.side_by_side import rating_text
from assay.report.warnings import rank_warnings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table as RichTable
    from rich.text import Text

    from assay.report.pages.page import Page

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
_LONG = 20
_MANY = 6
"""More columns fit a narrow terminal only without blanks around their cells."""


def print_page(page: Page, console: Console) -> None:
    """A page without its charts and details. The verdict comes last, next to the prompt, where it is read first."""
    console.print(literal(page.title, "bold"))
    # Long facts, as the sides of a comparison, stand on lines of their own.
    is_long = max(map(len, page.facts), default=0) > console.width / 2
    for line in page.facts if is_long else [" · ".join(page.facts)]:
        console.print(literal(line, "dim"))
    console.print()
    # What the verdict says, no section says before it.
    sections = [
        replace(section, finding="") if section.finding == f"{page.verdict}." else section
        for section in page.sections
    ]
    print_sections(sections, console)
    for doubt in rank_warnings(page.warnings):
        console.print(bullet("!", str(doubt), "yellow"))
    if page.verdict:
        console.print(bullet("=", " ".join([f"{page.verdict}.", *page.reasons[:1]]), "cyan"))
    for reason in page.reasons[1:]:
        console.print(bullet("→", reason, "cyan"))


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
    blocks = [block for block in section.blocks if _is_shown(block)]
    for place, block in enumerate(blocks, 1):
        if isinstance(block, Table):
            print_table(block, console)
        elif isinstance(block, Points):
            print_points(block.points, console)
        elif isinstance(block, Timeline):
            _print_timeline(block, console)
        elif isinstance(block, PageSection):
            _print_heading(block, console)
            print_blocks(block, console)
        is_list = isinstance(block, Points) or (isinstance(block, Table) and block.terminal is not None)
        if not is_list and (place < len(blocks) or section.notes):
            console.print()
    for note in section.notes:
        console.print(literal(note, "dim"))


def _is_shown(block: object) -> bool:
    if isinstance(block, PageSection):
        return not block.is_detail
    return not isinstance(block, Charts) and (not isinstance(block, Table) or block.terminal != ())


def print_points(points: Iterable[ListItem], console: Console) -> None:
    for point in points:
        mark, colour = _MARKS[point.tone]
        console.print(bullet(mark, str(point), colour))


def print_table(table: Table, console: Console) -> None:
    """A table, or what stands in for it. On a narrow terminal, and where there is no room, it is brief and without minor columns."""
    if table.terminal is not None:
        print_points(table.terminal, console)
        return
    everything = range(len(table.titles))
    rich_table = _rich_table(table, everything, has_one_line=True)
    if _measure(rich_table, console).maximum > console.width:
        rich_table = _rich_table(table, everything)
    narrow = console.width < NARROW or _measure(rich_table, console).minimum > console.width
    if narrow:
        columns = [place for place in everything if place not in table.minor]
        rich_table = _rich_table(table, columns, narrow=True)
    console.print(rich_table)
    if table.caption is not None:
        console.print(literal(_brief(table.caption) if narrow else table.caption.text, "dim"))


def _measure(rich_table: RichTable, console: Console) -> Measurement:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=sys.maxsize), rich_table)


def _rich_table(
    table: Table, columns: Sequence[int], *, narrow: bool = False, has_one_line: bool = False
) -> RichTable:
    """Columns of figures never wrap, and their first column does: a number that is cut would be a different number.

    Long titles, as the names of sides, wrap. `has_one_line` puts the interval of a rating beside it.
    """
    rich_table = new_table(tight=narrow and len(columns) > _MANY)
    titles = table.brief_titles if narrow and table.brief_titles else table.titles
    for place in columns:
        is_figure = place > 0 and place not in table.words
        rich_table.add_column(
            literal(titles[place]),
            justify="right" if is_figure else "left",
            no_wrap=is_figure and len(titles[place]) <= _LONG,
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        if number in table.breaks:
            rich_table.add_section()
        cells = [_cell(row[place], narrow=narrow) for place in columns]
        if has_one_line:
            cells = [
                _join_lines(text) if row[place].rating else text
                for place, text in zip(columns, cells, strict=True)
            ]
        rich_table.add_row(*cells)
    return rich_table


def _join_lines(cell: Text) -> Text:
    from rich.text import Text

    return Text(" ").join(cell.split("\n"))


def _brief(cell: Cell) -> str:
    return cell.brief or cell.text


def _cell(cell: Cell, *, narrow: bool) -> Text:
    """A figure stands out from its interval, and a rating from all that is beside it."""
    style = "dim" if cell.tone == "quiet" else _COLOURS.get(cell.tone, "")
    if cell.rating is not None and cell.text:
        middle, *rest = re.split(r"(?=\s)", _brief(cell) if narrow else cell.text, maxsplit=1)
        return join_texts(literal(middle, f"bold {style}" if rest else style), literal("".join(rest), "dim"))
    is_brief = narrow and cell.brief
    text = cell.brief if is_brief else cell.text if cell.rating is None else rating_text(cell.rating)
    middle, bracket, ends = text.partition(" [")
    note = f" {cell.note}" if cell.note and not is_brief else ""
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
