"""What lists need of trials without reading their executions, and a count of what changes rankings.

Totals are kept when a run ends. Writing another execution or score of a trial deletes its totals in the same transaction,
so that those which are there are right; without them, views and lists look at the executions. Everything that may change the
rankings of a suite is counted in the transaction that changes it: who has seen the same count has seen the same results.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from assay.model import RunState
from assay.store.tables import executions, runs, suite_changes, suites, trial_totals, trials
from assay.store.workspaces import workspace_of

_live = sa.table("live_trial_totals", *(sa.column(own.name) for own in trial_totals.c))
_COUNT_ON = sa.text(
    "INSERT INTO suite_changes (workspace_id, suite, changes) VALUES (:workspace, :suite, 1) "
    "ON CONFLICT (workspace_id, suite) DO UPDATE SET changes = suite_changes.changes + 1"
)


def write_totals(connection: sa.Connection, *chosen: sa.ColumnElement[bool]) -> None:
    """Keep the totals of chosen trials whose run has ended, where there are none."""
    is_known = sa.exists().where(trial_totals.c.trial_id == trials.c.id)
    query = (
        sa.select(*_live.c)
        .join(trials, trials.c.id == _live.c.trial_id)
        .join(runs, runs.c.id == trials.c.run_id)
        .where(*chosen, runs.c.state != RunState.RUNNING.value, ~is_known)
    )
    connection.execute(trial_totals.insert().from_select([own.name for own in trial_totals.c], query))


def delete_totals(connection: sa.Connection, trial_ids: Collection[int]) -> None:
    connection.execute(trial_totals.delete().where(trial_totals.c.trial_id.in_(trial_ids)))


def count_of_executions() -> sa.ScalarSelect[int]:
    """How many executions of all phases a run of the outer query has."""
    counted = sa.select(sa.func.count()).where(executions.c.trial_id == trials.c.id).scalar_subquery()
    of_trials = trials.outerjoin(trial_totals, trial_totals.c.trial_id == trials.c.id)
    number = sa.func.coalesce(trial_totals.c.executions, counted)
    return (
        sa.select(sa.cast(sa.func.coalesce(sa.func.sum(number), 0), sa.Integer))
        .select_from(of_trials)
        .where(trials.c.run_id == runs.c.id)
        .scalar_subquery()
    )


def note_change(connection: sa.Connection, changed: Collection[str]) -> None:
    """Count a change of the results of these suites, or with an empty name of code experiments; the last thing that a transaction does, always in one order."""
    for suite in sorted(set(changed)):
        connection.execute(_COUNT_ON, {"workspace": workspace_of(connection), "suite": suite})


def note_run_change(connection: sa.Connection, run_id: str) -> None:
    name = sa.func.coalesce(suites.c.name, "")
    query = sa.select(name).select_from(runs.outerjoin(suites, runs.c.suite_id == suites.c.id))
    note_change(connection, list(connection.scalars(query.where(runs.c.id == run_id))))


def read_changes(connection: sa.Connection) -> dict[str, int]:
    """Suite to a count of everything that may have changed its rankings; a suite without any is missing.

    All that is stored was counted before.
    """
    column = suite_changes.c
    query = sa.select(column.suite, column.changes).where(column.workspace_id == workspace_of(connection))
    return {row.suite: row.changes for row in connection.execute(query)}
