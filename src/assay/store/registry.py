"""Agents and suites that are known by name: what runs refer to, and what an operator registered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from assay.errors import SuiteNotFound, no_such
from assay.model import Agent, AgentUse, Suite, SuiteRef
from assay.store import definitions, pruning
from assay.store.tables import DEFAULT_WORKSPACE, agents, runs, suites


def agent_ids(connection: sa.Connection, wanted: set[Agent]) -> dict[Agent, int]:
    """The ids of agents, which are written where they are not known yet."""
    statement = sa.text(
        "INSERT INTO agents (workspace_id, name, version) VALUES (:workspace, :name, :version) "
        "ON CONFLICT DO NOTHING"
    )
    # In one order everywhere: two runs that begin at once then wait for each other's agents instead of deadlocking.
    listed = sorted(wanted, key=lambda agent: (agent.name, agent.version))
    values = [
        {"workspace": DEFAULT_WORKSPACE, "name": agent.name, "version": agent.version} for agent in listed
    ]
    connection.execute(statement, values)
    named = agents.c.name.in_({agent.name for agent in wanted})
    found = connection.execute(sa.select(agents.c.id, agents.c.name, agents.c.version).where(named)).all()
    return {Agent(name, version): agent_id for agent_id, name, version in found}


def register_agents(connection: sa.Connection, uses: Iterable[AgentUse]) -> None:
    by_name = {use.name: use for use in uses}
    if not by_name:
        return
    ids = agent_ids(connection, {Agent(use.name, use.version) for use in by_name.values()})
    connection.execute(agents.update().where(agents.c.name.in_(by_name)).values(definition=None))
    for use in by_name.values():
        chosen = agents.update().where(agents.c.id == ids[Agent(use.name, use.version)])
        connection.execute(chosen.values(definition=definitions.agent_use_to_plain(use)))


def registered_agents(connection: sa.Connection) -> dict[str, AgentUse]:
    query = sa.select(agents.c.definition).where(agents.c.definition.is_not(None)).order_by(agents.c.name)
    found = map(definitions.agent_use_from, connection.scalars(query))
    return {use.name: use for use in found}


def keep_suite(connection: sa.Connection, suite: Suite, created: datetime) -> int:
    """The id of a suite, which is written where it is not known yet."""
    definition = definitions.suite_to_plain(suite)
    key = {
        "workspace_id": DEFAULT_WORKSPACE,
        "name": suite.name,
        "version": suite.version,
        "hash": suite.hash,
        "digest": definitions.digest(definition),
    }
    # Locked, here as by the insertion: until this transaction ends, nobody deletes what the run is to refer to.
    query = sa.select(suites.c.id).filter_by(**key).with_for_update(read=True, key_share=True)
    known: int | None = connection.scalar(query)
    return known or _insert_suite(
        connection, {**key, "category": suite.category, "definition": definition, "created": created}
    )


def _insert_suite(connection: sa.Connection, row: dict[str, Any]) -> int:
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    key = ["workspace_id", "name", "version", "hash", "digest"]
    statement = (
        insert(suites).values(row).on_conflict_do_update(index_elements=key, set_={"digest": row["digest"]})
    )
    suite_id: int = connection.scalars(statement.returning(suites.c.id)).one()
    return suite_id


def register_suite(connection: sa.Connection, suite: Suite, now: datetime) -> None:
    kept = keep_suite(connection, suite, now)
    named = suites.c.name == suite.name
    connection.execute(suites.update().where(named).values(registered=suites.c.id == kept))
    pruning.delete_unused_suites(connection, named)


def registered_suites(connection: sa.Connection) -> list[SuiteRef]:
    column = suites.c
    query = sa.select(column.name, column.version, column.category, column.hash).where(column.registered)
    return [SuiteRef(*row) for row in connection.execute(query.order_by(column.name))]


def registered_suite(connection: sa.Connection, name: str) -> Suite:
    query = sa.select(suites.c.definition).where(suites.c.registered, suites.c.name == name)
    definition = connection.scalar(query)
    if definition is None:
        known = [suite.name for suite in registered_suites(connection)]
        raise SuiteNotFound(no_such(name, "registered suites", known))
    return definitions.suite_from(definition)


def suite_of_run(connection: sa.Connection, run_id: str) -> Suite | None:
    query = sa.select(suites.c.definition).join(runs).where(runs.c.id == run_id)
    definition = connection.scalar(query)
    return definition and definitions.suite_from(definition)
