"""`assay db`: look at, upgrade, prune, export and copy the database.

No other command changes the schema: a database of an older version is refused with the advice to upgrade it here, so that
no data are changed by a command that only reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.text import shell_command
from assay.units import count, format_count, size

if TYPE_CHECKING:
    from assay.model.database_copy import CopyProgress


@click.group()
def db() -> None:
    """Manage the database: info, upgrade, prune, export, copy."""


@db.command()
@common
def info(session: Session) -> None:
    """Show the location, schema version and size of the database, and the contents of the workspace."""
    with session.store() as store:
        facts: dict[str, Any] = store.info()
    if session.is_json:
        session.emit(facts)
        return
    for key, value in facts.items():
        if key == "rows":
            width = max(map(len, value))
            for table, rows in value.items():
                echo(f"  {table:<{width}} {count(rows):>12} {'row' if rows == 1 else 'rows'}")
        else:
            name = key.removesuffix("_bytes")
            echo(f"{name:<16} {size(value) if key == 'size_bytes' and value is not None else value}")
    session.next("assay runs list", "assay db prune --keep 100 --dry-run")


@db.command()
@common
def upgrade(session: Session) -> None:
    """Upgrade an older database to this version's schema, and rate its trials again where needed."""
    from assay.cli.suite import tell_rated
    from assay.model.workspace import DEFAULT
    from assay.pipeline.references import rate_after_upgrade
    from assay.store.store import upgrade as upgrade_store

    # The schema first, in one transaction; then what the new version stores and the old one did not is computed.
    before, after = upgrade_store(session.db or session.settings.db)
    with session.store(DEFAULT) as store:
        parts = [store.in_workspace(name) for name in store.workspaces()]
        rated = sum(rate_after_upgrade(part, tell_rated(session)) for part in parts)
    if session.is_json:
        session.emit({"from": before, "to": after, "rated_again": rated})
    else:
        session.say(
            f"Upgraded the schema from {before} to {after}."
            if before != after
            else f"The schema is up to date ({after})."
        )
        if rated:
            session.say(
                f"{format_count(rated, 'trial')} of suites rated again with the references that are now fixed."
            )
        session.next("assay db info")


@db.command()
@click.option(
    "--older-than", "days", type=click.IntRange(min=0), metavar="DAYS", help="Delete runs older than this."
)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Delete all but the latest N runs.")
@click.option("--dry-run", is_flag=True, help="Only print which runs would be deleted.")
@common
def prune(session: Session, days: int | None, keep: int | None, dry_run: bool) -> None:
    """Delete old runs of the workspace. Baselines and unfinished runs are kept."""
    if days is None and keep is None:
        raise click.UsageError("Choose what to delete: --older-than DAYS, --keep N, or both.")
    with session.store() as store:
        found = store.prune(older_than_days=days, keep=keep, dry_run=dry_run)
        place = store.workspace
    session.answer(
        {
            "deleted": [] if dry_run else found,
            "would_delete": found if dry_run else [],
            "workspace": place,
        },
        f"{'Would delete' if dry_run else 'Deleted'} {format_count(len(found), 'run')} of the workspace '{place}'"
        f"{': ' + ', '.join(found[:20]) if found else ''}.",
        "assay db info",
    )


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--run", "ref", metavar="RUN", help="Only this run.")
@common
def export(session: Session, file: Path, ref: str | None) -> None:
    """Export the workspace, or one run, to a new file. The file's extension decides the format.

    \b
    .parquet, .csv, .jsonl   a table: one row per execution, with its run, trial, agent,
                             params, scores and measurements
    .db, .sqlite, .sqlite3   a SQLite database, for --db
    """
    from assay.model.workspace import DEFAULT
    from assay.store.export import DATABASES

    with session.store() as store:
        written = store.export(file, store.run(ref).id if ref else None)
        place = store.workspace
    if session.is_json:
        session.emit({"file": str(written), "workspace": place})
    else:
        what = f"run '{ref}'" if ref else "everything"
        session.say(f"Wrote {what} of the workspace '{place}' to {written}.")
        if written.suffix in DATABASES:
            options = ["--db", f"sqlite:///{written}", *(["--workspace", place] if place != DEFAULT else [])]
            session.next(shell_command("runs list", options=options))


@db.command()
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@common
def copy(session: Session, source: str, target: str) -> None:
    """Copy all workspaces from the database SOURCE to the empty database TARGET, then compare the two.

    \b
    assay db copy sqlite:///.assay/assay.db postgresql://me@host/assay

    If the copy is interrupted, the same command completes it. Once the source has changed,
    it brings the copy up to date.
    """
    from assay.store.address import read_address
    from assay.store.copying import copy_database

    began = time.monotonic()
    copied = copy_database(source, target, _tell_copied(session))
    seconds = time.monotonic() - began
    if session.is_json:
        from assay.report.documents.answers import copy_document

        session.emit(copy_document(copied, seconds))
    else:
        session.say(
            f"Copied {format_count(copied.executions - copied.found, 'execution')} in {seconds:.1f} s"
            f"{f' ({count(copied.found)} were there already)' if copied.found else ''}. "
            f"All {count(sum(copied.rows.values()))} rows are the same on both sides."
        )
        if copied.later_runs:
            session.say(_describe_later_runs(copied.later_runs))
        session.next(shell_command("runs list", options=["--db", read_address(target).shown]))


def _describe_later_runs(runs: Sequence[str]) -> str:
    names = ", ".join(f"'{name}'" for name in runs[:3]) + ", …" * (len(runs) > 3)
    return (
        f"The copy is of the moment at which it began. Since then the source has started or continued {format_count(len(runs), 'run')} "
        f"({names}). Wait until it has ended, then repeat the command to copy the rest."
    )


def _tell_copied(session: Session) -> Callable[[CopyProgress], None]:
    """A function to call after each part of a copy. It reports progress every two seconds."""
    from assay.cli.suite import TELL_EVERY_SECONDS

    last_message = time.monotonic()

    def tell(progress: CopyProgress) -> None:
        nonlocal last_message
        if time.monotonic() - last_message >= TELL_EVERY_SECONDS:
            last_message = time.monotonic()
            amount = f"{count(progress.executions)} of {count(progress.of_executions)}"
            session.say(f"{amount} executions copied and compared")

    return tell
