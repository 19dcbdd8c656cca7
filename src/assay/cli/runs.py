"""`assay runs`: what is stored."""

from __future__ import annotations

import sys

import click

from assay.cli.session import Session, common
from assay.text import shell_command


@click.group()
def runs() -> None:
    """List, tag or delete stored runs."""


@runs.command("list")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Show at most N.",
)
@click.option("--tag", metavar="TAG", help="Only runs with this tag.")
@common
def list_runs(session: Session, limit: int, tag: str | None) -> None:
    """List the latest runs, newest first."""
    print_list(session, limit, tag)


def print_list(session: Session, limit: int = 20, tag: str | None = None) -> None:
    with session.store() as store:
        found = store.runs(limit=limit, tag=tag)
    if session.is_json:
        names = ("id", "name", "state", "started", "ended", "trials", "executions", "tags", "label")
        from assay.report.load_findings import worst_verdict

        session.emit(
            [
                {**{name: getattr(one, name) for name in names}, "verdict": worst_verdict(one.verdicts)}
                for one in found
            ]
        )
        return
    from assay.report.console import print_runs

    print_runs(found, session.console())
    session.next(*(["assay show last", "assay report last --format html"] if found else ["assay run noop"]))


@runs.command()
@click.argument("refs", nargs=-1, required=True, metavar="RUN…")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--force", is_flag=True, help="Also delete a run that a process is still writing; it then stops."
)
@common
def delete(session: Session, refs: tuple[str, ...], yes: bool, force: bool) -> None:
    """Delete runs with all their data. A run that is still going on is deleted only with --force."""
    with session.store() as store:
        found = [store.run(ref) for ref in refs]
        names = ", ".join(f"{one.id} ({one.name})" for one in found)
        if not (yes or _is_meant(session, names)):
            session.say("Nothing was deleted.")
            return
        for one in found:
            store.delete(one.id, force=force)
    if session.is_json:
        session.emit({"deleted": [one.id for one in found]})
    else:
        session.say(f"Deleted {names}.")
        session.next("assay runs list")


def _is_meant(session: Session, names: str) -> bool:
    if session.is_json or not sys.stdin.isatty():
        raise click.UsageError(f"This would delete {names}. Confirm with --yes.")
    return click.confirm(f"Delete {names}?", err=True)


@runs.command()
@click.argument("ref", metavar="RUN")
@click.argument("tags", nargs=-1, required=True, metavar="TAG…")
@click.option("--remove", is_flag=True, help="Take these tags away.")
@common
def tag(session: Session, ref: str, tags: tuple[str, ...], remove: bool) -> None:
    """Add tags to a run, or take them away."""
    with session.store() as store:
        found = store.run(ref)
        now = store.tag(found.id, add=() if remove else tags, remove=tags if remove else ())
    if session.is_json:
        session.emit({"run_id": found.id, "tags": list(now)})
    else:
        session.say(f"{found.id}: {', '.join(now) or 'no tags'}")
        session.next(shell_command("runs list", options=["--tag", tags[0]]))
