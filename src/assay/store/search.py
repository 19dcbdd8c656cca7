"""Finds agents, suites, runs and cases by a part of their names, and says which agents have run which
suites.

Names are compared without regard to case. Every query has a limit: a short text is part of nearly every
name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from assay.model.search import FoundCase, FoundRun, SearchResult
from assay.store.registry import read_agent_ids
from assay.store.run_refs import newest_first
from assay.store.tables import agents, runs, suites, tags, trials
from assay.store.workspaces import is_own

_MOST_SUITES = 50
"""Definitions that are opened to look for cases; each was found to hold the text."""


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """Results of an agent on a suite: how many runs, and when the latest began."""

    agent: str
    suite: str
    runs: int
    latest: datetime


def search(connection: sa.Connection, text: str, limit: int) -> SearchResult:
    """Find agents, suites, runs and cases whose names contain the text, at most `limit` of each."""
    return SearchResult(
        find_names(connection, agents, text, limit),
        find_names(connection, suites, text, limit),
        find_runs(connection, text, limit),
        find_cases(connection, text, limit),
    )


def find_names(connection: sa.Connection, table: sa.Table, text: str, limit: int) -> list[str]:
    own = is_own(connection, table)
    query = sa.select(table.c.name).where(own, _has(table.c.name, text))
    return list(connection.scalars(query.distinct().order_by(table.c.name).limit(limit)))


def find_runs(connection: sa.Connection, text: str, limit: int) -> list[FoundRun]:
    """Find runs, the newest first."""
    tagged = sa.select(tags.c.run_id).where(_has(tags.c.tag, text))
    query = (
        sa.select(runs.c.id, runs.c.name, runs.c.label, runs.c.state, runs.c.started)
        .where(is_own(connection, runs))
        .where(
            sa.or_(
                sa.func.substr(runs.c.id, 1, len(text)) == text,
                _has(runs.c.name, text),
                _has(runs.c.label, text),
                runs.c.id.in_(tagged),
            )
        )
        .order_by(*newest_first)
        .limit(limit)
    )
    return [FoundRun(*row) for row in connection.execute(query)]


def find_cases(connection: sa.Connection, text: str, limit: int) -> list[FoundCase]:
    """Find cases by id and input. The database searches the definitions as text, and only matching ones are parsed."""
    newest = sa.select(sa.func.max(suites.c.id)).where(is_own(connection, suites))
    # As it stands in JSON, within quotes.
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    definition = sa.cast(suites.c.definition, sa.Text)
    query = (
        sa.select(suites.c.name, suites.c.definition)
        .where(suites.c.id.in_(newest.group_by(suites.c.name)), _has(definition, written))
        .order_by(suites.c.name)
        .limit(_MOST_SUITES)
    )
    found: list[FoundCase] = []
    for name, opened in connection.execute(query):
        for case in _cases_with(name, opened, text):
            found.append(case)
            if len(found) == limit:
                return found
    return found


def _cases_with(suite: str, definition: dict[str, Any], text: str) -> Iterator[FoundCase]:
    wanted = text.casefold()
    for benchmark in definition["benchmarks"]:
        for case in benchmark["cases"]:
            case_input = case["input"]
            text_of_input = (
                case_input if isinstance(case_input, str) else json.dumps(case_input, ensure_ascii=False)
            )
            if wanted in str(case["id"]).casefold() or wanted in text_of_input.casefold():
                yield FoundCase(suite, benchmark["id"], str(case["id"]), text_of_input)


def _has(column: sa.ColumnElement[str], text: str) -> sa.ColumnElement[bool]:
    """Whether a column contains a text, in small or capital letters."""
    return column.icontains(text, autoescape=True)


def read_coverage(connection: sa.Connection, names: Collection[str] | None = None) -> list[CoverageCell]:
    """Every agent that has results on a suite, by name; only these agents, if any are given."""
    # Runs are grouped and then counted: to count distinct ones, PostgreSQL would sort all trials by their texts.
    key = agents.c.name, trials.c.suite
    query = (
        sa.select(*key, sa.func.max(trials.c.started).label("latest"))
        .join(trials, trials.c.agent_id == agents.c.id)
        .where(*_has_results(connection))
        .group_by(*key, trials.c.run_id)
    )
    if names is not None:
        query = query.where(trials.c.agent_id.in_(read_agent_ids(connection, names)))
    per_trial = query.subquery()
    counted = sa.select(per_trial.c.name, per_trial.c.suite, sa.func.count(), sa.func.max(per_trial.c.latest))
    found = connection.execute(counted.group_by(per_trial.c.name, per_trial.c.suite))
    return sorted((CoverageCell(*row) for row in found), key=lambda cell: (cell.agent, cell.suite))


def read_agents_on(connection: sa.Connection, suite: str) -> list[str]:
    """The agents that have results on a suite, by name."""
    has_results = sa.select(trials.c.agent_id).where(trials.c.suite == suite, trials.c.started.is_not(None))
    query = sa.select(agents.c.name).where(agents.c.id.in_(has_results.distinct()))
    found = connection.scalars(query.where(is_own(connection, agents)).distinct())
    return sorted(found)


def read_latest_by_suite(
    connection: sa.Connection, names: Collection[str] | None = None
) -> dict[str, dict[str, datetime]]:
    """Suite to the agents with results on it, each with when its latest trial began; only these suites, if any are given."""
    # By the ids of agents first: indexes have them, and fewer names are left to be sorted.
    latest = sa.select(trials.c.agent_id, trials.c.suite, sa.func.max(trials.c.started).label("latest"))
    latest = latest.where(trials.c.suite != "", trials.c.started.is_not(None))
    if names is not None:
        latest = latest.where(trials.c.suite.in_(names))
    per_agent = latest.group_by(trials.c.agent_id, trials.c.suite).subquery()
    query = (
        sa.select(per_agent.c.suite, agents.c.name, sa.func.max(per_agent.c.latest))
        .select_from(agents.join(per_agent, per_agent.c.agent_id == agents.c.id))
        .where(is_own(connection, agents))
        .group_by(per_agent.c.suite, agents.c.name)
    )
    found: dict[str, dict[str, datetime]] = {}
    for suite, agent, at in connection.execute(query):
        # A server keeps all of it: of each name there is one text.
        found.setdefault(suite, {})[sys.intern(agent)] = at
    return found


def read_latest_results(connection: sa.Connection) -> dict[str, datetime]:
    """Return the start of the latest trial of each agent on a suite."""
    query = (
        sa.select(agents.c.name, sa.func.max(trials.c.started))
        .join(trials, trials.c.agent_id == agents.c.id)
        .where(*_has_results(connection))
        .group_by(agents.c.name)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _has_results(connection: sa.Connection) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        is_own(connection, agents),
        trials.c.suite != "",
        trials.c.started.is_not(None),
    )
