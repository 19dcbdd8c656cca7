"""`assay validate`: every mistake of every file at once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from assay.cli.session import Session, common

if TYPE_CHECKING:
    from assay.errors import Mistake


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@common
def validate(session: Session, files: tuple[str, ...]) -> int:
    """Check specs as `run` would read them: keys, types, names, params. Nothing is run."""
    trials, mistakes = _checked(session, files)
    if session.is_json:
        session.emit({"valid": not mistakes, "mistakes": [asdict(mistake) for mistake in mistakes]})
        return 2 if mistakes else 0
    for file, number in trials.items():
        click.echo(f"{file}: fine, {number} {'trial' if number == 1 else 'trials'}")
    for mistake in mistakes:
        click.echo(str(mistake), err=True)
    if mistakes:
        session.say(f"{len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'}.")
        session.next("assay list experiments --params", "assay schema spec")
        return 2
    session.next(f"assay run {files[0]}", f"assay run {files[0]} --dry-run")
    return 0


def _checked(session: Session, files: tuple[str, ...]) -> tuple[dict[str, int], list[Mistake]]:
    """The number of trials of each file that is fine, and the mistakes of the others."""
    from assay import pipeline
    from assay.errors import AssayError, Mistake, SpecError

    settings = session.settings
    trials: dict[str, int] = {}
    mistakes: list[Mistake] = []
    for file in files:
        try:
            trials[file] = len(pipeline.prepare(file, settings).trials)
        except SpecError as error:
            mistakes += error.mistakes
        except AssayError as error:
            mistakes.append(Mistake(file, None, "", str(error)))
    return trials, mistakes
