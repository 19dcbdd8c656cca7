"""Agents and suites that are known by name: what runs refer to, and what the user registered.

An agent is a row for each name and version. A suite is a row for each definition, known by its digest: runs of the same
definition share one, and one is deleted when neither a run nor the registry refers to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from assay.errors import StoreError, SuiteNotFound, format_unknown_name
from assay.model import AgentUse, AgentVersion, Suite, SuiteRef
from assay.model.codec import from_plain, to_plain
from assay.model.redaction import known_secrets, redact
from assay.store import column_values as plain
from assay.store.run_refs import newest_first
from assay.store.tables import agents, benchmarks, runs, suites
from assay.store.workspaces import is_own, workspace_of

_TURN = 0x61737362
"""The number of the advisory lock on PostgreSQL."""

Plain = dict[str, Any]
"""A definition as plain data, as it is stored."""


def digest(written: str) -> str:
    """Return a hash that is equal for equal definitions on every machine; `written` is the definition as JSON."""
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def suite_to_plain(suite: Suite) -> Plain:
    """The definition of a suite as plain data.

    Fields that were added to suites later are left out where they are empty, so that suites stored before keep their
    digest.
    """
    definition: Plain = to_plain(suite)
    if not suite.require:
        del definition["require"]
    for benchmark in definition["benchmarks"]:
        if (cleanup := benchmark.pop("cleanup")) is not None:
            benchmark["cleanup"] = cleanup
    return definition


def take_turn(connection: sa.Connection) -> None:
    """Until this transaction ends, no other begins to store, register or delete suites, or to register agents.

    A run could otherwise refer to a suite that is deleted at the same moment. SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TURN)))


def agent_ids(connection: sa.Connection, wanted: set[AgentVersion]) -> dict[AgentVersion, int]:
    """The ids of agents. Those that are not known yet are inserted, with secrets in names and versions redacted."""
    cleaned = {agent: AgentVersion(redact(agent.name), redact(agent.version)) for agent in wanted}
    statement = sa.text(
        "INSERT INTO agents (workspace_id, name, version) VALUES (:workspace, :name, :version) "
        "ON CONFLICT DO NOTHING"
    )
    # In one order everywhere: two runs that begin at once then wait for each other's agents instead of deadlocking.
    listed = sorted(set(cleaned.values()), key=lambda agent: (agent.name, agent.version))
    within = workspace_of(connection)
    values = [{"workspace": within, "name": agent.name, "version": agent.version} for agent in listed]
    connection.execute(statement, values)
    # Read back instead of RETURNING, which says nothing of rows that were there already.
    named = agents.c.name.in_({agent.name for agent in listed})
    query = sa.select(agents.c.id, agents.c.name, agents.c.version)
    found = connection.execute(query.where(agents.c.workspace_id == within, named)).all()
    ids = {AgentVersion(name, version): agent_id for agent_id, name, version in found}
    return {agent: ids[kept] for agent, kept in cleaned.items()}


def read_agent_ids(connection: sa.Connection, names: Collection[str]) -> dict[int, str]:
    """The ids of all versions of agents, and their names."""
    query = sa.select(agents.c.id, agents.c.name).where(agents.c.name.in_(list(names)))
    found = connection.execute(query.where(is_own(connection, agents)))
    return {row.id: row.name for row in found}


def register_agents(connection: sa.Connection, uses: Iterable[AgentUse]) -> None:
    """Register agents under their names; of each name only the version that was registered last has a definition."""
    by_name = {use.name: use for use in uses}
    if not by_name:
        return
    take_turn(connection)
    ids = agent_ids(connection, {AgentVersion(use.name, use.version) for use in by_name.values()})
    named = is_own(connection, agents), agents.c.name.in_(by_name)
    connection.execute(agents.update().where(*named).values(definition=None))
    for use in by_name.values():
        chosen = agents.update().where(agents.c.id == ids[AgentVersion(use.name, use.version)])
        connection.execute(chosen.values(definition=to_plain(use)))


def read_registered_agents(connection: sa.Connection) -> dict[str, AgentUse]:
    """Return the registered agents by name."""
    registered = is_own(connection, agents), agents.c.definition.is_not(None)
    query = sa.select(agents.c.definition).where(*registered).order_by(agents.c.name)
    found = [from_plain(AgentUse, definition) for definition in connection.scalars(query)]
    return {use.name: use for use in found}


def keep_suite(connection: sa.Connection, suite: Suite, created: datetime) -> int:
    """The id of a suite; inserted if this definition is not known yet."""
    take_turn(connection)
    definition = suite_to_plain(suite)
    written = plain.to_json(definition)
    _refuse_secrets(suite, written)
    key = {
        "workspace_id": workspace_of(connection),
        "name": suite.name,
        "version": suite.version,
        "hash": suite.hash,
        "digest": digest(written),
    }
    known: int | None = connection.scalar(sa.select(suites.c.id).filter_by(**key))
    if known is not None:
        return known
    row = {**key, "category": suite.category, "definition": definition, "created": created}
    # Not as values of the statement: SQLAlchemy keeps a statement, and with it a suite of many cases, for the next time.
    primary_key = connection.execute(suites.insert(), row).inserted_primary_key
    assert primary_key is not None
    _list_benchmarks(connection, int(primary_key[0]), suite)
    return int(primary_key[0])


def _refuse_secrets(suite: Suite, written: str) -> None:
    """Raise StoreError for a suite that holds a secret: it cannot be redacted, as runs are resumed and scored with it."""
    origin = known_secrets().origin_of_secret_in(written)
    if origin is not None:
        raise StoreError(
            f"The suite '{suite.name}' holds the value of the secret '{origin}', and suites are stored with their results. "
            f"Remove it from the suite, or unset '{origin}' if it is no secret."
        )


def _list_benchmarks(connection: sa.Connection, suite_id: int, suite: Suite) -> None:
    """Store which benchmarks a suite has, in their order, so that rankings need not read whole definitions to know what is
    complete."""
    listed = [
        {
            "suite_id": suite_id,
            "benchmark": benchmark.id,
            "position": place,
            "hash": benchmark.hash,
            "cases": len(benchmark.cases),
        }
        for place, benchmark in enumerate(suite.benchmarks)
    ]
    if listed:
        connection.execute(benchmarks.insert(), listed)


def register_suite(connection: sa.Connection, suite: Suite, now: datetime | None = None) -> None:
    """Make this definition the registered one of its name; the one before stays only while a run refers to it."""
    kept = keep_suite(connection, suite, now or datetime.now(UTC))
    named = sa.and_(is_own(connection, suites), suites.c.name == suite.name)
    connection.execute(suites.update().where(named).values(registered=suites.c.id == kept))
    delete_unused_suites(connection, named)


def delete_unused_suites(connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> None:
    """Delete those of the chosen suites that neither a run nor the registry refers to."""
    from assay.store import references

    is_run = sa.exists().where(runs.c.suite_id == suites.c.id)
    connection.execute(suites.delete().where(chosen, sa.not_(suites.c.registered), ~is_run))
    references.delete_orphans(connection)


def read_registered_suites(connection: sa.Connection) -> list[SuiteRef]:
    """Return the registered suites by name."""
    column = suites.c
    query = sa.select(column.name, column.version, column.category, column.hash)
    registered = query.where(is_own(connection, suites), column.registered).order_by(column.name)
    return [SuiteRef(*row) for row in connection.execute(registered)]


def read_registered_suite(connection: sa.Connection, name: str) -> Suite:
    """Return the registered suite of this name with its benchmarks and cases."""
    query = sa.select(suites.c.definition).where(
        is_own(connection, suites), suites.c.registered, suites.c.name == name
    )
    definition = connection.scalar(query)
    if definition is None:
        known = [suite.name for suite in read_registered_suites(connection)]
        raise SuiteNotFound(format_unknown_name(name, "registered suites", known))
    return from_plain(Suite, definition)


def latest_suite(connection: sa.Connection, name: str) -> Suite | None:
    """Return the suite as its latest run used it, with its benchmarks and cases; None if it never ran."""
    query = sa.select(suites.c.definition).join(runs).where(is_own(connection, suites), suites.c.name == name)
    definition = connection.scalar(query.order_by(*newest_first).limit(1))
    return definition and from_plain(Suite, definition)


def suite_of_run(connection: sa.Connection, run_id: str) -> Suite | None:
    query = sa.select(suites.c.definition).join(runs).where(runs.c.id == run_id)
    definition = connection.scalar(query)
    return definition and from_plain(Suite, definition)


def digest_of_run(connection: sa.Connection, run_id: str) -> str | None:
    """The digest of the definition of a run's suite: of two runs with the same one, the suites are equal."""
    query = sa.select(suites.c.digest).join(runs).where(runs.c.id == run_id)
    digest: str | None = connection.scalar(query)
    return digest
