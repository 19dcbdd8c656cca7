"""The trials of an agent over time."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from assay.model import CaseTable, Phase, RunState, Status, Trial
from assay.store.bulk import fetch_rows
from assay.store.reading import align
from assay.store.tables import agents, environments, executions, measurements, ratings, runs, trials

_AT_ONCE = 50
"""Trials read in one query: one query each would take longer to write than to answer."""
_CARRIED_OUT = (RunState.COMPLETED.value, RunState.FAILED.value)


@dataclass(frozen=True, slots=True)
class AgentTrial:
    """A trial that was carried out to its end, or given up because it failed throughout, with what decides which others it may be compared with."""

    run_id: str
    trial_id: int
    version: str
    suite: str
    benchmark: str
    params: Mapping[str, Any]
    axes: Mapping[str, Any]
    benchmark_hash: str
    cases: tuple[str, ...]
    simulated: bool
    started: datetime
    """Of its run."""
    facts: Mapping[str, Any]
    """Of the machine."""


def read_agent_trials(connection: sa.Connection, agent: str) -> list[AgentTrial]:
    """The oldest first."""
    query = (
        sa.select(
            trials.c.run_id,
            trials.c.id.label("trial_id"),
            agents.c.version,
            trials.c.suite,
            trials.c.benchmark,
            trials.c.params,
            trials.c.axes,
            trials.c.benchmark_hash,
            trials.c.cases,
            trials.c.simulated,
            runs.c.started,
            environments.c.facts,
        )
        .join(runs, runs.c.id == trials.c.run_id)
        .join(agents, agents.c.id == trials.c.agent_id)
        .join(environments, environments.c.id == runs.c.environment_id)
        .where(
            agents.c.name == agent, sa.or_(runs.c.state.in_(_CARRIED_OUT), _is_complete_in_incomplete_run())
        )
        .where(trials.c.started.is_not(None), sa.or_(trials.c.stopped.is_(None), _is_out_of_order()))
        .order_by(runs.c.started, runs.c.id, trials.c.position)
    )
    found = connection.execute(query).mappings()
    return [AgentTrial(**{**row, "cases": tuple(row["cases"])}) for row in found]


def _is_complete_in_incomplete_run() -> sa.ColumnElement[bool]:
    """One agent whose results are missing does not spoil those of the others: what has a rank can be compared."""
    is_ranked = sa.exists().where(ratings.c.trial_id == trials.c.id, ratings.c.ok > 0)
    return sa.and_(runs.c.state == RunState.INCOMPLETE.value, is_ranked)


def _is_out_of_order() -> sa.ColumnElement[bool]:
    """Given up because the subject failed over and over: that is its result, and often the worst of all.

    Times of code that broke a limit are those of its quick executions only; so of code it must be a failure throughout.
    """

    def has(*statuses: Status) -> sa.ColumnElement[bool]:
        made = executions.c
        return sa.exists().where(
            made.trial_id == trials.c.id, made.phase == Phase.MEASURED.value, made.status.in_(statuses)
        )

    failures = [status for status in Status if status.is_settled and status is not Status.OK]
    return sa.and_(has(*failures), sa.or_(trials.c.suite != "", sa.not_(has(Status.OK))))


def read_agents_with_trials(connection: sa.Connection) -> list[str]:
    query = sa.select(agents.c.name).join(trials, trials.c.agent_id == agents.c.id).distinct()
    return sorted(connection.scalars(query))


@dataclass(frozen=True, slots=True)
class PastFigures:
    """What executions of a trial took when it was last carried out."""

    run_id: str
    seconds: tuple[float, ...]
    usd: tuple[float, ...]
    """With what its judges cost."""


_LOOKED_AT = 20
_MOST_FIGURES = 10_000


def read_past_figures(connection: sa.Connection, trial: Trial) -> PastFigures | None:
    """Of the latest trial of the same agent and benchmark, rather one with the same params."""
    query = (
        sa.select(trials.c.id, trials.c.run_id, trials.c.params)
        .join(runs, runs.c.id == trials.c.run_id)
        .join(agents, agents.c.id == trials.c.agent_id)
        .where(agents.c.name == trial.agent.name, trials.c.benchmark == trial.benchmark)
        .where(trials.c.suite == trial.suite, trials.c.started.is_not(None))
        .order_by(runs.c.started.desc())
        .limit(_LOOKED_AT)
    )
    found = connection.execute(query).all()
    for row in sorted(found, key=lambda row: dict(row.params) != dict(trial.params)):
        figures = _figures(connection, row.id, row.run_id)
        if figures.seconds:
            return figures
    return None


def _figures(connection: sa.Connection, trial_id: int, run_id: str) -> PastFigures:
    """Seconds of a whole execution, which may be of many calls."""
    made, given = executions.c, measurements.c
    query = (
        sa.select(made.seq, given.metric, given.value * made.loops)
        .join(measurements, sa.and_(given.trial_id == made.trial_id, given.seq == made.seq))
        .where(made.trial_id == trial_id, made.phase == Phase.MEASURED.value)
        .where(given.metric.in_(("seconds", "usd", "judge_usd")))
        .limit(_MOST_FIGURES)
    )
    seconds: list[float] = []
    usd: dict[int, float] = {}
    for seq, metric, value in connection.execute(query):
        if metric == "seconds":
            seconds.append(value)
        else:
            usd[seq] = usd.get(seq, 0.0) + value
    return PastFigures(run_id, tuple(seconds), tuple(usd.values()))


@dataclass(slots=True)
class Columns:
    """The measured executions of a trial, column by column."""

    seqs: array[int] = field(default_factory=lambda: array("q"))
    processes: Sequence[int] = ()
    cases: Sequence[str] = ()
    repetitions: Sequence[int] = ()
    statuses: Sequence[str] = ()
    metrics: dict[str, Sequence[float | None]] = field(default_factory=dict)

    @property
    def table(self) -> CaseTable:
        return CaseTable(self.cases, self.repetitions, self.statuses, self.metrics, self.processes)


def read_columns(
    connection: sa.Connection, trial_ids: Sequence[int], metrics: Collection[str]
) -> Iterator[tuple[int, Columns]]:
    """Of many trials, a part of them at a time, with the metrics that are asked for."""
    for start in range(0, len(trial_ids), _AT_ONCE):
        yield from _read_columns(connection, trial_ids[start : start + _AT_ONCE], metrics).items()


def _read_columns(
    connection: sa.Connection, trial_ids: Sequence[int], metrics: Collection[str]
) -> dict[int, Columns]:
    found = {trial_id: Columns() for trial_id in trial_ids}
    executed = chain.from_iterable(fetch_rows(connection, _executions_of(trial_ids)))
    for trial_id, rows in groupby(executed, itemgetter(0)):
        _, seqs, processes, cases, repetitions, statuses = zip(*rows, strict=True)
        found[trial_id] = Columns(array("q", seqs), processes, cases, repetitions, statuses)
    measured = chain.from_iterable(fetch_rows(connection, _measurements_of(trial_ids, metrics)))
    for (trial_id, metric), rows in groupby(measured, itemgetter(0, 1)):
        _, _, seqs, values = zip(*rows, strict=True)
        columns = found[trial_id]
        columns.metrics[metric] = align(columns.seqs, array("q", seqs), array("d", values))
    return found


def _executions_of(trial_ids: Sequence[int]) -> sa.Select[Any]:
    made = executions.c
    columns = (made.trial_id, made.seq, made.process, made.case_id, made.repetition, made.status)
    chosen = made.trial_id.in_(trial_ids), made.phase == Phase.MEASURED.value
    return sa.select(*columns).where(*chosen).order_by(made.trial_id, made.seq)


def _measurements_of(trial_ids: Sequence[int], metrics: Collection[str]) -> sa.Select[Any]:
    given = measurements.c
    return (
        sa.select(given.trial_id, given.metric, given.seq, given.value)
        .where(given.trial_id.in_(trial_ids), given.metric.in_(metrics))
        .order_by(given.trial_id, given.metric, given.seq)
    )
