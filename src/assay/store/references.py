"""References: what the ratings of speed, efficiency and cost are relative to, one for each definition of a benchmark.

A scope is a benchmark of a suite in one definition (its hash), apart for simulated agents. Its references come from the
first completed run that put all cases (`first`), for the time being from one that did not (`partial`), or from a run that the
user chose (`chosen`). Ratings are made again when a reference changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from assay.model import RunState
from assay.model.codec import to_plain
from assay.model.rating import RatingScope, Reference, ReferenceOrigin
from assay.store.tables import benchmarks, rating_references, ratings, runs, suites, trials
from assay.store.workspaces import is_own, workspace_of

# ON CONFLICT DO NOTHING is the same in both databases, and is what makes a first reference first: of two runs that end at the
# same moment, the later insert finds the row of the other one and changes nothing.
_SCOPE = (trials.c.suite, trials.c.benchmark, trials.c.benchmark_hash, trials.c.simulated)
_TABLE = rating_references.c
_INSERT = sa.text(
    "INSERT INTO rating_references "
    "(workspace_id, suite, benchmark, hash, simulated, quantity, value, run_id, ended, origin) VALUES "
    "(:workspace_id, :suite, :benchmark, :hash, :simulated, :quantity, :value, :run_id, :ended, :origin) "
    "ON CONFLICT DO NOTHING"
).bindparams(*(sa.bindparam(name, type_=_TABLE[name].type) for name in ("simulated", "ended")))


@dataclass(frozen=True, slots=True)
class CompletedTrial:
    """A trial of a completed run."""

    trial_id: int
    run_id: str
    ended: datetime
    is_whole: bool
    """Whether it put all cases of its benchmark."""


def read_scopes(connection: sa.Connection, run_id: str | None = None) -> dict[RatingScope, list[int]]:
    """What the trials of a run, or of all runs, are rated in, with their ids in the order of the plan."""
    # Code experiments of a suite have no agent to ask; loads that borrow a suite's cases are not of its definition.
    is_rated = sa.or_(trials.c.agent_use.is_not(None), trials.c.benchmark_hash != "")
    query = sa.select(*_SCOPE, trials.c.id).join(runs, runs.c.id == trials.c.run_id)
    query = query.where(is_own(connection, runs), trials.c.suite != "", is_rated)
    if run_id is not None:
        query = query.where(trials.c.run_id == run_id)
    found: dict[RatingScope, list[int]] = {}
    for *scope, trial_id in connection.execute(query.order_by(trials.c.run_id, trials.c.position)):
        found.setdefault(RatingScope(*scope), []).append(trial_id)
    return found


def read_completed(connection: sa.Connection, scope: RatingScope) -> list[CompletedTrial]:
    """Trials of completed runs in the scope: first those that put all cases, each group by when its run ended."""
    query = (
        sa.select(trials.c.id, runs.c.id, runs.c.ended, trials.c.cases, trials.c.stopped, benchmarks.c.cases)
        .join(runs, runs.c.id == trials.c.run_id)
        .join(
            benchmarks,
            sa.and_(benchmarks.c.suite_id == runs.c.suite_id, benchmarks.c.benchmark == trials.c.benchmark),
        )
        .where(is_own(connection, runs), *_within(scope), runs.c.state == RunState.COMPLETED.value)
        .order_by(runs.c.ended, runs.c.id, trials.c.position)
    )
    found = [
        CompletedTrial(trial_id, run_id, ended, stopped is None and len(cases) >= case_count)
        for trial_id, run_id, ended, cases, stopped, case_count in connection.execute(query)
    ]
    return sorted(found, key=lambda trial: not trial.is_whole)


def read_rated(connection: sa.Connection, scope: RatingScope) -> list[tuple[str, int]]:
    """Run and id of every trial in the scope that has ratings, the oldest run first."""
    return [(run_id, trial_id) for run_id, trial_id, _ in read_yardsticks(connection, scope)]


def read_yardsticks(connection: sa.Connection, scope: RatingScope) -> list[tuple[str, int, str]]:
    """As `read_rated`, each with a text of the references and the pass mark it was rated by; "" from older versions.

    Ratings are made again where this text differs from today's, which is how a change of a reference reaches all trials.
    """
    query = (
        sa.select(runs.c.id, trials.c.id, ratings.c.summary)
        .join(runs, runs.c.id == trials.c.run_id)
        .join(ratings, ratings.c.trial_id == trials.c.id)
        .where(is_own(connection, runs), *_within(scope))
        .order_by(runs.c.started, runs.c.id, trials.c.position)
    )
    return [
        (run_id, trial_id, (summary or {}).get("yardstick", ""))
        for run_id, trial_id, summary in connection.execute(query)
    ]


def read_outdated(connection: sa.Connection) -> list[tuple[str, int]]:
    """Run and id of every trial that was rated by a version that did not store the details of ratings."""
    query = (
        sa.select(trials.c.run_id, trials.c.id)
        .join(ratings, ratings.c.trial_id == trials.c.id)
        .join(runs, runs.c.id == trials.c.run_id)
        .where(is_own(connection, runs), ratings.c.summary.is_(None))
        .order_by(trials.c.run_id, trials.c.position)
    )
    return [(run_id, trial_id) for run_id, trial_id in connection.execute(query)]


def read_references(connection: sa.Connection, suite: str) -> list[Reference]:
    """Return the references of every rated definition of the suite."""
    own = _TABLE.workspace_id == workspace_of(connection)
    query = sa.select(rating_references).where(own, _TABLE.suite == suite)
    ordered = query.order_by(_TABLE.benchmark, _TABLE.simulated, _TABLE.quantity)
    return [_reference(row) for row in connection.execute(ordered)]


def read_trial_references(connection: sa.Connection, trial_id: int) -> dict[str, Reference]:
    """The references of the definition that a trial was made with, by quantity."""
    same = (
        _TABLE.workspace_id == workspace_of(connection),
        _TABLE.suite == trials.c.suite,
        _TABLE.benchmark == trials.c.benchmark,
        _TABLE.hash == trials.c.benchmark_hash,
        _TABLE.simulated == trials.c.simulated,
    )
    query = sa.select(rating_references).join(trials, sa.and_(*same)).where(trials.c.id == trial_id)
    return {row.quantity: _reference(row) for row in connection.execute(query)}


def write_references(connection: sa.Connection, references: Iterable[Reference]) -> None:
    """Store references: a chosen one replaces any other, a first one only a partial one, since two runs may end at the same moment."""
    for reference in references:
        row = {
            "workspace_id": workspace_of(connection),
            **to_plain(reference.scope),
            "quantity": reference.quantity,
            "value": reference.value,
            "run_id": reference.run_id,
            "ended": reference.ended,
            "origin": reference.origin.value,
        }
        chosen = [column == row[column.name] for column in rating_references.primary_key]
        if reference.origin is ReferenceOrigin.FIRST:
            chosen.append(_TABLE.origin == ReferenceOrigin.PARTIAL.value)
        if reference.origin is not ReferenceOrigin.PARTIAL:
            connection.execute(rating_references.delete().where(*chosen))
        connection.execute(_INSERT, row)


def delete_orphans(connection: sa.Connection) -> None:
    """Delete references of definitions that no stored suite of the workspace has any more."""
    within = workspace_of(connection)
    is_defined = sa.exists().where(
        suites.c.id == benchmarks.c.suite_id,
        suites.c.workspace_id == within,
        suites.c.name == _TABLE.suite,
        benchmarks.c.benchmark == _TABLE.benchmark,
        benchmarks.c.hash == _TABLE.hash,
    )
    connection.execute(rating_references.delete().where(_TABLE.workspace_id == within, ~is_defined))


def _within(scope: RatingScope) -> list[sa.ColumnElement[bool]]:
    values = (scope.suite, scope.benchmark, scope.hash, scope.simulated)
    return [column == value for column, value in zip(_SCOPE, values, strict=True)]


def _reference(row: sa.Row[tuple[object, ...]]) -> Reference:
    return Reference(
        RatingScope(row.suite, row.benchmark, row.hash, row.simulated),
        row.quantity,
        row.value,
        row.run_id,
        row.ended,
        ReferenceOrigin(row.origin),
    )
