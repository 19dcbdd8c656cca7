"""The options `--format` and `--out` of commands that can write their result as a page instead of printing it.

A command that has a page hands it to `show`, which writes it, prints it, or emits the JSON document instead. Formats are
checked before the command does its work, so that a misspelt one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import shared_option
from assay.cli.output import echo
from assay.cli.session import Command, Session

if TYPE_CHECKING:
    from assay.report.pages.page import Page


def page_options(command: Command) -> Command:
    """Add the options --format and --out of `assay report` to a command."""
    chosen = click.option(
        "--format",
        "formats",
        metavar="FMT,…",
        help="Write a page instead: html, md, or both, separated by a comma.",
    )
    folder = shared_option("--out", "With --format: the folder; default: the current one.")
    return chosen(folder(command))


def format_names(formats: str | None, out: Path | None) -> list[str]:
    """The formats of `--format`. Empty means that the result is printed; an unknown format is a usage error."""
    if formats is None:
        if out is not None:
            raise click.UsageError("--out is the folder for pages: also give --format html, md or both.")
        return []
    names = [name.strip() for name in formats.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--format is empty.")
    if unknown := [name for name in names if name not in ("html", "md")]:
        raise click.UsageError(f"There is no format '{unknown[0]}' here; use html or md.")
    return names


def show(
    session: Session,
    page: Callable[[], Page],
    document: Callable[[], Any],
    names: Sequence[str],
    out: Path | None,
) -> bool:
    """Write the page in the formats, else emit the document with --json, else print the page; returns whether it was printed."""
    if names:
        write(session, page(), names, out)
    elif session.is_json:
        session.emit(document())
    else:
        from assay.report.console.sections import print_page

        print_page(page(), session.console())
        return True
    return False


def write(session: Session, page: Page, names: Sequence[str], out: Path | None) -> None:
    """Write the files and name them, as `assay report` does."""
    from assay.report.pages.page import write_page

    files = write_page(page, names, out or Path())
    if session.is_json:
        session.emit({"files": list(map(str, files))})
        return
    for file in files:
        echo(str(file))
    if pages := [file for file in files if file.suffix == ".html"]:
        session.next(f"open {pages[0]} in a browser")
