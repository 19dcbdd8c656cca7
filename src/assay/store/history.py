"""The trials of an agent over time: for trends and regressions, and to forecast how long a run will take.

What is compared over time are trials that say something about the agent. A trial that was interrupted says nothing; one
that was given up because the agent failed throughout does, and often it is the worst result of all.
"""

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
from assay.model.codec import from_plain
from assay.model.profile import PROFILE
from assay.store.bulk import fetch_rows
from assay.store.read import align
from assay.store.tables import agents, environments, executions, measurements, ratings, runs, tags, trials
from assay.store.workspaces import is_own

_AT_ONCE = 50
"""Trials read in one query: one query each would take longer to write than to answer."""
_CARRIED_OUT = (RunState.COMPLETED.value, RunState.FAILED.value)


@dataclass(frozen=True, slots=True)
class AgentTrial:
    """A trial that was executed to its end, or given up because it failed throughout.

    Its other fields decide which trials it may be compared with.
    """

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
    """When its run started."""
    facts: Mapping[str, Any]
    """Facts about the machine that it ran on."""


def read_agent_trials(connection: sa.Connection, agent: str, suite: str | None = None) -> list[AgentTrial]:
    """All trials of the agent that can be compared over time, of one suite or of all; the oldest first.

    Those of profiles are not among them: they ask a few cases only, with a sampler beside the agent.
    """
    is_profile = sa.exists().where(tags.c.run_id == runs.c.id, tags.c.tag == PROFILE)
    # In an incomplete run the results of some agents are missing; a trial that is ranked is complete even so.
    is_ranked = sa.exists().where(ratings.c.trial_id == trials.c.id, ratings.c.ok > 0)
    is_complete = sa.or_(
        runs.c.state.in_(_CARRIED_OUT), sa.and_(runs.c.state == RunState.INCOMPLETE.value, is_ranked)
    )
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
            runs.c.environment_id,
        )
        .join(runs, runs.c.id == trials.c.run_id)
        .join(agents, agents.c.id == trials.c.agent_id)
        .where(is_own(connection, agents), agents.c.name == agent, is_complete, ~is_profile)
        .where(trials.c.started.is_not(None), sa.or_(trials.c.stopped.is_(None), _is_out_of_order()))
        .order_by(runs.c.started, runs.c.id, trials.c.position)
    )
    if suite is not None:
        query = query.where(trials.c.suite == suite)
    found = connection.execute(query).mappings().all()
    # Once for each run, and not for each of its trials: the facts are long.
    own = sa.select(environments.c.id, environments.c.facts).where(
        environments.c.id.in_({row["environment_id"] for row in found})
    )
    facts = {row.id: row.facts for row in connection.execute(own)}
    fields = AgentTrial.__dataclass_fields__
    return [
        from_plain(
            AgentTrial,
            {name: facts[row["environment_id"]] if name == "facts" else row[name] for name in fields},
        )
        for row in found
    ]


def _is_out_of_order() -> sa.ColumnElement[bool]:
    """Whether a trial was given up because its subject failed over and over, which is a result.

    An agent in a suite needs a failure. Code must have failed throughout: if it broke a limit, only its quick executions
    are there, and their times would look too good.
    """

    def has(*statuses: Status) -> sa.ColumnElement[bool]:
        columns = executions.c
        return sa.exists().where(
            columns.trial_id == trials.c.id,
            columns.phase == Phase.MEASURED.value,
            columns.status.in_(statuses),
        )

    failures = [status for status in Status if status.is_settled and status is not Status.OK]
    return sa.and_(has(*failures), sa.or_(trials.c.suite != "", sa.not_(has(Status.OK))))


def read_agents_with_trials(connection: sa.Connection) -> list[str]:
    # One look into the index for each name: the first version that has trials ends the search. With limits rather than EXISTS,
    # which PostgreSQL would turn into a look for every version.
    version = agents.alias()
    trial = sa.select(trials.c.id).where(trials.c.agent_id == version.c.id).limit(1).scalar_subquery()
    names = sa.select(agents.c.name).where(is_own(connection, agents)).distinct().subquery()
    found = sa.select(version.c.id).where(
        is_own(connection, version), version.c.name == names.c.name, trial.is_not(None)
    )
    has_trials = found.limit(1).scalar_subquery().is_not(None)
    return sorted(connection.scalars(sa.select(names.c.name).where(has_trials)))


def read_versions(connection: sa.Connection, agent: str) -> list[str]:
    """The versions of an agent with trials, the newest first; an agent without one has an empty version."""
    return _read_names(connection, agent, agents.c.version)


def read_suites_of(connection: sa.Connection, agent: str) -> list[str]:
    """The suites that an agent has trials of, the one that it ran last first."""
    return [name for name in _read_names(connection, agent, trials.c.suite) if name]


def _read_names(connection: sa.Connection, agent: str, column: sa.ColumnElement[str]) -> list[str]:
    query = sa.select(column).join_from(agents, trials, trials.c.agent_id == agents.c.id)
    query = query.where(is_own(connection, agents), agents.c.name == agent)
    newest = sa.func.max(trials.c.id).desc()
    return list(connection.scalars(query.group_by(column).order_by(newest)))


def count_agents(connection: sa.Connection, suite: str | None = None) -> int:
    """Count the agents with trials of a suite, or of any suite."""
    chosen = trials.c.suite != "" if suite is None else trials.c.suite == suite
    has_trials = sa.exists().where(trials.c.agent_id == agents.c.id, chosen)
    counted = sa.select(sa.func.count(agents.c.name.distinct())).where(is_own(connection, agents), has_trials)
    return connection.scalars(counted).one()


@dataclass(frozen=True, slots=True)
class PastFigures:
    """What executions of a trial took when it was last executed, one value for each execution."""

    run_id: str
    seconds: tuple[float, ...]
    usd: tuple[float, ...]
    """The cost of the agent plus that of its judges."""


_LOOKED_AT = 20
_MOST_FIGURES = 10_000


def read_past_figures(connection: sa.Connection, trial: Trial) -> PastFigures | None:
    """The figures of the latest trial of the same agent and benchmark, if any; one with the same params is preferred."""
    query = (
        sa.select(trials.c.id, trials.c.run_id, trials.c.params)
        .join(runs, runs.c.id == trials.c.run_id)
        .join(agents, agents.c.id == trials.c.agent_id)
        .where(is_own(connection, agents), agents.c.name == trial.agent.name)
        .where(trials.c.benchmark == trial.benchmark)
        .where(trials.c.suite == trial.suite, trials.c.started.is_not(None))
        .order_by(runs.c.started.desc())
        .limit(_LOOKED_AT)
    )
    found = connection.execute(query).all()
    # Sorting is stable: trials with the same params come first, and within both groups the newest does.
    for row in sorted(found, key=lambda row: dict(row.params) != dict(trial.params)):
        figures = _figures(connection, row.id, row.run_id)
        if figures.seconds:
            return figures
    return None


def _figures(connection: sa.Connection, trial_id: int, run_id: str) -> PastFigures:
    """Values are those of whole executions, which may consist of many calls."""
    columns, given = executions.c, measurements.c
    query = (
        sa.select(columns.seq, given.metric, given.value * columns.loops)
        .join(measurements, sa.and_(given.trial_id == columns.trial_id, given.seq == columns.seq))
        .where(columns.trial_id == trial_id, columns.phase == Phase.MEASURED.value)
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
    """The measured executions of many trials with these metrics; `_AT_ONCE` trials are in memory at a time."""
    for start in range(0, len(trial_ids), _AT_ONCE):
        yield from _read_columns(connection, trial_ids[start : start + _AT_ONCE], metrics).items()


def _read_columns(
    connection: sa.Connection, trial_ids: Sequence[int], metrics: Collection[str]
) -> dict[int, Columns]:
    """The columns of some trials by two queries: one for the executions and one for their measurements.

    Both are sorted by trial, so the rows of a trial follow each other and `groupby` needs no dictionary of them. Rows are
    turned into columns at once, which need far less memory than tuples.
    """
    found = {trial_id: Columns() for trial_id in trial_ids}
    execution_columns = executions.c
    query = (
        sa.select(
            execution_columns.trial_id,
            execution_columns.seq,
            execution_columns.process,
            execution_columns.case_id,
            execution_columns.repetition,
            execution_columns.status,
        )
        .where(execution_columns.trial_id.in_(trial_ids), execution_columns.phase == Phase.MEASURED.value)
        .order_by(execution_columns.trial_id, execution_columns.seq)
    )
    executed = chain.from_iterable(fetch_rows(connection, query))
    for trial_id, rows in groupby(executed, itemgetter(0)):
        _, seqs, processes, cases, repetitions, statuses = zip(*rows, strict=True)
        found[trial_id] = Columns(array("q", seqs), processes, cases, repetitions, statuses)
    measured = chain.from_iterable(fetch_rows(connection, _measurements_of(trial_ids, metrics)))
    for (trial_id, metric), rows in groupby(measured, itemgetter(0, 1)):
        _, _, seqs, values = zip(*rows, strict=True)
        columns = found[trial_id]
        columns.metrics[metric] = align(columns.seqs, array("q", seqs), array("d", values))
    return found


def _measurements_of(trial_ids: Sequence[int], metrics: Collection[str]) -> sa.Select[Any]:
    given = measurements.c
    return (
        sa.select(given.trial_id, given.metric, given.seq, given.value)
        .where(given.trial_id.in_(trial_ids), given.metric.in_(metrics))
        .order_by(given.trial_id, given.metric, given.seq)
    )
