"""Workspaces: parts of one database that know nothing of each other.

A `Store` is bound to one of them. Its connections carry the number of the workspace as an execution option, and the functions of
the other modules ask `workspace_of` for it wherever they search by a name or list something. What they read by the id of a run or
of a trial, `Store` has looked up in its workspace before.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from assay.errors import LookupFailed, StoreError, format_unknown_name
from assay.model.workspace import DEFAULT
from assay.store.tables import (
    DEFAULT_WORKSPACE,
    environments,
    metadata,
    revision,
    runs,
    suites,
    trials,
    workspaces,
)
from assay.text import shell_command

_OPTION = "assay_workspace"
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A part of a database."""

    id: int
    name: str


DEFAULT_PLACE = Workspace(DEFAULT_WORKSPACE, DEFAULT)
"""The workspace that every database has."""


def bind(engine: sa.Engine, workspace: Workspace) -> sa.Engine:
    """Return the engine with the same pool, whose connections belong to this workspace."""
    return engine.execution_options(**{_OPTION: workspace.id})


def workspace_of(connection: sa.Connection) -> int:
    """The number of the workspace that a connection reads and writes; KeyError for one that is of none."""
    number: int = connection.get_execution_options()[_OPTION]
    return number


def is_own(connection: sa.Connection, table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row of the table belongs to the workspace of the connection."""
    own: sa.ColumnElement[bool] = table.c.workspace_id == workspace_of(connection)
    return own


def find(connection: sa.Connection, name: str) -> Workspace:
    found: int | None = connection.scalar(sa.select(workspaces.c.id).where(workspaces.c.name == name))
    if found is None:
        advice = f"Create it: {shell_command('workspace create', name)}"
        raise LookupFailed(f"{format_unknown_name(name, 'workspaces', read_names(connection))} {advice}")
    return Workspace(found, name)


def read_names(connection: sa.Connection) -> list[str]:
    """Return the names of the workspaces in the order in which they were created."""
    return list(connection.scalars(sa.select(workspaces.c.name).order_by(workspaces.c.id)))


def create(connection: sa.Connection, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"'{name}' cannot name a workspace. Use up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit."
        )
    if name in read_names(connection):
        raise StoreError(f"Workspace '{name}' already exists. Choose another name.")
    # The number is computed: PostgreSQL's own counter does not know that of the default workspace, which is written down.
    following = sa.select(sa.func.max(workspaces.c.id) + 1).scalar_subquery()
    connection.execute(workspaces.insert().values(id=following, name=name))


def own_trials(connection: sa.Connection, trial_ids: Collection[int]) -> set[int]:
    """Select those trials that belong to the workspace of the connection."""
    query = sa.select(trials.c.id).join(runs, runs.c.id == trials.c.run_id)
    chosen = trials.c.id.in_(trial_ids), is_own(connection, runs)
    return set(connection.scalars(query.where(*chosen)))


def count_rows(connection: sa.Connection) -> dict[str, int]:
    """How many rows of each table belong to the workspace of the connection."""
    within = workspace_of(connection)
    return {
        name: connection.scalars(
            sa.select(sa.func.count()).select_from(table).where(rows_of(table, within))
        ).one()
        for name, table in metadata.tables.items()
        if table is not revision
    }


def rows_of(table: sa.Table, workspace_id: int) -> sa.ColumnElement[bool]:
    """Which rows of a table belong to a workspace, by how the table refers to it."""
    if table is workspaces:
        return table.c.id == workspace_id
    if "workspace_id" in table.c:
        return table.c.workspace_id == workspace_id
    own_runs = sa.select(runs.c.id).where(runs.c.workspace_id == workspace_id)
    if "trial_id" in table.c:
        return table.c.trial_id.in_(sa.select(trials.c.id).where(trials.c.run_id.in_(own_runs)))
    if "run_id" in table.c:
        return table.c.run_id.in_(own_runs)
    if "suite_id" in table.c:
        return table.c.suite_id.in_(sa.select(suites.c.id).where(suites.c.workspace_id == workspace_id))
    assert table is environments, table.name
    return table.c.id.in_(sa.select(runs.c.environment_id).where(runs.c.workspace_id == workspace_id))
