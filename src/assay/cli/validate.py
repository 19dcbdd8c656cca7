"""`assay validate`: every mistake of every file at once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from assay.cli.output import echo
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.errors import Mistake
    from assay.pipeline.running import Checked


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@sandbox_option
@common
def validate(session: Session, files: tuple[str, ...]) -> int:
    """Check suites, specs and agent files the way `run` reads them: keys, types, names, params, cases. Nothing runs.

    Mistakes end with exit code 2; warnings, such as a key of a case that looks misspelt, do not.
    """
    fine, mistakes = _checked(session, files)
    warnings = [warning for checked in fine.values() for warning in checked.warnings]
    if session.is_json:
        session.emit(
            {
                "valid": not mistakes,
                "mistakes": [asdict(mistake) for mistake in mistakes],
                "warnings": [asdict(warning) for warning in warnings],
            }
        )
        return 2 if mistakes else 0
    for file, checked in fine.items() if not session.is_quiet else ():
        echo(f"{file}: fine, {checked.summary}")
    for warning in warnings:
        session.warn(str(warning))
    for mistake in mistakes:
        echo(str(mistake), err=True)
    if mistakes:
        session.say(f"{len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'}.")
        session.next("assay list experiments --params", "assay schema spec")
        return 2
    session.next(shell_command("run", files[0]), shell_command("run", files[0], options=["--dry-run"]))
    return 0


def _checked(session: Session, files: tuple[str, ...]) -> tuple[dict[str, Checked], list[Mistake]]:
    """What each file holds that is fine, and the mistakes of the others."""
    from assay.errors import AssayError, Mistake, SpecError
    from assay.pipeline import running

    settings = session.settings
    fine: dict[str, Checked] = {}
    mistakes: list[Mistake] = []
    for file in files:
        try:
            fine[file] = running.check(file, settings)
        except SpecError as error:
            mistakes += error.mistakes
        except AssayError as error:
            mistakes.append(Mistake(file, None, "", str(error)))
    return fine, mistakes
