"""`assay baseline`: name runs to compare later runs with.

A baseline is nothing but a name for a run: `@NAME` stands for its id in every command, and pruning keeps the run. A gate without
`--baseline` takes the one called `main`. Giving the name to another run changes what later gates compare with, and nothing else.
"""

from __future__ import annotations

import click

from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.text import shell_command


@click.group()
def baseline() -> None:
    """Name a run to compare later runs with. Use the name as @NAME."""


@baseline.command("set")
@click.argument("name")
@click.argument("ref", metavar="RUN")
@common
def set_(session: Session, name: str, ref: str) -> None:
    """Save RUN as the baseline NAME. Ratings do not depend on baselines."""
    from assay.pipeline.baselines import name_baseline

    with session.store() as store:
        found = name_baseline(store, name, ref)
    session.answer(
        {"baseline": name, "run_id": found.id, "rated_again": 0},
        f"@{name} is now {found.id} ({found.name}).",
        shell_command("compare", f"@{name}", "last"),
    )


@baseline.command()
@click.argument("name")
@common
def delete(session: Session, name: str) -> None:
    """Delete the baseline NAME. Its run is kept."""
    chosen = name.removeprefix("@")
    with session.store() as store:
        run_id = store.delete_baseline(chosen)
    session.answer(
        {"deleted": chosen, "run_id": run_id, "rated_again": 0},
        f"Deleted @{chosen}. Run {run_id} is kept.",
        "assay baseline list",
    )


@baseline.command("list")
@common
def list_baselines(session: Session) -> None:
    """List baselines and their runs."""
    with session.store() as store:
        found = store.baselines()
    if session.is_json:
        session.emit(found)
        return
    for name, run_id in found.items():
        echo(f"@{name}  {run_id}")
    if not found:
        echo("No baselines.")
        session.next("assay baseline set main last")
