"""What the pages of the dashboard list: agents and suites with what is stored of them, and the trials of a run.

Each is a query or two, and none reads executions one by one: a page has to open quickly however much is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from assay.store.run_lists import TrialSummary, is_older, summarise_latest
from assay.store.run_refs import newest_first
from assay.store.tables import agents, executions, runs, tags, trials
from assay.store.workspaces import is_own, workspace_of


@dataclass(frozen=True, slots=True)
class AgentOverview:
    """An agent of any version, with how much is stored of it."""

    name: str
    versions: int
    suites: int
    trials: int
    latest: datetime | None
    """When its latest trial began; None if none has."""


@dataclass(frozen=True, slots=True)
class SuiteOverview:
    """A suite of any version, with how much is stored of it."""

    name: str
    agents: int
    runs: int
    latest: datetime | None
    """When its latest trial began; None if none has."""


def _group_trials(*keys: sa.Column[Any]) -> sa.Subquery:
    """How many trials there are of each kind, and when the latest began: read from an index alone. Counting what is distinct among all
    trials would sort them, which takes several times as long."""
    numbers = sa.func.count().label("trials"), sa.func.max(trials.c.started).label("latest")
    return sa.select(*keys, *numbers).group_by(*keys).subquery()


def read_agent_overviews(connection: sa.Connection) -> list[AgentOverview]:
    """Return every agent with results, by name."""
    groups = _group_trials(trials.c.agent_id, trials.c.suite)
    query = (
        sa.select(
            agents.c.name,
            sa.func.count(agents.c.id.distinct()).label("versions"),
            # A trial that belongs to no suite has an empty one.
            sa.func.count(sa.func.nullif(groups.c.suite, "").distinct()).label("suites"),
            sa.cast(sa.func.sum(groups.c.trials), sa.Integer).label("trials"),
            sa.func.max(groups.c.latest).label("latest"),
        )
        .select_from(groups.join(agents, agents.c.id == groups.c.agent_id))
        .where(is_own(connection, agents))
        .group_by(agents.c.name)
        .order_by(agents.c.name)
    )
    return [AgentOverview(**row) for row in connection.execute(query).mappings()]


def read_suite_overviews(connection: sa.Connection) -> list[SuiteOverview]:
    """Return every suite with results, by name."""
    within = workspace_of(connection)
    of_agents, of_runs = (
        _group_trials(trials.c.suite, trials.c.agent_id),
        _group_trials(trials.c.suite, trials.c.run_id),
    )
    names = (
        sa.select(of_agents.c.suite, sa.func.count(agents.c.name.distinct()))
        .join(agents, agents.c.id == of_agents.c.agent_id)
        .where(agents.c.workspace_id == within, of_agents.c.suite != "")
        .group_by(of_agents.c.suite)
    )
    number = {row[0]: row[1] for row in connection.execute(names)}
    query = (
        sa.select(of_runs.c.suite, sa.func.count(), sa.func.max(of_runs.c.latest))
        .join(runs, runs.c.id == of_runs.c.run_id)
        .where(runs.c.workspace_id == within, of_runs.c.suite != "")
        .group_by(of_runs.c.suite)
        .order_by(of_runs.c.suite)
    )
    return [
        SuiteOverview(suite, number.get(suite, 0), many, latest)
        for suite, many, latest in connection.execute(query)
    ]


def read_newest_trials(
    connection: sa.Connection,
    *,
    agent: str | None = None,
    suite: str | None = None,
    benchmark: str | None = None,
) -> list[TrialSummary]:
    """The newest trial of an agent, or of each agent, on each benchmark, whether or not it has a result."""
    chosen = (agents.c.name, agent), (trials.c.suite, suite), (trials.c.benchmark, benchmark)
    conditions = [column == value for column, value in chosen if value is not None]
    return summarise_latest(connection, [trials.c.suite != "", trials.c.started.is_not(None), *conditions])


def count_statuses(connection: sa.Connection, run_id: str) -> dict[int, Mapping[str, int]]:
    """Count the measured executions of each trial of a run by status."""
    query = (
        sa.select(executions.c.trial_id, executions.c.status, sa.func.count())
        .join(trials, trials.c.id == executions.c.trial_id)
        .where(trials.c.run_id == run_id, executions.c.phase == "measured")
        .group_by(executions.c.trial_id, executions.c.status)
    )
    found: dict[int, dict[str, int]] = {}
    for trial_id, status, number in connection.execute(query):
        found.setdefault(trial_id, {})[status] = number
    return dict(found)


def read_fingerprint(connection: sa.Connection, run_id: str) -> tuple[object, ...]:
    """What changes whenever the results of a run do: it is carried on, scored again or rated again."""
    run = connection.execute(sa.select(runs.c.state, runs.c.ended).where(runs.c.id == run_id)).one()
    rated = [trials.c[name] for name in ("accuracy", "speed", "cost", "overall", "baseline_overall")]
    of_run = sa.select(trials.c.id, trials.c.stopped, *rated).where(trials.c.run_id == run_id)
    executed = (
        sa.select(sa.func.count()).select_from(trials.join(executions)).where(trials.c.run_id == run_id)
    )
    return (*run, connection.scalar(executed), *map(tuple, connection.execute(of_run.order_by(trials.c.id))))


def read_run_of_trial(connection: sa.Connection, trial_id: int) -> str:
    """Return the id of the run that a trial belongs to."""
    run_id: str = connection.scalars(sa.select(trials.c.run_id).where(trials.c.id == trial_id)).one()
    return run_id


def find_profiled_runs(
    connection: sa.Connection, tag: str, agent: str | None = None, limit: int = 20, before: str | None = None
) -> list[str]:
    """The ids of the newest runs with this tag, and with a trial of this agent if one is given."""
    query = sa.select(runs.c.id).join(tags, tags.c.run_id == runs.c.id)
    query = query.where(is_own(connection, runs), tags.c.tag == tag, *is_older(connection, before))
    if agent is not None:
        of_agent = sa.select(trials.c.run_id).join(agents, agents.c.id == trials.c.agent_id)
        query = query.where(runs.c.id.in_(of_agent.where(agents.c.name == agent)))
    return list(connection.scalars(query.order_by(*newest_first).limit(limit)))
