"""Which run is meant: an id, the start of one, `last`, or `@` and the name of a baseline."""

from __future__ import annotations

import sqlalchemy as sa

from assay.errors import RunNotFound, no_such
from assay.model.run import RERUN_TAG
from assay.store.tables import baselines, runs, tags
from assay.text import shell_command

_SHORTEST_PREFIX = 2
_LISTED = 5

newest_first = runs.c.started.desc(), runs.c.id.desc()


def exists(connection: sa.Connection, run_id: str) -> bool:
    return connection.scalar(sa.select(runs.c.id).where(runs.c.id == run_id)) is not None


def require(connection: sa.Connection, run_id: str) -> None:
    if not exists(connection, run_id):
        raise no_run(run_id)


def resolve(connection: sa.Connection, ref: str) -> str:
    """The id of the one run that is meant."""
    if ref == "last":
        return _last(connection)
    if ref.startswith("@"):
        return _baseline(connection, ref.removeprefix("@"))
    query = sa.select(runs.c.id).where(_matches(ref)).order_by(runs.c.id).limit(_LISTED + 1)
    found: list[str] = list(connection.scalars(query))
    if ref in found:
        return ref
    if len(found) > 1:
        several = ", ".join(found[:_LISTED]) + (" …" if len(found) > _LISTED else "")
        raise RunNotFound(f"'{ref}' may be any of several runs ({several}). Write more of the id.")
    if not found:
        raise no_run(ref)
    return found[0]


def _matches(ref: str) -> sa.ColumnElement[bool]:
    if len(ref) < _SHORTEST_PREFIX:
        return runs.c.id == ref
    # LIKE would take % and _ for wildcards, and in SQLite ignore case.
    return sa.func.substr(runs.c.id, 1, len(ref)) == ref


def no_run(ref: str) -> RunNotFound:
    return RunNotFound(f"There is no run '{ref}'. See what there is: assay runs list")


def _last(connection: sa.Connection) -> str:
    reruns = sa.select(tags.c.run_id).where(tags.c.tag == RERUN_TAG)
    query = sa.select(runs.c.id).where(runs.c.id.not_in(reruns)).order_by(*newest_first).limit(1)
    newest: str | None = connection.scalar(query)
    if newest is None:
        raise RunNotFound("There is no run yet. Make one: assay run SPEC")
    return newest


def _baseline(connection: sa.Connection, name: str) -> str:
    run_id: str | None = connection.scalar(sa.select(baselines.c.run_id).where(baselines.c.name == name))
    if run_id is None:
        known = connection.scalars(sa.select(baselines.c.name))
        raise RunNotFound(
            f"{no_such(name, 'baselines', known)} Make one: {shell_command('baseline set', name, 'RUN')}"
        )
    return run_id
