"""Trials as the view `benchmark_executions` shows them, a page at a time, the newest first.

Which trials are on a page is found from the tables; the view, which looks at the executions of each of its rows, is asked for
these alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

import sqlalchemy as sa

from assay.model import DIMENSIONS, Execution
from assay.model.redaction import CleanJson, known_secrets
from assay.store import column_values as plain
from assay.store.read import read_numbered
from assay.store.registry import read_agent_ids
from assay.store.run_lists import age_of_trial
from assay.store.tables import INSTANT, SEARCHED, agents, environments, executions, runs, trials
from assay.store.totals import read_changes
from assay.store.workspaces import workspace_of

_TYPES: dict[str, Any] = {
    "execution_environment": SEARCHED,
    "model_configuration": SEARCHED,
    "start_time": INSTANT,
    "end_time": INSTANT,
    "created_at": INSTANT,
}
_COLUMNS = (
    "id", "suite_id", "benchmark_id", "agent_id", "agent_version", "workspace_id", "execution_environment",
    "model_configuration", "start_time", "end_time", "total_duration_ms", *(f"{name}_score" for name in DIMENSIONS),
    "tokens_used", "api_calls_made", "memory_peak_mb", "cpu_usage_percent", "output_correctness",
    "output_completeness", "output_relevance", "percentile_rank", "deviation_from_baseline", "status",
    "error_details", "created_at",
)  # fmt: skip
_APART = ("percentile_rank", "execution_environment")
"""Columns that are worked out here, for all rows at once."""
_view = sa.table("benchmark_executions", *(sa.column(name, _TYPES.get(name)) for name in _COLUMNS))


Group = tuple[str, str, bool]
"""Suite, benchmark, and whether its agents are simulated: what `percentile_rank` is among."""
Latest = dict[Group, tuple[dict[str, float], list[float]]]
"""Ratings by agent, and the same in order."""


class LatestRatings:
    """The overall rating of each agent's latest rated trial on each benchmark, as the view ranks trials among them.

    To find them takes longer than everything else on a page, so they are kept, and read again for suites that have changed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._changes: dict[str, int] = {}
        self._latest: Latest = {}

    def read(self, connection: sa.Connection, wanted: Collection[str]) -> Latest:
        """Those of the wanted suites, and of others. Several threads read at once; what one was given does not change any more."""
        with self._lock:
            # The changes are read first: what happens later is read again.
            changes = read_changes(connection)
            outdated = [name for name in wanted if self._changes.get(name) != changes.get(name, 0)]
            if outdated:
                found: dict[Group, dict[str, float]] = {}
                for row in connection.execute(_select_latest(outdated, workspace_of(connection))):
                    group = row.suite, row.benchmark, bool(row.simulated)
                    found.setdefault(group, {})[row.name] = row.overall
                kept = {group: values for group, values in self._latest.items() if group[0] not in outdated}
                self._latest = kept | {
                    group: (values, sorted(values.values())) for group, values in found.items()
                }
                self._changes |= {name: changes.get(name, 0) for name in outdated}
            return self._latest


def _rank(row: Mapping[str, Any], latest: Latest) -> float | None:
    """The share of the other agents that are rated lower, in percent; None where no other agent is rated."""
    group = (row["suite_id"] or "", row["benchmark_id"], bool(row["simulated"]))
    by_agent, in_order = latest.get(group, ({}, []))
    overall = row["overall"]
    others = len(by_agent) - (row["agent_id"] in by_agent)
    if overall is None or not others:
        return None
    own = by_agent.get(row["agent_id"], overall) < overall
    return 100.0 * (bisect_left(in_order, overall) - int(own)) / others


def _select_latest(suites: Sequence[str], workspace: int) -> sa.Select[Any]:
    group = trials.c.suite, trials.c.benchmark, trials.c.simulated, agents.c.name
    age = sa.func.row_number().over(
        partition_by=[*group], order_by=[runs.c.started.desc(), trials.c.id.desc()]
    )
    aged = (
        sa.select(*group, trials.c.overall, age.label("age"))
        .join(agents, agents.c.id == trials.c.agent_id)
        .join(runs, runs.c.id == trials.c.run_id)
        .where(runs.c.workspace_id == workspace, trials.c.suite.in_(suites), trials.c.overall.is_not(None))
        .subquery()
    )
    return sa.select(aged).where(aged.c.age == 1)


@dataclass(frozen=True, slots=True)
class ResultFilter:
    """Which trials to read; what is None does not narrow it."""

    agent: str | None = None
    suite: str | None = None
    benchmark: str | None = None
    run: str | None = None
    trial: int | None = None
    since: datetime | None = None
    """The earliest start of its run."""
    is_latest: bool = False
    """Only the latest trial of each agent on each benchmark."""


def read_results(
    connection: sa.Connection, chosen: ResultFilter, before: int | None, limit: int, ratings: LatestRatings
) -> list[Mapping[str, Any]]:
    """Rows of the view with the run and the overall score of each; only trials with a smaller id than `before`."""
    ids = _find_ids(connection, chosen)
    number = ids.selected_columns.id
    if before is not None:
        ids = ids.where(number < before)
    found = list(connection.scalars(ids.order_by(number.desc()).limit(limit)))
    if not found:
        return []
    columns = [_view.c[name] for name in _COLUMNS if name not in _APART]
    further = (
        trials.c.run_id,
        trials.c.overall,
        (trials.c.overall * 100).label("overall_score"),
        trials.c.simulated,
    )
    query = (
        sa.select(*columns, *further)
        .join(trials, trials.c.id == _view.c.id)
        .where(_view.c.id.in_(found))
        .order_by(_view.c.id.desc())
    )
    rows = [dict(row) for row in connection.execute(query).mappings()]
    latest = ratings.read(connection, {row["suite_id"] or "" for row in rows})
    facts = _read_facts(connection, {row["run_id"] for row in rows})
    for row in rows:
        row["percentile_rank"], row["execution_environment"] = _rank(row, latest), facts[row["run_id"]]
    order = (*_COLUMNS, "run_id", "overall_score", "simulated")
    return [{name: row[name] for name in order} for row in rows]


def _read_facts(connection: sa.Connection, run_ids: Collection[str]) -> dict[str, CleanJson]:
    """Run to the facts of its machine, which are longer than all the rest of a row; those that are the same are parsed once."""
    written = sa.cast(environments.c.facts, sa.Text)
    query = sa.select(runs.c.id, written).join(environments, environments.c.id == runs.c.environment_id)
    found = {row[0]: row[1] for row in connection.execute(query.where(runs.c.id.in_(run_ids)))}
    parsed = {
        facts: CleanJson(plain.from_json(known_secrets().redact_json(facts))) for facts in set(found.values())
    }
    return {run_id: parsed[facts] for run_id, facts in found.items()}


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """Which executions of a trial to read."""

    trial: int
    status: str | None = None
    case: str | None = None
    phase: str | None = None


def read_execution_page(
    connection: sa.Connection, chosen: ExecutionFilter, after: int | None, limit: int
) -> list[tuple[int, Execution]]:
    """Return executions with their numbers, in the order in which they were stored, after the number `after`."""
    conditions = [
        column == value
        for column, value in (
            (executions.c.status, chosen.status),
            (executions.c.case_id, chosen.case),
            (executions.c.phase, chosen.phase),
        )
        if value is not None
    ]
    if after is not None:
        conditions.append(executions.c.seq > after)
    return read_numbered(connection, chosen.trial, conditions, limit)


def _is_own(connection: sa.Connection, chosen: ResultFilter) -> sa.ColumnElement[bool]:
    """Whether a trial is of the agent, if one is chosen, and of the workspace, which is that of its agent."""
    if chosen.agent is not None:
        # By number: how many trials these have the database knows, and how many those of a name have it can only guess.
        return trials.c.agent_id.in_(read_agent_ids(connection, [chosen.agent]))
    # Not by an index of agents: all trials of the workspace would be sorted to find the newest hundred.
    return (agents.c.workspace_id != workspace_of(connection)).is_(False)


def _find_ids(connection: sa.Connection, chosen: ResultFilter) -> sa.Select[tuple[int]]:
    conditions = [
        column == value
        for column, value in (
            (trials.c.suite, chosen.suite),
            (trials.c.benchmark, chosen.benchmark),
            (trials.c.run_id, chosen.run),
            (trials.c.id, chosen.trial),
        )
        if value is not None
    ]
    conditions.append(_is_own(connection, chosen))
    if chosen.since is not None:
        conditions.append(runs.c.started >= chosen.since)
    joined = trials.join(agents, agents.c.id == trials.c.agent_id)
    if chosen.since is not None or chosen.is_latest:
        joined = joined.join(runs, runs.c.id == trials.c.run_id)
    if not chosen.is_latest:
        return sa.select(trials.c.id).select_from(joined).where(*conditions)
    aged = sa.select(trials.c.id, age_of_trial).select_from(joined).where(*conditions).subquery()
    return sa.select(aged.c.id).where(aged.c.age == 1)
