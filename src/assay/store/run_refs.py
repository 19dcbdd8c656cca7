"""Resolves what the user wrote for a run: an id, the start of one, `last`, or `@` and the name of a baseline."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from assay.errors import RunNotFound, format_unknown_name
from assay.model.run import RERUN_TAG
from assay.store.tables import baselines, runs, tags
from assay.store.workspaces import is_own, workspace_of
from assay.text import shell_command

_SHORTEST_PREFIX = 2
_LISTED = 5

newest_first = runs.c.started.desc(), runs.c.id.desc()


def exists(connection: sa.Connection, run_id: str) -> bool:
    own = {"run": run_id, "workspace": workspace_of(connection)}
    return connection.scalar(_query_own_run(), own) is not None


@cache
def _query_own_run() -> sa.Select[tuple[str]]:
    """Asked before every read of a run: built once, as SQLAlchemy takes longer to build it than SQLite to answer it."""
    column = runs.c
    chosen = column.id == sa.bindparam("run"), column.workspace_id == sa.bindparam("workspace")
    return sa.select(column.id).where(*chosen)


def is_taken(connection: sa.Connection, run_id: str) -> bool:
    """Whether a run of any workspace has this id."""
    return connection.scalar(sa.select(runs.c.id).where(runs.c.id == run_id)) is not None


def read_baselines(connection: sa.Connection) -> dict[str, str]:
    """Return the run ids of the baselines by name."""
    query = sa.select(baselines.c.name, baselines.c.run_id).where(is_own(connection, baselines))
    return {row.name: row.run_id for row in connection.execute(query.order_by(baselines.c.name))}


def require(connection: sa.Connection, run_id: str) -> None:
    if not exists(connection, run_id):
        raise no_run(run_id)


def resolve(connection: sa.Connection, ref: str) -> str:
    """The id of the run that is meant; raises RunNotFound if there is none or more than one."""
    if ref == "last":
        return _last(connection)
    if ref.startswith("@"):
        return _baseline(connection, ref.removeprefix("@"))
    # A whole id, as programs give it, is looked up; for a part of one all ids are read.
    if exists(connection, ref):
        return ref
    if len(ref) < _SHORTEST_PREFIX:
        raise no_run(ref)
    # Not LIKE, which would take % and _ for wildcards, and in SQLite ignore case.
    matches = sa.func.substr(runs.c.id, 1, len(ref)) == ref
    query = sa.select(runs.c.id).where(matches, is_own(connection, runs)).order_by(runs.c.id)
    ids: list[str] = list(connection.scalars(query.limit(_LISTED + 1)))
    if len(ids) > 1:
        several = ", ".join(ids[:_LISTED]) + (" …" if len(ids) > _LISTED else "")
        raise RunNotFound(f"'{ref}' matches several runs ({several}). Give more of the id.")
    if not ids:
        raise no_run(ref)
    return ids[0]


def no_run(ref: str) -> RunNotFound:
    return RunNotFound(f"There is no run '{ref}'. List them: assay runs list")


def _last(connection: sa.Connection) -> str:
    """The newest run that the user started; the one that a gate makes to measure a baseline again does not count."""
    reruns = sa.select(tags.c.run_id).where(tags.c.tag == RERUN_TAG)
    query = sa.select(runs.c.id).where(runs.c.id.not_in(reruns), is_own(connection, runs))
    newest: str | None = connection.scalar(query.order_by(*newest_first).limit(1))
    if newest is None:
        raise RunNotFound("There are no runs yet. Start one: assay run SPEC")
    return newest


def _baseline(connection: sa.Connection, name: str) -> str:
    own = is_own(connection, baselines)
    run_id: str | None = connection.scalar(sa.select(baselines.c.run_id).where(own, baselines.c.name == name))
    if run_id is None:
        known = connection.scalars(sa.select(baselines.c.name).where(own))
        raise RunNotFound(
            f"{format_unknown_name(name, 'baselines', known)} Create it: {shell_command('baseline set', name, 'RUN')}"
        )
    return run_id
