"""`assay runs`: list, tag and delete stored runs. `assay list runs` prints the same list.

Deleting asks first, and where no user can answer, as in a script, it wants --yes. Baselines and runs that a process is writing
are protected by the store.
"""

from __future__ import annotations

import sys

import click

from assay.cli.options import shared_option
from assay.cli.session import Session, common
from assay.text import shell_command


@click.group()
def runs() -> None:
    """List, tag or delete stored runs."""


@runs.command("list")
@shared_option("--limit", "Show at most N.", default=20, show_default=True)
@click.option("--tag", metavar="TAG", help="Only runs with this tag.")
@common
def list_runs(session: Session, limit: int, tag: str | None) -> None:
    """List the latest runs, newest first."""
    print_list(session, limit, tag)


def print_list(session: Session, limit: int = 20, tag: str | None = None) -> None:
    """The newest runs. `assay list runs` shows the same."""
    with session.store() as store:
        found = store.runs(limit=limit, tag=tag)
    if session.is_json:
        from assay.report.documents.answers import runs_document

        session.emit(runs_document(found))
        return
    from assay.report.console.run import print_runs

    print_runs(found, session.console())
    session.next(*(["assay show last", "assay report last --format html"] if found else ["assay run noop"]))


@runs.command()
@click.argument("refs", nargs=-1, required=True, metavar="RUN…")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--force",
    is_flag=True,
    help="Also delete a run that a process is still writing; that process then stops.",
)
@common
def delete(session: Session, refs: tuple[str, ...], yes: bool, force: bool) -> None:
    """Delete runs with all their data. Deleting a run in progress needs --force."""
    with session.store() as store:
        found = [store.run(ref) for ref in refs]
        # All runs are looked up before the first is deleted, so that a mistake in one name deletes nothing.
        names = ", ".join(f"{run.id} ({run.name})" for run in found)
        if not yes:
            if session.is_json or not sys.stdin.isatty():
                raise click.UsageError(f"This would delete {names}. Confirm with --yes.")
            if not click.confirm(f"Delete {names}?", err=True):
                session.say("Nothing was deleted.")
                return
        for run in found:
            store.delete(run.id, force=force)
    session.answer({"deleted": [run.id for run in found]}, f"Deleted {names}.", "assay runs list")


@runs.command()
@click.argument("ref", metavar="RUN")
@click.argument("tags", nargs=-1, required=True, metavar="TAG…")
@click.option("--remove", is_flag=True, help="Remove these tags.")
@common
def tag(session: Session, ref: str, tags: tuple[str, ...], remove: bool) -> None:
    """Add tags to a run, or remove them."""
    with session.store() as store:
        found = store.run(ref)
        now = store.tag(found.id, add=() if remove else tags, remove=tags if remove else ())
    session.answer(
        {"run_id": found.id, "tags": list(now)},
        f"{found.id}: {', '.join(now) or 'no tags'}",
        shell_command("runs list", options=["--tag", tags[0]]),
    )
