"""A `Page` is the result of a command such as `assay compare` or `assay leaderboard`: a verdict, sections and warnings.

Commands build one page, and `write_page` writes it as Markdown and HTML, so that both formats show the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import ReportError
from assay.model import Doubt
from assay.model.codec import from_plain
from assay.model.page import Cell as Cell
from assay.model.page import Charts, ListItem, Points, Timeline
from assay.model.page import PageSection as PageSection
from assay.model.page import Table as Table
from assay.plugin.private_files import make_folder, write_private
from assay.report.pages.markdown_escape import table, text
from assay.report.side_by_side import rating_text
from assay.report.warnings import rank_warnings, split_warnings


@dataclass(frozen=True, slots=True)
class Page:
    """All that is written: first the answer, then the figures behind it.

    A page holds texts, figures and charts, and no markup. What a user or an agent wrote is escaped by the renderer of each
    format, so that a builder of pages cannot forget it.
    """

    title: str
    kind: str
    """The command that it comes from."""
    facts: Sequence[str] = ()
    """What was looked at: runs, sides, dates."""
    sections: Sequence[PageSection] = ()
    verdict: str = ""
    is_certain: bool = False
    """Whether the verdict names a winner, or says that nobody can tell."""
    reasons: Sequence[str] = ()
    warnings: Sequence[Doubt] = ()


_BLOCKS: Mapping[str, type[Table | Points | Charts | Timeline | PageSection]] = {
    "rows": Table,
    "points": Points,
    "charts": Charts,
    "lanes": Timeline,
    "blocks": PageSection,
}
"""Each kind of block by a field that no other has."""


def page_from_plain(data: Mapping[str, Any]) -> Page:
    """The page that `to_plain` made this of."""
    return from_plain(
        Page, {**data, "sections": [_block_from_plain(section) for section in data["sections"]]}
    )


def _block_from_plain(data: Mapping[str, Any]) -> Table | Points | Charts | Timeline | PageSection:
    # The codec leaves alone what may be of several types, and lists of lists.
    field, kind = next((name, kind) for name, kind in _BLOCKS.items() if name in data)
    if kind is PageSection:
        return from_plain(kind, {**data, field: [_block_from_plain(block) for block in data[field]]})
    if kind is Table:
        return from_plain(
            kind, {**data, field: [[from_plain(Cell, cell) for cell in row] for row in data[field]]}
        )
    return from_plain(kind, data)


def write_page(page: Page, formats: Sequence[str], folder: Path) -> list[Path]:
    """One file for each format, named after the command."""
    writers = {"html": page_html, "md": page_markdown}
    if unknown := [name for name in formats if name not in writers]:
        raise ReportError(f"There is no format '{unknown[0]}' here; use {' or '.join(writers)}.")
    # All names are checked before the first file is written: half of what was asked for would look like all of it.
    written = []
    try:
        make_folder(folder)
        for name in dict.fromkeys(formats):
            path = folder / f"{page.kind}.{name}"
            write_private(path, writers[name](page))
            written.append(path)
    except OSError as error:
        raise ReportError(f"The folder '{folder}' cannot be written: {error.strerror}.") from None
    return written


def page_markdown(page: Page) -> str:
    """The page as Markdown: title, facts, the verdict with its reasons, warnings, and the sections."""
    parts = [
        f"# {text(page.title)}",
        " · ".join(text(fact) for fact in page.facts),
        f"**{text(page.verdict)}** {' '.join(text(reason) for reason in page.reasons)}".strip()
        if page.verdict
        else "",
        "\n".join(f"> ⚠ {text(str(doubt))}  " for doubt in rank_warnings(page.warnings)),
        *(section_markdown(section) for section in page.sections),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page_html(page: Page) -> str:
    """Self-contained: no request leaves the page, and nothing that a user named can run in it."""
    from assay.report.pages.html import chart_parts, environment, script_and_style
    from assay.report.pages.html_side_by_side import Gallery

    major, others = split_warnings(page.warnings)
    gallery = Gallery()
    places = {id(chart): gallery.hang(chart) for section in page.sections for chart in section.charts()}
    common = script_and_style()
    parts, hashes = chart_parts(gallery) if places else ({}, [])
    context: Mapping[str, object] = {
        **common,
        "page": page,
        "shown_warnings": major,
        "other_warnings": others,
        "hang": lambda chart: places[id(chart)],
        "parts": parts,
        "script_hashes": [*common["script_hashes"], *hashes],
    }
    return environment().get_template("page.html.j2").render(context)


_MARKS = {"good": "✓ ", "warn": "⚠ ", "bad": "✗ ", "unsure": "? ", "": ""}


def section_markdown(section: PageSection, level: int = 2) -> str:
    """The section with all that is within it; charts are left to the page and to PNG."""
    simulated = " (simulated)" if section.is_simulated else ""
    chips = "".join(f" · {text(chip.text)}" for chip in section.chips)
    blocks = []
    for block in section.blocks:
        if isinstance(block, PageSection):
            blocks.append(section_markdown(block, level + 1))
        elif isinstance(block, Points):
            blocks.append("\n".join(map(_format_item, block.points)))
        elif isinstance(block, Table):
            blocks.append(format_table(block))
    parts = [
        f"{'#' * level} {text(section.title)}{simulated}{chips}",
        text(section.subtitle),
        f"**{text(section.finding)}**" if section.finding else "",
        "\n".join(f"> ⚠ {text(warning)}  " for warning in section.warnings),
        *blocks,
        "\n".join(f"- {text(note)}" for note in section.notes),
    ]
    return "\n\n".join(part for part in parts if part)


def _format_item(item: ListItem) -> str:
    title = f"**{text(item.title)}**{': ' if item.text else ''}" if item.title else ""
    return f"- {_MARKS[item.tone]}{title}{text(item.text)}"


def format_table(section_table: Table) -> str:
    titles = section_table.titles
    right = [number for number in range(1, len(titles)) if number not in section_table.words]
    rows = []
    for row in section_table.rows:
        texts = [text(cell.text) if cell.rating is None else rating_text(cell.rating) for cell in row]
        rows.append(
            [f"{cell_text} {text(cell.note)}".strip() for cell_text, cell in zip(texts, row, strict=True)]
        )
    table_text = table([text(title) for title in titles], rows, right)
    return (
        f"{table_text}\n\n{text(section_table.caption.text)}"
        if section_table.caption is not None
        else table_text
    )
