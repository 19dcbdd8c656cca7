"""`assay workspace`: parts of one database that know nothing of each other."""

from __future__ import annotations

import click

from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.text import shell_command
from assay.units import format_count


@click.group()
def workspace() -> None:
    """Create and list workspaces: separate parts of one database."""


@workspace.command()
@click.argument("name")
@common
def create(session: Session, name: str) -> None:
    """Create a workspace, with its own runs, agents, suites, baselines and keys.

    Commands work in it with --workspace NAME, ASSAY_WORKSPACE, or `workspace` under [assay] in assay.toml.
    """
    from assay.model.workspace import DEFAULT

    # Not in the chosen workspace, which may be the one that is to be created.
    with session.store(DEFAULT) as store:
        store.create_workspace(name)
    session.answer(
        {"name": name, "runs": 0, "is_chosen": name == session.workspace},
        f"The workspace '{name}' is created.",
        shell_command("runs list", options=["--workspace", name]),
        "assay workspace list",
    )


@workspace.command("list")
@common
def list_workspaces(session: Session) -> None:
    """List the workspaces of the database; a star marks the current one."""
    from assay.model.workspace import DEFAULT

    with session.store(DEFAULT) as store:
        counts = {name: sum(store.in_workspace(name).count_runs().values()) for name in store.workspaces()}
    chosen = session.workspace or DEFAULT
    if session.is_json:
        session.emit(
            [{"name": name, "runs": runs, "is_chosen": name == chosen} for name, runs in counts.items()]
        )
        return
    for name, runs in counts.items():
        echo(f"{'*' if name == chosen else ' '} {name:<20} {format_count(runs, 'run')}")
    session.next("assay workspace create NAME")
