"""`assay validate`: report every mistake of every file at once, without running anything.

Files are planned as `assay run` would plan them, up to making each agent and scorer once, so that what passes here does not
fail there before its first execution. Python files that they load are imported.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from assay.cli.output import echo
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.text import shell_command
from assay.units import format_count

if TYPE_CHECKING:
    from assay.errors import Mistake
    from assay.pipeline.planning import Checked


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@sandbox_option
@common
def validate(session: Session, files: tuple[str, ...]) -> int:
    """Check suites, specs and agent files the way `run` reads them: keys, types, names, params, cases. Nothing runs.

    Exits with 2 if there are mistakes; warnings, such as a key of a case that looks misspelt, do not count.
    """
    # Files are checked one by one, and a mistake in one does not keep the others from being checked.
    fine, mistakes = _check_files(session, files)
    warnings = [warning for checked in fine.values() for warning in checked.warnings]
    if session.is_json:
        listed = {"mistakes": list(map(asdict, mistakes)), "warnings": list(map(asdict, warnings))}
        session.emit({"valid": not mistakes, **listed})
        return 2 if mistakes else 0
    for file, checked in fine.items() if not session.is_quiet else ():
        echo(f"{file}: valid, {checked.summary}")
    for warning in warnings:
        session.warn(str(warning))
    for mistake in mistakes:
        echo(str(mistake), err=True)
    if mistakes:
        session.say(f"{format_count(len(mistakes), 'mistake')}.")
        session.next("assay list experiments --params", "assay schema spec")
        return 2
    session.next(*_suggest(files[0], fine[files[0]].contents))
    return 0


def _suggest(file: str, contents: str) -> tuple[str, ...]:
    """Commands that can do something with a file."""
    if contents == "agents":
        return (shell_command("agent add", file),)
    if contents == "suite without agents":
        return (shell_command("run", file, options=["--agent", "NAME"]),)
    return shell_command("run", file), shell_command("run", file, options=["--dry-run"])


def _check_files(session: Session, files: tuple[str, ...]) -> tuple[dict[str, Checked], list[Mistake]]:
    """What each file holds that is fine, and the mistakes of the others."""
    from assay.errors import AssayError, Mistake, SpecError
    from assay.pipeline.planning import check

    settings = session.settings
    fine: dict[str, Checked] = {}
    mistakes: list[Mistake] = []
    for file in files:
        try:
            fine[file] = check(file, settings)
        except SpecError as error:
            mistakes += error.mistakes
        except AssayError as error:
            mistakes.append(Mistake(file, None, "", str(error)))
    return fine, mistakes
