"""Sections of a report as Markdown."""

from __future__ import annotations

from assay.model.page import ListItem, PageSection, Points, Table
from assay.report.contests import rating_text
from assay.report.pages.markdown_escape import table, text

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
            blocks.append(_format_table(block))
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


def _format_table(section_table: Table) -> str:
    titles = section_table.titles
    right = [number for number in range(1, len(titles)) if number not in section_table.words]
    rows = []
    for row in section_table.rows:
        texts = [text(cell.text if cell.rating is None else rating_text(cell.rating)) for cell in row]
        rows.append([f"{shown} {text(cell.note)}".strip() for shown, cell in zip(texts, row, strict=True)])
    drawn = table([text(title) for title in titles], rows, right)
    return f"{drawn}\n\n{text(section_table.caption.text)}" if section_table.caption is not None else drawn
