"""`assay baseline`: runs that were given a name to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from assay.cli.session import Session, common
from assay.units import count, counted

TOLD_EVERY_SECONDS = 2.0


@click.group()
def baseline() -> None:
    """Give a run a name to compare with; use it as @NAME."""


@baseline.command("set")
@click.argument("name")
@click.argument("ref", metavar="RUN")
@common
def set_(session: Session, name: str, ref: str) -> None:
    """Call RUN by NAME."""
    from assay.pipeline.rating import set_baseline

    with session.store() as store:
        found = store.run(ref)
        rated = set_baseline(store, name, found.id, _telling(session))
    if session.is_json:
        session.emit({"baseline": name, "run_id": found.id, "rated_again": rated})
    else:
        session.say(f"@{name} is now {found.id} ({found.name}).{_rated(rated)}")
        session.next(f"assay compare @{name} last")


@baseline.command()
@click.argument("name")
@common
def delete(session: Session, name: str) -> None:
    """Take NAME away from its run; the run itself stays."""
    from assay.pipeline.rating import delete_baseline

    chosen = name.removeprefix("@")
    with session.store() as store:
        run_id, rated = delete_baseline(store, chosen, _telling(session))
    if session.is_json:
        session.emit({"deleted": chosen, "run_id": run_id, "rated_again": rated})
    else:
        session.say(f"There is no @{chosen} any more; run {run_id} stays.{_rated(rated)}")
        session.next("assay baseline list")


def _telling(session: Session) -> Callable[[int], None]:
    """A line now and then, and none where it is over in a moment."""
    told = time.monotonic()

    def tell(rated: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TOLD_EVERY_SECONDS:
            told = time.monotonic()
            session.say(f"{count(rated)} trials rated again by their new references so far")

    return tell


def _rated(trials: int) -> str:
    """Of suites that take references from the baseline."""
    return f" Rated again by their new references: {counted(trials, 'trial')}." if trials else ""


@baseline.command("list")
@common
def list_baselines(session: Session) -> None:
    """Names and the runs they stand for."""
    with session.store() as store:
        found = store.baselines()
    if session.is_json:
        session.emit(found)
        return
    for name, run_id in found.items():
        click.echo(f"@{name}  {run_id}")
    if not found:
        click.echo("No baselines.")
        session.next("assay baseline set main last")
