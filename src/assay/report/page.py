"""A small page model: a verdict, sections with tables, notes and warnings; written as HTML or Markdown.

What a command finds becomes one `Page`, and every format shows the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.errors import ReportError
from assay.model import Doubt, Rating
from assay.plugin.private_files import make_folder, write_private
from assay.report.contests import rating_text
from assay.report.marking import table, text
from assay.report.warnings import rank_warnings, split_warnings


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a table: a text, or a rating, which HTML draws as a bar with its interval."""

    text: str
    rating: Rating | None = None
    tone: str = ""
    """good, bad, warn or quiet."""
    note: str = ""
    """A word beside it, as a rank or a version."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first column names, the others hold figures unless they are among `words`."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: Sequence[int] = ()
    breaks: frozenset[int] = frozenset()
    """Rows that begin a new tier, set apart from those above."""

    @property
    def bars(self) -> frozenset[int]:
        """Columns that hold ratings."""
        return frozenset(n for row in self.rows for n, cell in enumerate(row) if cell.rating is not None)


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page with a heading of its own."""

    title: str
    tables: Sequence[Table]
    subtitle: str = ""
    finding: str = ""
    """The answer in a sentence."""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """All that is written: first the answer, then the figures behind it."""

    title: str
    kind: str
    """The command that it comes from."""
    facts: Sequence[str]
    """What was looked at: runs, sides, dates."""
    verdict: str
    is_certain: bool
    """Whether the verdict names a winner, or says that nobody can tell."""
    reasons: Sequence[str]
    sections: Sequence[PageSection]
    warnings: Sequence[Doubt] = ()


def write_page(page: Page, formats: Sequence[str], folder: Path) -> list[Path]:
    """One file for each format, named after the command."""
    writers = {"html": page_html, "md": page_markdown}
    if unknown := [name for name in formats if name not in writers]:
        raise ReportError(f"There is no format '{unknown[0]}' here; there are {' and '.join(writers)}.")
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
    parts = [
        f"# {text(page.title)}",
        " · ".join(text(fact) for fact in page.facts),
        f"**{text(page.verdict)}** {' '.join(text(reason) for reason in page.reasons)}".strip()
        if page.verdict
        else "",
        "\n".join(f"> ⚠ {text(str(doubt))}  " for doubt in rank_warnings(page.warnings)),
        *(_section(section) for section in page.sections),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: PageSection) -> str:
    parts = [
        f"## {text(section.title)}",
        text(section.subtitle),
        f"**{text(section.finding)}**" if section.finding else "",
        *(_table(each) for each in section.tables),
        "\n".join(f"- {text(note)}" for note in section.notes),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(given: Table) -> str:
    right = [number for number in range(1, len(given.titles)) if number not in given.words]
    return table(
        [text(title) for title in given.titles], [[_cell(cell) for cell in row] for row in given.rows], right
    )


def _cell(cell: Cell) -> str:
    shown = text(cell.text if cell.rating is None else rating_text(cell.rating))
    return f"{shown} {text(cell.note)}".strip()


def page_html(page: Page) -> str:
    """Self-contained: no request leaves the page, and nothing that a user named can run in it."""
    from assay.report.html import environment, script_and_style

    shown, others = split_warnings(page.warnings)
    context: Mapping[str, object] = {
        "page": page,
        "shown_warnings": shown,
        "other_warnings": others,
        **script_and_style(),
    }
    return environment().get_template("page.html.j2").render(context)
