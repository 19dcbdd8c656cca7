"""`assay validate`: every mistake of every file at once."""

from __future__ import annotations

from typing import Any

import click

from assay.cli.session import Session, common


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@common
def validate(session: Session, files: tuple[str, ...]) -> int:
    """Check specs as `run` would read them: keys, types, names, params. Nothing is run."""
    from assay import pipeline
    from assay.errors import AssayError, Mistake, SpecError

    settings = session.settings
    mistakes: list[Mistake] = []
    plans: list[Any] = []
    for file in files:
        try:
            plans.append((file, pipeline.prepare(file, settings)))
        except SpecError as error:
            mistakes += error.mistakes
        except AssayError as error:
            mistakes.append(Mistake(file, None, "", str(error)))
    if session.is_json:
        session.emit({"valid": not mistakes, "mistakes": [_document(mistake) for mistake in mistakes]})
    else:
        for file, plan in plans:
            click.echo(f"{file}: fine, {len(plan.trials)} trials")
        for mistake in mistakes:
            click.echo(str(mistake), err=True)
        session.next(
            *(["assay run " + files[0]] if not mistakes else ["assay schema spec > spec.schema.json"])
        )
    return 2 if mistakes else 0


def _document(mistake: Any) -> dict[str, Any]:
    return {key: getattr(mistake, key) for key in ("file", "line", "key", "problem", "hint")}
