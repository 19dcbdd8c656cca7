"""Runs and trials as lists and rankings show them: one query for a page of them, without reading executions.

A run whose state is `running` but whose owner has ended is shown as interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from assay.model import DIMENSIONS, RunState
from assay.model.codec import from_plain
from assay.store.leases import is_abandoned
from assay.store.read import IS_OK_MEASURED
from assay.store.run_refs import newest_first, require
from assay.store.tables import agents, artifacts, executions, runs, suites, tags, trials
from assay.store.totals import count_of_executions
from assay.store.workspaces import is_own


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as a listing shows it; `executions` counts those of every phase."""

    id: str
    name: str
    state: RunState
    started: datetime
    ended: datetime | None
    trials: int
    executions: int
    tags: tuple[str, ...]
    label: str
    verdicts: tuple[str, ...] = ()
    """For load tests: the verdict of each, such as `slo_broken`; none for a capacity search. For a stress test: `broke` for each
    scenario in which the target broke its SLO."""


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """A trial as a ranking needs it; ratings go from 0 to 1, None is unrated."""

    run_id: str
    trial_id: int
    agent: str
    agent_version: str
    benchmark: str
    suite: str
    category: str
    benchmark_hash: str
    """Figures may be compared only where this is the same."""
    started: datetime
    ended: datetime
    accuracy: float | None
    speed: float | None
    efficiency: float | None
    cost: float | None
    reliability: float | None
    overall: float | None
    simulated: bool
    status: str
    """`ok`, or `stopped` where it ended before its plan was done."""


def read_runs(
    connection: sa.Connection,
    *,
    limit: int | None = 20,
    tag: str | None = None,
    name: str | None = None,
    before: str | None = None,
    state: str | None = None,
    agent: str | None = None,
) -> list[RunSummary]:
    """Return runs, the newest first; with `before`, only runs that started before the run with this id."""
    query = _summaries().where(is_own(connection, runs), *is_older(connection, before)).limit(limit)
    if tag is not None:
        query = query.where(runs.c.id.in_(sa.select(tags.c.run_id).where(tags.c.tag == tag)))
    if name is not None:
        query = query.where(runs.c.name == name)
    if state is not None:
        query = query.where(runs.c.state == state)
    if agent is not None:
        of_agent = sa.select(trials.c.run_id).join(agents, agents.c.id == trials.c.agent_id)
        query = query.where(runs.c.id.in_(of_agent.where(agents.c.name == agent)))
    return _build_summaries(connection, connection.execute(query).all())


def is_older(connection: sa.Connection, before: str | None) -> list[sa.ColumnElement[bool]]:
    """Whether a run comes after this one in a list of the newest; no condition without one."""
    if before is None:
        return []
    require(connection, before)
    started = sa.select(runs.c.started).where(runs.c.id == before).scalar_subquery()
    return [sa.or_(runs.c.started < started, sa.and_(runs.c.started == started, runs.c.id < before))]


def _summaries() -> sa.Select[tuple[object, ...]]:
    """The query for lists of runs.

    Counts are subqueries of each row, because a join would multiply runs by their executions.
    """
    of_run = trials.c.run_id == runs.c.id
    trial_count = sa.select(sa.func.count()).select_from(trials).where(of_run).scalar_subquery()
    return sa.select(
        runs.c.id,
        runs.c.name,
        runs.c.state,
        runs.c.started,
        runs.c.ended,
        trial_count.label("trials"),
        count_of_executions().label("executions"),
        runs.c.label,
    ).order_by(*newest_first)


def _build_summaries(
    connection: sa.Connection, found: Sequence[sa.Row[tuple[object, ...]]]
) -> list[RunSummary]:
    """Runs for a list.

    What is stored as running but has lost its owner is shown as interrupted; the row itself stays as it is.
    """
    run_ids = [row.id for row in found]
    labels: defaultdict[str, list[str]] = defaultdict(list)
    query = sa.select(tags.c.run_id, tags.c.tag).where(tags.c.run_id.in_(run_ids))
    for run_id, tag in connection.execute(query.order_by(tags.c.tag)):
        labels[run_id].append(tag)
    verdicts = _read_verdicts(connection, run_ids)
    summaries = []
    for row in found:
        state = RunState(row.state)
        if state is RunState.RUNNING and is_abandoned(connection, row.id):
            state = RunState.INTERRUPTED
        fields = {**row._mapping, "state": state, "tags": labels[row.id], "verdicts": verdicts[row.id]}
        summaries.append(from_plain(RunSummary, fields))
    return summaries


def _read_verdicts(connection: sa.Connection, run_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Read the verdicts of load and stress tests. Their trials are selected first, because other trials may have many executions."""
    from assay.model.stress import OUR_CAUSES, STRESS

    found: defaultdict[str, list[str]] = defaultdict(list)
    chosen = trials.c.run_id.in_(run_ids), trials.c.experiment.in_(("load", STRESS))
    query = sa.select(trials.c.id, trials.c.run_id, trials.c.experiment).where(*chosen).order_by(trials.c.id)
    kinds: dict[str, dict[int, str]] = {"load": {}, STRESS: {}}
    for trial_id, run_id, experiment in connection.execute(query):
        kinds[experiment][trial_id] = run_id
    for trial_id, verdict in _read_load_verdicts(connection, list(kinds["load"])):
        found[kinds["load"][trial_id]].append(verdict)
    for trial_id, cause in _read_causes(connection, list(kinds[STRESS])):
        if cause not in OUR_CAUSES:  # not where our own generator was the limit
            found[kinds[STRESS][trial_id]].append("broke")
    return found


def _read_load_verdicts(connection: sa.Connection, trial_ids: Sequence[int]) -> list[tuple[int, str]]:
    """The verdicts in the results of load tests: of `assay load`, or of the experiment `load`, whose output nests them."""
    if not trial_ids:
        return []
    output = executions.c.output
    verdict = sa.func.coalesce(
        output["verdict"].as_string(),
        output[("load", 0, "verdict")].as_string(),
    )
    searched = sa.select(artifacts.c.trial_id).where(artifacts.c.name == "capacity.json")
    query = (
        sa.select(executions.c.trial_id, verdict)
        .where(executions.c.trial_id.in_(trial_ids), executions.c.trial_id.not_in(searched))
        .where(executions.c.phase == "measured")
        .order_by(executions.c.trial_id, executions.c.seq)
    )
    return [(trial_id, found) for trial_id, found in connection.execute(query) if found is not None]


def _read_causes(connection: sa.Connection, trial_ids: Sequence[int]) -> list[tuple[int, str]]:
    """Why the target broke in each scenario of stress tests in which it did."""
    if not trial_ids:
        return []
    cause = executions.c.output[("scenario", "breach", "cause")].as_string()
    query = sa.select(executions.c.trial_id, cause).where(executions.c.trial_id.in_(trial_ids))
    found = connection.execute(query.order_by(executions.c.trial_id, executions.c.seq))
    return [(trial_id, text) for trial_id, text in found if text]


def find_runs_of(
    connection: sa.Connection,
    experiment: str,
    agent: str | None = None,
    limit: int = 20,
    before: str | None = None,
) -> list[str]:
    """The ids of the newest runs with a trial of this experiment, and of this agent if one is given."""
    query = sa.select(runs.c.id).join(trials, trials.c.run_id == runs.c.id)
    query = query.where(
        is_own(connection, runs), trials.c.experiment == experiment, *is_older(connection, before)
    )
    if agent is not None:
        query = query.join(agents, agents.c.id == trials.c.agent_id).where(agents.c.name == agent)
    query = query.group_by(runs.c.id, runs.c.started).order_by(*newest_first).limit(limit)
    return list(connection.scalars(query))


def read_latest_trials(
    connection: sa.Connection, *, suite: str | None = None, since: datetime | None = None
) -> list[TrialSummary]:
    """The latest trial with a result of each agent on each benchmark; `since` is of the start of its run."""
    # With a limit rather than EXISTS, which PostgreSQL may turn into a scan of every execution that there is.
    column = executions.c
    ok = sa.select(column.seq).where(column.trial_id == trials.c.id).where(*IS_OK_MEASURED).limit(1)
    conditions: list[sa.ColumnElement[bool]] = [ok.scalar_subquery().is_not(None)]
    if suite is not None:
        conditions.append(trials.c.suite == suite)
    if since is not None:
        conditions.append(runs.c.started >= since)
    return summarise_latest(connection, conditions)


age_of_trial = (
    sa.func.row_number()
    .over(
        partition_by=[trials.c.suite, trials.c.benchmark, agents.c.name],
        order_by=[runs.c.started.desc(), trials.c.id.desc()],
    )
    .label("age")
)
"""The age of a trial among those of the same agent on the same benchmark: 1 is the latest."""


def summarise_latest(
    connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]]
) -> list[TrialSummary]:
    """Return the latest of the trials that meet the conditions, of each agent on each benchmark."""
    aged = (
        sa.select(
            trials.c.run_id,
            trials.c.id.label("trial_id"),
            agents.c.name.label("agent"),
            agents.c.version.label("agent_version"),
            trials.c.benchmark,
            trials.c.suite,
            sa.func.coalesce(suites.c.category, "").label("category"),
            trials.c.benchmark_hash,
            trials.c.started,
            trials.c.ended,
            *(trials.c[dimension] for dimension in (*DIMENSIONS, "overall")),
            trials.c.simulated,
            sa.case((trials.c.stopped.is_(None), "ok"), else_="stopped").label("status"),
            age_of_trial,
        )
        .join(runs, runs.c.id == trials.c.run_id)
        .join(agents, agents.c.id == trials.c.agent_id)
        .outerjoin(suites, suites.c.id == runs.c.suite_id)
        .where(is_own(connection, runs), *conditions)
        .subquery()
    )
    columns = [column for column in aged.c if column.name != "age"]
    latest = sa.select(*columns).where(aged.c.age == 1)
    found = connection.execute(latest.order_by(aged.c.suite, aged.c.benchmark, aged.c.agent)).mappings()
    return [TrialSummary(**row) for row in found]
