"""Deletes runs, and with them what nothing else refers to: their environment, and a suite that no run has any more."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import datetime

import sqlalchemy as sa

from assay.model import RunState, Status
from assay.store import registry
from assay.store.run_refs import newest_first
from assay.store.tables import (
    baselines,
    environments,
    executions,
    measurements,
    queued_runs,
    runs,
    suites,
    trials,
)
from assay.store.workspaces import is_own


def delete_run(connection: sa.Connection, run_id: str) -> set[str]:
    """Delete a run with all that cascades from it; returns the suites whose results it had.

    What it refers to comes after it, because of the foreign keys, and a suite goes only if nothing else has it.
    """
    registry.take_turn(connection)
    query = sa.select(runs.c.environment_id, runs.c.suite_id).where(runs.c.id == run_id)
    environment, suite = connection.execute(query).one()
    changed = set(connection.scalars(sa.select(trials.c.suite).where(trials.c.run_id == run_id).distinct()))
    connection.execute(runs.delete().where(runs.c.id == run_id))
    # It can no longer be continued: it would be executed again.
    connection.execute(queued_runs.delete().where(queued_runs.c.id == run_id))
    connection.execute(environments.delete().where(environments.c.id == environment))
    if suite is not None:
        registry.delete_unused_suites(connection, suites.c.id == suite)
    return changed


def delete_unsettled(connection: sa.Connection, run_id: str) -> None:
    """Delete executions that say nothing about their subject, such as cancelled ones, so that a resumed run repeats them."""
    unsettled = [status.value for status in Status if not status.is_settled]
    chosen = trials.c.run_id == run_id, executions.c.status.in_(unsettled)
    query = sa.select(executions.c.trial_id, executions.c.seq).join(trials).where(*chosen)
    for trial_id, seq in connection.execute(query).all():
        for table in (measurements, executions):
            connection.execute(table.delete().where(table.c.trial_id == trial_id, table.c.seq == seq))


def prunable(connection: sa.Connection, before: datetime, keep: int) -> list[str]:
    """Runs that started before that time and are not among the newest `keep`; never baselines or running ones."""
    query = sa.select(runs.c.id, runs.c.started, runs.c.state).where(is_own(connection, runs))
    named = set(connection.scalars(sa.select(baselines.c.run_id)))
    return [
        run_id
        for run_id, started, state in connection.execute(query.order_by(*newest_first)).all()[keep:]
        if started < before and state != RunState.RUNNING.value and run_id not in named
    ]


def give_back_space(engine: sa.Engine) -> None:
    """Returns free pages of a SQLite file to the disk; PostgreSQL does so by itself."""
    if engine.dialect.name != "sqlite":
        return
    connection = engine.raw_connection()
    try:
        # As a script: a single statement would stop at the first of the pages, each of which is a row to the driver.
        # When a neighbour holds the file for too long, the pages stay with it for new rows.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.cursor().executescript("PRAGMA incremental_vacuum")
    finally:
        connection.close()
