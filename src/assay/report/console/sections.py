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
_FOLDED_NAME = 8
_LONG_FACT = 50
_SHORT_NAME = 16
"""Characters of a name that stays on one line if leaving out minor columns makes room for it."""
_MANY = 6
"""More columns fit a narrow terminal only without blanks around their cells."""


def print_page(page: Page, console: Console) -> None:
    """A page without its charts and details. The verdict comes last, next to the prompt, where it is read first."""
    # Long facts, such as the sides of a comparison, get a line each, and say what a title would.
    if max(map(len, page.facts), default=0) > _LONG_FACT:
        for fact in page.facts:
            console.print(literal(fact, "dim"))
    else:
        console.print(join_texts(literal(page.title, "bold"), literal(f"  {' · '.join(page.facts)}", "dim")))
    for place, section in enumerate(filter(_is_shown, page.sections)):
        if place:
            console.print()
        # What the verdict says, no section says before it.
        is_verdict = section.finding == f"{page.verdict}."
        _print_section(replace(section, finding="") if is_verdict else section, console)
    for doubt in rank_warnings(page.warnings):
        console.print(bullet("!", str(doubt), "yellow"))
    if page.verdict:
        console.print(bullet("=", " ".join([f"{page.verdict}.", *page.reasons[:1]]), "cyan"))
    for reason in page.reasons[1:]:
        console.print(bullet("→", reason, "cyan"))


def print_sections(sections: Iterable[PageSection], console: Console) -> None:
    """Each with its heading, its answer and its figures; charts and details are left to the pages."""
    for section in sections:
        if _is_shown(section):
            _print_section(section, console)
            console.print()


def _print_section(section: PageSection, console: Console) -> None:
    subtitle = literal(f"  {section.subtitle}" if section.subtitle else "", "dim")
    chips = [literal(f"  {chip.text}", _COLOURS.get(chip.tone, "")) for chip in section.chips]
    simulated = literal("  simulated" if section.is_simulated else "", "yellow")
    console.print(join_texts(literal(section.title, "bold"), subtitle, *chips, simulated))
    if section.finding:
        console.print(literal(section.finding, _COLOURS.get(section.tone, "")))
    print_blocks(section, console)


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
            _print_section(block, console)
        is_list = isinstance(block, Points) or (isinstance(block, Table) and block.terminal is not None)
        if not is_list and place < len(blocks):
            console.print()
    for note in section.notes:
        console.print(literal(note, "dim"))


def _is_shown(block: object) -> bool:
    if isinstance(block, PageSection):
        says = any(map(_is_shown, block.blocks)) or block.finding or block.notes
        return bool(says) and not block.is_detail
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
        if _measure(rich_table, console).minimum > console.width:
            rich_table = _rich_table(table, columns, narrow=True, folds_names=True)
    console.print(rich_table)
    if table.caption is not None:
        console.print(literal(_brief(table.caption) if narrow else table.caption.text, "dim"))


def _measure(rich_table: RichTable, console: Console) -> Measurement:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=sys.maxsize), rich_table)


def _rich_table(
    table: Table,
    columns: Sequence[int],
    *,
    narrow: bool = False,
    has_one_line: bool = False,
    folds_names: bool = False,
) -> RichTable:
    """Columns of figures never wrap: a number that is cut would be a different number. The first column wraps if its names are
    long, or with `folds_names`.

    Long titles, such as the names of sides, wrap. `has_one_line` puts the interval of a rating beside it.
    """
    rich_table = new_table(tight=narrow and len(columns) > _MANY)
    titles = table.brief_titles if narrow and table.brief_titles else table.titles
    rows = [[_cell(row[place], narrow=narrow) for place in columns] for row in table.rows]
    if has_one_line:
        rows = [
            [
                _join_lines(cell) if cells[place].rating else cell
                for place, cell in zip(columns, row, strict=True)
            ]
            for cells, row in zip(table.rows, rows, strict=True)
        ]
    for place, *cells in zip(columns, *rows, strict=True):
        is_figure = place > 0 and place not in table.words
        widest = max((line.cell_len for cell in cells for line in cell.split("\n")), default=0)
        is_name = place == 0 and widest <= _SHORT_NAME and not folds_names
        keeps_lines = is_name or (is_figure and len(titles[place]) <= _LONG)
        rich_table.add_column(
            literal(titles[place]),
            justify="right" if is_figure else "left",
            no_wrap=keeps_lines,
            # Else rich takes the longest word for what a column needs, and cuts off the rest of the line.
            min_width=widest if keeps_lines else min(widest, _FOLDED_NAME) if place == 0 else None,
            overflow="fold",
        )
    for number, row in enumerate(rows):
        if number in table.breaks:
            rich_table.add_section()
        rich_table.add_row(*row)
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
