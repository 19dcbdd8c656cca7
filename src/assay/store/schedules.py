"""Schedules: when each suite is due next, and what was started for the times that came.

A time is taken by moving `due` on, in the transaction that queues the runs for it. A server that comes second, or one that
was started again, finds the time gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sqlalchemy as sa

from assay.model.codec import from_plain
from assay.model.queue import QueuedRun, QueueState
from assay.model.schedule import ScheduledRun, SuiteSchedule
from assay.store import queue
from assay.store.tables import queued_runs, runs, scheduled_runs, schedules, suites
from assay.store.workspaces import is_own, workspace_of

_SCHEDULE = [schedules.c[name] for name in SuiteSchedule.__dataclass_fields__]
_NAMES = tuple(SuiteSchedule.__dataclass_fields__)
_RUN = [scheduled_runs.c[name] for name in ScheduledRun.__dataclass_fields__]


def read_schedules(connection: sa.Connection) -> dict[str, SuiteSchedule]:
    """Return the schedules that a server has seen, by suite."""
    query = sa.select(*_SCHEDULE).where(is_own(connection, schedules))
    return {
        row["suite"]: from_plain(SuiteSchedule, dict(row)) for row in connection.execute(query).mappings()
    }


def read_registered_schedules(connection: sa.Connection) -> dict[str, str]:
    """The expressions of suites that are registered in the database, without reading their cases."""
    expression = sa.type_coerce(suites.c.definition, sa.JSON)["schedule"].as_string()
    query = sa.select(suites.c.name, expression).where(
        is_own(connection, suites), suites.c.registered, expression.is_not(None)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def replace_schedule(connection: sa.Connection, planned: SuiteSchedule, before: SuiteSchedule | None) -> bool:
    """Store when a suite is due next; False if another server was there first."""
    row = {"workspace_id": workspace_of(connection), **{name: getattr(planned, name) for name in _NAMES}}
    if before is None:
        # Both kinds of databases know it by this name; SQLAlchemy does not, without their dialects.
        statement = sa.text(
            "INSERT INTO schedules (workspace_id, suite, expression, zone, due) "
            "VALUES (:workspace_id, :suite, :expression, :zone, :due) ON CONFLICT DO NOTHING"
        ).bindparams(sa.bindparam("due", type_=schedules.c.due.type))
        return connection.execute(statement, row).rowcount == 1
    return (
        connection.execute(schedules.update().where(*_choose(connection, before)).values(row)).rowcount == 1
    )


def delete_schedule(connection: sa.Connection, before: SuiteSchedule) -> None:
    """Delete a schedule, unless another server has changed it meanwhile."""
    connection.execute(schedules.delete().where(*_choose(connection, before)))


def _choose(connection: sa.Connection, before: SuiteSchedule) -> tuple[sa.ColumnElement[bool], ...]:
    same = (schedules.c[name] == getattr(before, name) for name in _NAMES)
    return (is_own(connection, schedules), *same)


def start_runs(
    connection: sa.Connection, started: Iterable[ScheduledRun], queued: Iterable[QueuedRun]
) -> None:
    """Queue the runs of a time that was taken, in the same transaction."""
    for run in queued:
        queue.add(connection, run)
    rows = [
        {"workspace_id": workspace_of(connection), **{c.name: getattr(run, c.name) for c in _RUN}}
        for run in started
    ]
    if rows:
        connection.execute(scheduled_runs.insert(), rows)


def read_latest_runs(connection: sa.Connection) -> dict[str, list[ScheduledRun]]:
    """Return, by suite, the runs that were started for its latest time."""
    latest = (
        sa.select(scheduled_runs.c.suite, sa.func.max(scheduled_runs.c.due).label("due"))
        .where(is_own(connection, scheduled_runs))
        .group_by(scheduled_runs.c.suite)
        .subquery()
    )
    query = (
        sa.select(*_RUN)
        .join(latest, sa.and_(latest.c.suite == scheduled_runs.c.suite, latest.c.due == scheduled_runs.c.due))
        .where(is_own(connection, scheduled_runs))
        .order_by(scheduled_runs.c.suite, scheduled_runs.c.agent)
    )
    found: dict[str, list[ScheduledRun]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["suite"], []).append(from_plain(ScheduledRun, dict(row)))
    return found


def read_open_runs(connection: sa.Connection) -> list[ScheduledRun]:
    """Return the scheduled runs whose end is not stored yet."""
    query = sa.select(*_RUN).where(is_own(connection, scheduled_runs), scheduled_runs.c.outcome == "")
    return [from_plain(ScheduledRun, dict(row)) for row in connection.execute(query).mappings()]


def find_ended_runs(connection: sa.Connection) -> list[ScheduledRun]:
    """Return scheduled runs that have ended but whose outcomes are not stored yet."""
    started = read_open_runs(connection)
    ended = _read_outcomes(connection, {run.run_id for run in started})
    return [
        replace(run, outcome=ended[run.run_id][0], error=ended[run.run_id][1])
        for run in started
        if run.run_id in ended
    ]


def _read_outcomes(connection: sa.Connection, run_ids: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """Run to how it ended and why, for those of these runs that have ended: the state of the run, or that in the queue."""
    query = (
        sa.select(queued_runs.c.id, queued_runs.c.state, queued_runs.c.error, runs.c.state.label("run_state"))
        .outerjoin(runs, runs.c.id == queued_runs.c.id)
        .where(queued_runs.c.id.in_(list(run_ids)))
    )
    return {
        row.id: (
            row.run_state if row.state == QueueState.DONE.value and row.run_state else row.state,
            row.error,
        )
        for row in connection.execute(query)
        if not QueueState(row.state).is_open
    }


def settle_run(connection: sa.Connection, run: ScheduledRun) -> bool:
    """Store the outcome of a run; return False if another server did so first."""
    chosen = (
        is_own(connection, scheduled_runs),
        scheduled_runs.c.suite == run.suite,
        scheduled_runs.c.due == run.due,
        scheduled_runs.c.agent == run.agent,
        scheduled_runs.c.outcome == "",
    )
    values = {"outcome": run.outcome, "error": run.error}
    return connection.execute(scheduled_runs.update().where(*chosen).values(values)).rowcount == 1
