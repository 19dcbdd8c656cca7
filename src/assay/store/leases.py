"""The lease of a run: which process may write it.

An owner holds a random token and renews its lease during the run. A process that wants to continue the run has to wait
until the lease has expired, or until the owner is known to have ended, and then puts a token of its own in the place of the
old one. Every write of an owner first renews the lease by its token, in the same transaction: an owner that was paused for so long that
another one took over finds its token gone and writes nothing more. The same statement counts the batches of the run, so
that a writer that lost its connection while it committed can tell whether that batch was stored.

Times are the database's: on PostgreSQL the server's clock, on SQLite that of this machine.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from time import monotonic
from typing import Any

import sqlalchemy as sa

from assay.errors import LeaseLost, RunInUse, StoreError
from assay.store import column_values as plain
from assay.store import processes
from assay.store import run_refs as refs
from assay.store.processes import Owner
from assay.store.tables import leases, runs

LEASE_SECONDS = 60.0
"""How long a lease lasts without being renewed."""
RENEW_SECONDS = 10.0
"""How often an owner renews its lease while it has nothing to write."""
_CLOCKS = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)",
}
# A lease outlives several missed renewals: six fit into its time, so that neither a long garbage collection nor a slow disk
# costs an owner its run. The price is that a run whose machine lost power can be resumed elsewhere only after a minute; on
# the same machine `processes.has_ended` finds out at once.
_held_here: set[str] = set()
"""Tokens of this process: a lease of ours whose token is not among them was left by a run that failed."""


class AlreadyStored(Exception):
    """The batch is in the database: only the acknowledgement was lost."""


@dataclass(slots=True)
class Lease:
    """What the owner of a run holds. It is updated as the owner writes: `renewed` on this machine's monotonic clock."""

    run_id: str
    token: str
    batches: int = 0
    """Batches that are known to be stored."""
    previous: Owner | None = None
    previous_token: str = ""
    """Whose run this was before; they may have left results in a file."""
    is_lost: bool = False
    is_released: bool = False
    renewed: float = field(default_factory=monotonic)

    @property
    def is_due(self) -> bool:
        return monotonic() - self.renewed >= RENEW_SECONDS


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lease, and when the lease ends; its text is for messages."""

    owner: Owner
    until: datetime

    def __str__(self) -> str:
        return (
            f"{_name(self.owner)}; its lease ends at {self.until:%Y-%m-%d %H:%M:%S} UTC unless it is renewed"
        )


def create_lease(connection: sa.Connection, run_id: str, owner: Owner) -> Lease:
    """The first lease of a run."""
    lease = Lease(run_id, secrets.token_hex(16))
    connection.execute(
        leases.insert().values(run_id=run_id, batches=0, **_build_lease_row(connection, lease, owner))
    )
    _held_here.add(lease.token)
    return lease


def acquire(connection: sa.Connection, run_id: str, owner: Owner) -> Lease:
    """Take a run over; raises RunInUse while another process holds its lease.

    The row of the run is locked first, then the lease is examined and replaced, all in the caller's transaction. Of two
    processes that resume one run at the same moment, exactly one gets it.
    """
    # The second process waits here, and then sees the lease of the first. SQLite needs no lock: the caller's transaction
    # began with BEGIN IMMEDIATE, so there is no other writer.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL lock_timeout = '15s'")
    connection.execute(sa.select(runs.c.id).where(runs.c.id == run_id).with_for_update())
    refuse_if_held(connection, run_id, "Wait for that process or end it, then try again.")
    row = connection.execute(sa.select(leases).where(leases.c.run_id == run_id)).one_or_none()
    if row is None:
        return create_lease(connection, run_id, owner)
    lease = Lease(run_id, secrets.token_hex(16), row.batches, _owner(row), row.token)
    # The count of batches stays: a file that the owner before left behind numbers its batches by it.
    connection.execute(
        leases.update()
        .where(leases.c.run_id == run_id, leases.c.token == row.token)
        .values(_build_lease_row(connection, lease, owner))
    )
    _held_here.add(lease.token)
    return lease


def renew(
    connection: sa.Connection, lease: Lease, *, batches: int = 0, unless_released: bool = False
) -> None:
    """Renew the lease, first thing in every transaction of the owner, and count `batches` of it as stored.

    Raises LeaseLost where another process has taken the run over, and AlreadyStored where this very batch was counted
    before: its transaction was committed, but the answer of the database was lost.
    """
    statement = _renewal(connection.dialect.name, batches, unless_released)
    held: dict[str, object] = {"held_run": lease.run_id, "held_token": lease.token}
    if batches:
        held["held_batches"] = lease.batches
    renewed = connection.execute(statement, held)
    if renewed.rowcount == 1:
        lease.renewed = monotonic()
        return
    # No row fitted. The order of these questions matters: a batch that was counted before looks like a lost lease, and a run
    # that was deleted has no lease either; only what is left means that another process has taken over.
    if batches and count_stored_batches(connection, lease) == lease.batches + batches:
        raise AlreadyStored
    if connection.scalar(sa.select(runs.c.id).where(runs.c.id == lease.run_id)) is None:
        raise refs.no_run(lease.run_id)
    lease.is_lost = True
    row = connection.execute(sa.select(leases).where(leases.c.run_id == lease.run_id)).one_or_none()
    holder = "another process" if row is None else _name(_owner(row))
    raise LeaseLost(
        f"Run '{lease.run_id}' was taken over by {holder}. "
        "This process stopped. Everything it stored before is kept."
    )


@cache
def _renewal(dialect: str, batches: int, unless_released: bool) -> sa.Update:
    """The statement that renews a lease, built once: every batch needs it.

    It is a compare-and-set. It changes the row only if run, token and (with `batches`) the count are what the owner believes
    them to be, so that whether the write may happen is decided by the database and not by what this process remembers.
    """
    now = sa.literal_column(_CLOCKS[dialect], sa.Double)
    own = [leases.c.run_id == sa.bindparam("held_run"), leases.c.token == sa.bindparam("held_token")]
    changed: dict[str, Any] = {"renewed": now, "expires": now + LEASE_SECONDS}
    if batches:
        # A transaction whose acknowledgement was lost may have counted this batch, or be about to.
        own.append(leases.c.batches == sa.bindparam("held_batches"))
        changed["batches"] = leases.c.batches + batches
    if unless_released:
        # The thread that renews in the background must not revive a lease that the main thread has just released.
        own.append(leases.c.expires > 0)
    return leases.update().where(*own).values(changed)


def release(connection: sa.Connection, lease: Lease) -> None:
    """Let the lease end now. The row stays, with its token and count, for the process that resumes the run."""
    own = leases.c.run_id == lease.run_id, leases.c.token == lease.token
    connection.execute(leases.update().where(*own).values(expires=0.0))


def forget(lease: Lease) -> None:
    """This process does not write the run any more, whether or not the database knows."""
    _held_here.discard(lease.token)


def refuse_if_held(connection: sa.Connection, run_id: str, advice: str) -> None:
    """Raise RunInUse if a process that may still be alive holds the lease of the run.

    A lease that has not expired does not count if its process is known to have ended, or if it is one of this process
    that a run left behind when it failed.
    """
    held = sa.select(leases).where(leases.c.run_id == run_id, leases.c.expires > database_time(connection))
    row = connection.execute(held).one_or_none()
    if row is None:
        return
    owner = _owner(row)
    if processes.has_ended(owner) or (processes.is_current(owner) and row.token not in _held_here):
        return
    try:
        holder = Holder(owner, plain.instant(row.expires))
    except (TypeError, ValueError, OverflowError, OSError):
        raise StoreError(
            f"The lease of run '{run_id}' is damaged: it ends at {row.expires!r}. "
            "Restore a backup of the database"
        ) from None
    raise RunInUse(f"Run '{run_id}' is being run by {holder}. {advice}")


def is_abandoned(connection: sa.Connection, run_id: str) -> bool:
    """Whether the owner of a run that did not finish holds it no longer: its process has ended, or its lease has."""
    was_granted = connection.scalar(sa.select(leases.c.run_id).where(leases.c.run_id == run_id)) is not None
    return was_granted and not is_held(connection, run_id)


def is_held(connection: sa.Connection, run_id: str) -> bool:
    """Whether a process that may still be alive holds the lease of the run."""
    held = sa.select(leases).where(leases.c.run_id == run_id, leases.c.expires > database_time(connection))
    row = connection.execute(held).one_or_none()
    return row is not None and not processes.has_ended(_owner(row))


def count_stored_batches(connection: sa.Connection, lease: Lease) -> int | None:
    """How many batches of the run are stored; None where the lease is not ours any more."""
    own = leases.c.run_id == lease.run_id, leases.c.token == lease.token
    return connection.scalar(sa.select(leases.c.batches).where(*own))


def _name(owner: Owner) -> str:
    return f"process {owner.pid} on {owner.host}"


def _build_lease_row(connection: sa.Connection, lease: Lease, owner: Owner) -> dict[str, Any]:
    """The row of an owner that takes the lease now.

    Both times come from the clock of the database, as those of all owners do.
    """
    now = database_time(connection)
    return {
        "token": lease.token,
        "host": owner.host,
        "pid": owner.pid,
        "machine": owner.machine,
        "process_started": owner.process_started,
        "folder": plain.text(owner.folder),
        "renewed": now,
        "expires": now + LEASE_SECONDS,
    }


def _owner(row: Any) -> Owner:
    return Owner(row.host, row.pid, row.machine, row.process_started, row.folder)


def database_time(connection: sa.Connection) -> sa.ColumnElement[float]:
    return sa.literal_column(_CLOCKS[connection.dialect.name], sa.Double)
