"""A `Page` is the result of a command such as `assay compare` or `assay leaderboard`: a verdict, sections and warnings.

Commands build one page, and `write_page` writes it as Markdown and HTML, so that both formats show the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.errors import ReportError
from assay.model import Doubt
from assay.model.page import Cell as Cell
from assay.model.page import PageSection as PageSection
from assay.model.page import Table as Table
from assay.plugin.private_files import make_folder, write_private
from assay.report.pages.markdown_escape import text
from assay.report.pages.markdown_sections import section_markdown
from assay.report.warnings import rank_warnings, split_warnings


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
        *(section_markdown(section) for section in page.sections),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page_html(page: Page) -> str:
    """Self-contained: no request leaves the page, and nothing that a user named can run in it."""
    from assay.report.pages.gallery import Gallery
    from assay.report.pages.html import chart_parts, environment, script_and_style

    shown, others = split_warnings(page.warnings)
    gallery = Gallery()
    places = {id(chart): gallery.hang(chart) for section in page.sections for chart in section.charts()}
    common = script_and_style()
    parts, hashes = chart_parts(gallery) if places else ({}, [])
    context: Mapping[str, object] = {
        **common,
        "page": page,
        "shown_warnings": shown,
        "other_warnings": others,
        "hang": lambda chart: places[id(chart)],
        "parts": parts,
        "script_hashes": [*common["script_hashes"], *hashes],
    }
    return environment().get_template("page.html.j2").render(context)
