"""Writes the reference pages from the code; with --check, says which are out of date and exits with 1."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from pages import (
    NOTE,
    Undocumented,
    agents_page,
    api_page,
    experiments_page,
    metrics_page,
    scorers_page,
    spec_page,
    suite_page,
)
from rest import rest_page

from assay import errors
from assay.cli.main import COMMANDS, assay

FOLDER = Path(__file__).parent / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "spec.md": spec_page,
    "suites.md": suite_page,
    "agents.md": agents_page,
    "scorers.md": scorers_page,
    "experiments.md": experiments_page,
    "metrics.md": metrics_page,
    "python.md": api_page,
    "rest.md": rest_page,
}


def main() -> int:
    try:
        pages = {name: page() for name, page in PAGES.items()}
    except Undocumented as error:
        print(error)
        return 1
    pages |= {"cli.md": cli_page(), "errors.md": errors_page()}
    if "--check" in sys.argv:
        stale = [name for name, text in pages.items() if not _is_current(FOLDER / name, text)]
        for name in stale:
            print(f"docs/reference/{name} is out of date: make docs")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def cli_page() -> str:
    return NOTE + "\n# Command line\n\n" + "\n".join(_command_sections())


def _command_sections() -> Iterator[str]:
    root = click.Context(assay, info_name="assay")
    for name in COMMANDS:
        command = assay.get_command(root, name)
        assert command is not None
        yield from _sections(command, click.Context(command, info_name=name, parent=root))


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _sections(inner, click.Context(inner, info_name=name, parent=context))
        return
    context.max_content_width = 110
    context.terminal_width = 110
    usage = command.get_help(context).replace("Usage: ", "", 1)
    yield f"## {context.command_path}\n\n```text\n{usage}\n```\n"


def errors_page() -> str:
    tree = inspect.getdoc(errors) or ""
    codes = (
        "A user's mistake ends a command with one message and exit code 2. An internal error, which is a bug in Assay or in a "
        "plug-in, ends it with\nexit code 3, a traceback and what to report; it says nothing about what was measured. "
        "With `--json`, standard output is then empty\nand the message is on standard error."
    )
    return f"{NOTE}\n# Errors\n\n{codes}\n\n```text\n{tree}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
