"""Regressions of agents: found by the analysis, and each in the state that the analysis or the user gave it.

What is searched for has a column of its own; the figures of a regression are one JSON document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from assay.errors import LookupFailed, format_unknown_name
from assay.model.codec import from_plain, to_plain
from assay.model.regression import Regression, RegressionChange, RegressionState, Severity
from assay.store.tables import regression_changes, regressions
from assay.store.workspaces import is_own, workspace_of

_SHORTEST_PREFIX = 2


@dataclass(frozen=True, slots=True)
class RegressionFilter:
    """Which regressions to read; what is None does not narrow it."""

    agent: str | None = None
    suite: str | None = None
    state: RegressionState | None = None
    severity: Severity | None = None
    is_open: bool | None = None
    id: str | None = None


def read_regressions(
    connection: sa.Connection, agent: str | None = None, *, are_open: bool = False
) -> list[Regression]:
    """All regressions, of the agent if one is given, the oldest first."""
    query = sa.select(regressions).where(is_own(connection, regressions))
    if agent is not None:
        query = query.where(regressions.c.agent == agent)
    if are_open:
        states = [state.value for state in RegressionState if state.is_open]
        query = query.where(regressions.c.state.in_(states))
    order = regressions.c.detected, regressions.c.id
    return [_regression(row) for row in connection.execute(query.order_by(*order)).mappings()]


def read_regression_page(
    connection: sa.Connection,
    chosen: RegressionFilter,
    skip: int = 0,
    limit: int = 100,
    *,
    by_severity: bool = False,
) -> list[Regression]:
    """Regressions of all agents, the newest first; or the most severe first, and of these the newest."""
    severity = sa.type_coerce(regressions.c.figures, sa.JSON)["severity"].as_string()
    ranks = {level.value: rank for rank, level in enumerate(reversed(Severity))}
    gravity = [sa.case(ranks, value=severity)] if by_severity else []
    closed = [state.value for state in RegressionState if not state.is_open]
    wanted = (
        (regressions.c.agent, chosen.agent),
        (regressions.c.suite, chosen.suite),
        (regressions.c.state, chosen.state),
        (severity, chosen.severity),
        (regressions.c.state.not_in(closed), chosen.is_open),
        (regressions.c.id, chosen.id),
    )
    query = (
        sa.select(regressions)
        .where(is_own(connection, regressions))
        .where(*(column == value for column, value in wanted if value is not None))
        .order_by(*gravity, regressions.c.detected.desc(), regressions.c.id)
        .offset(skip)
        .limit(limit)
    )
    return [_regression(row) for row in connection.execute(query).mappings()]


def _regression(row: sa.RowMapping) -> Regression:
    return from_plain(
        Regression,
        {
            **{name: row[name] for name in _COLUMNS},
            "before": row["version_before"],
            "after": row["version_after"],
            **row["figures"],
        },
    )


def write_regressions(connection: sa.Connection, found: Iterable[Regression]) -> None:
    """Store regressions; each replaces the one with the same id."""
    rows = [{"workspace_id": workspace_of(connection), **_row(regression)} for regression in found]
    if rows:
        ids = [row["id"] for row in rows]
        connection.execute(
            regressions.delete().where(is_own(connection, regressions), regressions.c.id.in_(ids))
        )
        connection.execute(regressions.insert(), rows)


def mark(
    connection: sa.Connection,
    agent: str,
    ref: str,
    state: RegressionState,
    note: str | None = None,
    now: datetime | None = None,
    author: str = "",
) -> Regression:
    """Set the state of a regression, by its id or the start of it; an empty note clears the old one, None keeps it."""
    known = {regression.id: regression for regression in read_regressions(connection, agent)}
    chosen = [id for id in known if id == ref or (len(ref) >= _SHORTEST_PREFIX and id.startswith(ref))]
    if len(chosen) > 1:
        raise LookupFailed(f"'{ref}' matches {', '.join(chosen)}. Give more of the id.")
    if not chosen:
        raise LookupFailed(format_unknown_name(ref, f"regressions of '{agent}'", known))
    now = now or datetime.now(UTC)
    values = {"state": state.value, "changed": now, "is_marked": True}
    if note is not None:
        values["note"] = note
    marking = regressions.update().where(is_own(connection, regressions), regressions.c.id == chosen[0])
    connection.execute(marking.values(values))
    marked = next(found for found in read_regressions(connection, agent) if found.id == chosen[0])
    row = {"workspace_id": workspace_of(connection), "regression": marked.id, "at": now, "author": author}
    connection.execute(regression_changes.insert(), {**row, "state": state.value, "note": marked.note})
    return marked


def read_changes(
    connection: sa.Connection, ids: Collection[str] | None = None
) -> dict[str, list[RegressionChange]]:
    """Regression to the states that people gave it, the oldest first; of all regressions without `ids`."""
    column = regression_changes.c
    query = sa.select(column.regression, column.at, column.author, column.state, column.note)
    query = query.where(column.workspace_id == workspace_of(connection)).order_by(column.id)
    if ids is not None:
        query = query.where(column.regression.in_(list(ids)))
    found: dict[str, list[RegressionChange]] = {}
    for regression, *change in connection.execute(query):
        at, author, state, note = change
        found.setdefault(regression, []).append(RegressionChange(at, author, RegressionState(state), note))
    return found


_COLUMNS = ("id", "agent", "suite", "benchmark", "state", "note", "detected", "changed", "is_marked")
_FIGURES = ("metric", "baseline_value", "current_value", "loss", "tolerance", "severity", "found_by", "p", "impact",
            "is_pending", "is_suspect")  # fmt: skip


def _row(regression: Regression) -> dict[str, Any]:
    return {
        **{name: getattr(regression, name) for name in _COLUMNS},
        "state": regression.state.value,
        "metric": regression.metric.name,
        "version_before": regression.before,
        "version_after": regression.after,
        "figures": {name: to_plain(getattr(regression, name)) for name in _FIGURES},
    }
