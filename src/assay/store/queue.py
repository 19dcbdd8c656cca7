"""The queue of the server: requested runs, each claimed by one server at a time.

A row is queued, then claimed (running, or cancelling once somebody cancels it), then closed. `claim` takes the oldest waiting
row of any workspace and skips rows that another server is claiming at this moment, so servers on one database share the queue
without waiting for each other. A server renews its claims while it lives; `take_back` returns the runs of a server that has
ended, or has not renewed in time, to the queue.

A claim decides only which server starts the run. Who may write results is decided by the run's lease (`leases.py`), which the
process that executes the run holds. The two can differ: if a server stalls while its worker continues, another server may claim
the run, but cannot execute it before the worker's lease has ended.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from assay.errors import RunNotFound
from assay.model.codec import from_plain, to_plain
from assay.model.queue import OPEN, QueuedRun, QueueState
from assay.store.leases import database_time, is_held
from assay.store.processes import Owner, has_ended
from assay.store.tables import queued_runs, workspaces
from assay.store.workspaces import is_own, workspace_of

CLAIM_SECONDS = 60.0
"""After so long without a renewal, another server takes over."""
_FIELDS = [
    workspaces.c.name.label(name) if name == "workspace" else queued_runs.c[name]
    for name in QueuedRun.__dataclass_fields__
]
_queued = sa.select(*_FIELDS).join(workspaces, workspaces.c.id == queued_runs.c.workspace_id)
_CLAIMED = (QueueState.RUNNING.value, QueueState.CANCELLING.value)


def add(connection: sa.Connection, queued: QueuedRun) -> None:
    row = {**to_plain(queued), "created": queued.created, "renewed": 0.0}
    row["workspace_id"] = workspace_of(connection)
    del row["workspace"]
    connection.execute(queued_runs.insert(), row)


def read(connection: sa.Connection, run_id: str) -> QueuedRun | None:
    """Return a run of the queue; None if the run was not requested over the API."""
    query = _queued.where(is_own(connection, queued_runs), queued_runs.c.id == run_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else from_plain(QueuedRun, dict(row))


def read_open(connection: sa.Connection) -> list[QueuedRun]:
    """Return the runs that wait or are in progress, in the order of their requests."""
    return _read_open(connection, is_own(connection, queued_runs))


def read_all_open(connection: sa.Connection) -> list[QueuedRun]:
    """Return the open runs of all workspaces, because a server runs all of them."""
    return _read_open(connection, sa.true())


def _read_open(connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> list[QueuedRun]:
    query = _queued.where(chosen, queued_runs.c.state.in_([state.value for state in OPEN]))
    ordered = query.order_by(queued_runs.c.created, queued_runs.c.id)
    return [from_plain(QueuedRun, dict(row)) for row in connection.execute(ordered).mappings()]


def claim(connection: sa.Connection, owner: Owner) -> QueuedRun | None:
    """Take the run that waits longest, of whatever workspace; None if none waits."""
    oldest = (
        sa.select(queued_runs.c.id)
        .where(queued_runs.c.state == QueueState.QUEUED.value)
        .order_by(queued_runs.c.created, queued_runs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    run_id = connection.scalar(oldest)
    if run_id is None:
        return None
    taken = {
        "state": QueueState.RUNNING.value,
        "owner": to_plain(owner),
        "renewed": database_time(connection),
        "attempts": queued_runs.c.attempts + 1,
    }
    connection.execute(queued_runs.update().where(queued_runs.c.id == run_id).values(taken))
    row = connection.execute(_queued.where(queued_runs.c.id == run_id)).mappings().one()
    return from_plain(QueuedRun, dict(row))


def renew(connection: sa.Connection, run_ids: Collection[str], owner: Owner) -> set[str]:
    """Keep the claims of an owner; those of the runs that are open and its own no longer."""
    own = _lock_claims(connection, run_ids, owner)
    chosen = queued_runs.c.id.in_(own)
    connection.execute(queued_runs.update().where(chosen).values(renewed=database_time(connection)))
    is_open = queued_runs.c.id.in_(list(run_ids)), queued_runs.c.state.in_([state.value for state in OPEN])
    return set(connection.scalars(sa.select(queued_runs.c.id).where(*is_open))) - set(own)


def _lock_claims(connection: sa.Connection, run_ids: Collection[str], owner: Owner) -> list[str]:
    """Lock those of the runs that the owner has claimed, until the transaction ends."""
    chosen = queued_runs.c.id.in_(list(run_ids)), queued_runs.c.state.in_(_CLAIMED)
    query = sa.select(queued_runs.c.id, queued_runs.c.owner).where(*chosen).order_by(queued_runs.c.id)
    found = connection.execute(query.with_for_update()).all()
    return [row.id for row in found if row.owner and from_plain(Owner, row.owner) == owner]


def take_back(connection: sa.Connection) -> None:
    """Queue again what belongs to servers that are gone; what was to be cancelled is cancelled.

    A server may have stalled while its worker continues. No other process can execute a run before the lease of that worker ends.
    """
    is_stale = queued_runs.c.renewed < database_time(connection) - CLAIM_SECONDS
    query = sa.select(queued_runs.c.id, queued_runs.c.owner, is_stale.label("is_stale"))
    # What another server has locked is being renewed; to wait for it could be for good, as that server may wait for this one.
    claimed = query.where(queued_runs.c.state.in_(_CLAIMED)).with_for_update(skip_locked=True)
    for row in connection.execute(claimed).all():
        is_gone = row.is_stale or has_ended(from_plain(Owner, row.owner))
        if is_gone and not is_held(connection, row.id):
            _release(connection, [row.id])


def give_back(connection: sa.Connection, run_id: str, owner: Owner) -> None:
    """The owner no longer executes the run: it waits again, unless it was cancelled or another server has it."""
    _release(connection, _lock_claims(connection, [run_id], owner))


def _release(connection: sa.Connection, run_ids: Collection[str]) -> None:
    after = sa.case(
        (queued_runs.c.state == QueueState.CANCELLING.value, QueueState.CANCELLED.value),
        else_=QueueState.QUEUED.value,
    )
    chosen = queued_runs.c.id.in_(run_ids)
    connection.execute(queued_runs.update().where(chosen).values(state=after, owner=None))


def settle(
    connection: sa.Connection, run_id: str, state: QueueState, error: str = "", owner: Owner | None = None
) -> None:
    """Store the final state of a queued run. With an owner, only if that owner has claimed the run."""
    chosen = queued_runs.c.id == run_id, queued_runs.c.state.in_(_CLAIMED)
    if owner is None or _lock_claims(connection, [run_id], owner):
        values = {"state": state.value, "error": error, "owner": None}
        connection.execute(queued_runs.update().where(*chosen).values(values))


def cancel(connection: sa.Connection, run_id: str) -> QueuedRun:
    """A queued run is cancelled at once, a running one as soon as its server has ended it."""
    for before, after in (
        (QueueState.QUEUED, QueueState.CANCELLED),
        (QueueState.RUNNING, QueueState.CANCELLING),
    ):
        chosen = (
            is_own(connection, queued_runs),
            queued_runs.c.id == run_id,
            queued_runs.c.state == before.value,
        )
        if connection.execute(queued_runs.update().where(*chosen).values(state=after.value)).rowcount:
            break
    return require(connection, run_id)


def requeue(connection: sa.Connection, run_id: str) -> QueuedRun:
    """A run that has come to its end waits again, to be gone on with; an open one stays as it is."""
    is_over = queued_runs.c.state.not_in([state.value for state in OPEN])
    connection.execute(
        queued_runs.update()
        .where(is_own(connection, queued_runs), queued_runs.c.id == run_id, is_over)
        .values(state=QueueState.QUEUED.value, error="", attempts=0, owner=None)
    )
    return require(connection, run_id)


def require(connection: sa.Connection, run_id: str) -> QueuedRun:
    found = read(connection, run_id)
    if found is None:
        raise RunNotFound(f"No run '{run_id}' was asked for over the API.")
    return found
