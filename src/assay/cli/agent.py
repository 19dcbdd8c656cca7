"""`assay agent`: register agents in the database and list the known ones.

An agent that is registered can be named in any folder that uses the database. Its options are stored as they are written,
with `${VARIABLE}` for keys, so that no secret is stored.
"""

from __future__ import annotations

from pathlib import Path

import click

from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.text import shell_command


@click.group()
def agent() -> None:
    """Register and list agents."""


@agent.command()
@click.argument("file", type=click.Path(path_type=Path))
@common
def add(session: Session, file: Path) -> None:
    """Register the agents that FILE defines under `agents:`; keys stay in the environment."""
    from assay.plugin.agent_pool import make_agent
    from assay.spec.agents import read_agents

    # Making an agent does not open it: no request is sent and no program started.
    found = read_agents(file, checks_options=True)
    # An agent that cannot be made now is not registered.
    for use in found.values():
        make_agent(use)
    with session.store() as store:
        store.register_agents(found.values())
    session.answer(
        {"registered": list(found)},
        f"Registered {', '.join(found)}.",
        shell_command("run", "SUITE", options=["--agent", next(iter(found))]),
    )


@agent.command("list")
@common
def list_agents(session: Session) -> None:
    """List the agents of the project and the database, and agent types that need no options."""
    from assay.plan.target import Registry, known_agents

    with session.store() as store:
        found = known_agents(session.settings, Registry(store.agents))
    if session.is_json:
        session.emit([{"name": use.name, "type": use.type, "version": use.version} for use in found.values()])
        return
    width = max((len(name) for name in found), default=0)
    for name, use in found.items():
        echo(f"{name:<{width}}  {use.type}  {use.version}".rstrip())
    if not found:
        echo(
            "No agents. A file that defines some: agents: [{name: fast, type: python, target: agents.py:fast}]"
        )
    session.next("assay run SUITE --agent NAME", "assay list agents")
