"""Reads runs, trials and executions as objects of `assay.model`.

What may be long is read in chunks, so that a trial of hundreds of thousands of executions fits in memory. Executions and their
measurements are two tables with the same key (trial, seq), which are read by two plain scans in the order of seq and put
together here: that is faster than a join, and does not depend on the planner of the database.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import compress
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from assay.model import Artifact, Execution, Phase, Run, Status
from assay.store import rows
from assay.store.bulk import fetch_rows
from assay.store.tables import (
    agents,
    artifacts,
    environments,
    executions,
    measurements,
    placements,
    runs,
    suites,
    tags,
    trials,
)

if TYPE_CHECKING:
    from assay.model import Series

IS_OK_MEASURED = (executions.c.phase == Phase.MEASURED.value, executions.c.status == Status.OK.value)

_CHUNK = 500

Work = tuple[int, int, str]
"""Trial index, process and phase."""


def read_run(connection: sa.Connection, run_id: str) -> Run:
    """A run with its environment, suite, tags and trials, without executions; the run must exist."""
    run = {"run": run_id}
    row = connection.execute(_query_run(), run).mappings().one()
    stored = [rows.trial_from(dict(trial)) for trial in connection.execute(_query_trials(), run).mappings()]
    return rows.run_from(dict(row), stored, read_tags(connection, run_id))


@cache
def _query_run() -> sa.Select[Any]:
    environment = environments.c.facts, environments.c.vcs, environments.c.doubts
    suite = [suites.c[name].label(f"suite_{name}") for name in ("name", "version", "category", "hash")]
    query = sa.select(runs, *environment, *suite).join(environments).outerjoin(suites)
    return query.where(runs.c.id == sa.bindparam("run"))


@cache
def _query_trials() -> sa.Select[Any]:
    agent = agents.c.name.label("agent_name"), agents.c.version.label("agent_version")
    of_run = sa.select(trials, *agent).join(agents).where(trials.c.run_id == sa.bindparam("run"))
    return of_run.order_by(trials.c.position)


@cache
def _query_tags() -> sa.Select[Any]:
    return sa.select(tags.c.tag).where(tags.c.run_id == sa.bindparam("run")).order_by(tags.c.tag)


def read_tags(connection: sa.Connection, run_id: str) -> Sequence[str]:
    return connection.scalars(_query_tags(), {"run": run_id}).all()


def read_progress(connection: sa.Connection, run_id: str) -> dict[Work, int]:
    """How many repetitions of each process and phase are stored without a gap: a resumed run continues from there."""
    work = trials.c.position, executions.c.process, executions.c.phase
    query = (
        sa.select(*work, sa.func.count(), sa.func.max(executions.c.repetition))
        .join(executions)
        .where(trials.c.run_id == run_id)
        .group_by(*work)
    )
    counted = connection.execute(query).all()
    # Repetitions count from 0, so there is no gap if the last one is one less than their number; only otherwise are they read.
    return {
        (trial, process, phase): count
        if count == last + 1
        else _prefix(connection, run_id, (trial, process, phase))
        for trial, process, phase, count, last in counted
    }


def _prefix(connection: sa.Connection, run_id: str, work: Work) -> int:
    """How many repetitions there are up to the first gap, which an unsettled execution leaves when it is deleted."""
    trial, process, phase = work
    query = (
        sa.select(executions.c.repetition)
        .distinct()
        .join(trials)
        .where(trials.c.run_id == run_id, trials.c.position == trial)
        .where(executions.c.process == process, executions.c.phase == phase)
        .order_by(executions.c.repetition)
    )
    stored = connection.scalars(query).all()
    return next((number for number, repetition in enumerate(stored) if number != repetition), len(stored))


def read_counts(connection: sa.Connection, trial_id: int) -> dict[str, int]:
    """How many measured executions of a trial ended with each status."""
    query = sa.select(executions.c.status, sa.func.count().label("number")).group_by(executions.c.status)
    chosen = query.where(executions.c.trial_id == trial_id, executions.c.phase == Phase.MEASURED.value)
    return {row.status: row.number for row in connection.execute(chosen)}


def read_series(connection: sa.Connection, trial_id: int) -> dict[str, Series]:
    """Return each metric of the ok measured executions as columns, in the order in which they were stored."""
    # Two plain scans put together here: a join is at the mercy of PostgreSQL's planner, which does not know yet how many rows
    # a run that has just ended has, and may try every pair of them.
    kept = OkMeasured(connection, trial_id)
    series = {metric: kept.series(connection, metric) for metric in read_metrics(connection, trial_id)}
    return {metric: columns for metric, columns in series.items() if columns.values}


class OkMeasured:
    """Numbers, processes and repetitions of the measured executions of a trial that are ok.

    They are read once, and `series` picks the values of one metric for them. In the usual case every such execution has the
    metric, and whole chunks are copied; otherwise execution by execution.
    """

    def __init__(self, connection: sa.Connection, trial_id: int) -> None:
        self._trial_id = trial_id
        self._seqs, self._processes, self._repetitions = array("q"), array("q"), array("q")
        column = executions.c
        query = (
            sa.select(column.seq, column.process, column.repetition)
            .where(column.trial_id == trial_id)
            .where(*IS_OK_MEASURED)
            .order_by(column.seq)
        )
        for seqs, processes, repetitions in columns(connection, query):
            self._seqs.extend(seqs)
            self._processes.extend(processes)
            self._repetitions.extend(repetitions)

    def series(self, connection: sa.Connection, metric: str) -> Series:
        """The values of one metric for the executions that are ok, in the order of storing.

        Measurements of failed executions are dropped here and not in SQL, where that would take the join that this class
        avoids.
        """
        from assay.model import Series

        processes, repetitions, values = array("q"), array("q"), array("d")
        column = measurements.c
        chosen = column.trial_id == self._trial_id, column.metric == metric
        query = sa.select(column.seq, column.value).where(*chosen).order_by(column.seq)
        for seqs, measured in columns(connection, query):
            # Both are sorted by seq, so the executions of a chunk are one stretch of the arrays.
            span = slice(bisect_left(self._seqs, seqs[0]), bisect_right(self._seqs, seqs[-1]))
            kept = self._seqs[span]
            if kept == array("q", seqs):
                processes.extend(self._processes[span])
                repetitions.extend(self._repetitions[span])
                values.extend(measured)
                continue
            common = set(kept).intersection(seqs)
            is_measured = [seq in common for seq in kept]
            processes.extend(compress(self._processes[span], is_measured))
            repetitions.extend(compress(self._repetitions[span], is_measured))
            values.extend(compress(measured, (seq in common for seq in seqs)))
        return Series(processes, repetitions, values)


def align(wanted: array[int], seqs: array[int], values: array[float]) -> Sequence[float | None]:
    """The value of each wanted execution, None where it has none; an array where all have one."""
    if wanted == seqs:
        return values
    by_number = dict(zip(seqs, values, strict=True))
    return [by_number.get(seq) for seq in wanted]


def columns(
    connection: sa.Connection, query: sa.Select[Any], **bound: object
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """The result in chunks, each of them column by column."""
    return (tuple(zip(*chunk, strict=True)) for chunk in fetch_rows(connection, query, **bound))


def read_failures(connection: sa.Connection, trial_id: int, limit: int = 50) -> tuple[Execution, ...]:
    """Return the first executions of a trial that were not ok, of any phase."""
    query = _executions(trial_id).where(executions.c.status != Status.OK.value).limit(limit)
    return _with_measurements(connection, trial_id, connection.execute(query).all())


Connect = Callable[[], AbstractContextManager[sa.Connection]]


_DENSE = 4
"""A range is read whole if it has at most this many executions for each one that is wanted."""


class NumberedExecutions:
    """A trial's executions with their numbers, read anew each time it is iterated."""

    def __init__(self, connect: Connect, trial_id: int, *chosen: sa.ColumnElement[bool]) -> None:
        self._connect = connect
        self._trial_id = trial_id
        self._query = _executions(trial_id).where(*chosen).limit(_CHUNK)

    def __iter__(self) -> Iterator[tuple[int, Execution]]:
        last = -1
        while True:
            # A connection a chunk: one that stayed open would keep SQLite from clearing its write-ahead log.
            with self._connect() as connection:
                chunk = connection.execute(self._query.where(executions.c.seq > last)).all()
                read = _with_measurements(connection, self._trial_id, chunk)
            if not chunk:
                return
            yield from ((row.seq, execution) for row, execution in zip(chunk, read, strict=True))
            last = chunk[-1].seq


def read_numbered(
    connection: sa.Connection, trial_id: int, chosen: Sequence[sa.ColumnElement[bool]], limit: int
) -> list[tuple[int, Execution]]:
    """The first executions of a trial that are meant, with their numbers."""
    found = connection.execute(_executions(trial_id).where(*chosen).limit(limit)).all()
    read = _with_measurements(connection, trial_id, found)
    return [(row.seq, execution) for row, execution in zip(found, read, strict=True)]


class StoredExecutions:
    """A trial's executions of all phases, read anew each time it is iterated."""

    def __init__(self, connect: Connect, trial_id: int) -> None:
        self._numbered = NumberedExecutions(connect, trial_id)

    def __iter__(self) -> Iterator[Execution]:
        return (execution for _, execution in self._numbered)


def _executions(trial_id: int) -> sa.Select[Any]:
    return sa.select(executions).where(executions.c.trial_id == trial_id).order_by(executions.c.seq)


def _with_measurements(
    connection: sa.Connection, trial_id: int, found: Sequence[sa.Row[Any]]
) -> tuple[Execution, ...]:
    """Executions from their rows.

    All measurements of the chunk are read with one range over the key of the table; naming the metrics lets the database use
    that key, which begins with them.
    """
    if not found:
        return ()
    trial = _position(connection, trial_id)
    measured: defaultdict[int, dict[str, float]] = defaultdict(dict)
    column = measurements.c
    first, last = found[0].seq, found[-1].seq
    # Failures may be few and far apart: then each is looked up, and what lies between them is not read.
    is_dense = last - first < _DENSE * len(found)
    query = sa.select(column.seq, column.metric, column.value).where(
        column.trial_id == trial_id,
        column.metric.in_(read_metrics(connection, trial_id)),
        column.seq.between(first, last) if is_dense else column.seq.in_([row.seq for row in found]),
    )
    for seq, metric, value in connection.execute(query):
        measured[seq][metric] = value
    return tuple(rows.execution_from(row, trial, measured[row.seq]) for row in found)


def read_metrics(connection: sa.Connection, trial_id: int) -> Sequence[str]:
    """The names of a trial's metrics."""
    return connection.scalars(_query_metrics(), {"trial": trial_id}).all()


@cache
def _query_metrics() -> sa.Select[Any]:
    """Build the query for the names of a trial's metrics.

    The key of the table is (trial, metric, seq). A recursive query asks for the smallest metric and then, again and again,
    for the next larger one: a few look-ups in the index instead of a scan over all values, as DISTINCT would be.
    """
    column, trial = measurements.c, measurements.c.trial_id == sa.bindparam("trial")
    least = sa.func.min(column.metric)
    first = sa.select(least.label("metric")).where(trial).cte("hops", recursive=True)
    further = sa.select(least).where(trial, column.metric > first.c.metric).scalar_subquery()
    hops = first.union_all(sa.select(further).where(first.c.metric.is_not(None)))
    return sa.select(hops.c.metric).where(hops.c.metric.is_not(None))


def _position(connection: sa.Connection, trial_id: int) -> int:
    position: int = connection.scalars(sa.select(trials.c.position).where(trials.c.id == trial_id)).one()
    return position


def read_applied(connection: sa.Connection, trial_id: int) -> dict[str, object]:
    """The settings that the latest execution reported as in effect."""
    query = (
        sa.select(executions.c.applied)
        .where(executions.c.trial_id == trial_id, executions.c.applied.is_not(None))
        .order_by(executions.c.seq.desc())
        .limit(1)
    )
    return connection.scalar(query) or {}


def read_artifacts(connection: sa.Connection, trial_id: int) -> tuple[Artifact, ...]:
    query = sa.select(artifacts).where(artifacts.c.trial_id == trial_id).order_by(artifacts.c.id)
    found = connection.execute(query).mappings().all()
    trial = _position(connection, trial_id)
    return tuple(rows.artifact_from(dict(row), trial) for row in found)


def read_placements(connection: sa.Connection, trial_id: int) -> dict[int, str]:
    """The node of each process of a trial; empty where its executor has no nodes."""
    column = placements.c
    query = sa.select(column.process, column.node).where(column.trial_id == trial_id)
    return {row.process: row.node for row in connection.execute(query.order_by(column.process))}
