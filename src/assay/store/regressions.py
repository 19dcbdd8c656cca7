"""Regressions of agents: found by the analysis, and each in the state that the analysis or the user gave it.

What is searched for has a column of its own; the figures of a regression are one JSON document.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from assay.errors import LookupFailed, no_such
from assay.model.codec import from_plain, to_plain
from assay.model.regression import Regression, RegressionState
from assay.store.tables import regressions
from assay.store.workspaces import workspace_of

_SHORTEST_PREFIX = 2


def read_regressions(
    connection: sa.Connection, agent: str | None = None, *, are_open: bool = False
) -> list[Regression]:
    """All regressions, of the agent if one is given, the oldest first."""
    query = sa.select(regressions).where(_is_own(connection))
    if agent is not None:
        query = query.where(regressions.c.agent == agent)
    if are_open:
        states = [state.value for state in RegressionState if state.is_open]
        query = query.where(regressions.c.state.in_(states))
    order = regressions.c.detected, regressions.c.id
    return [
        from_plain(
            Regression,
            {
                **{name: row[name] for name in _COLUMNS},
                "before": row["version_before"],
                "after": row["version_after"],
                **row["figures"],
            },
        )
        for row in connection.execute(query.order_by(*order)).mappings()
    ]


def write_regressions(connection: sa.Connection, found: Iterable[Regression]) -> None:
    """Store regressions; each replaces the one with the same id."""
    rows = [{"workspace_id": workspace_of(connection), **_row(regression)} for regression in found]
    if rows:
        ids = [row["id"] for row in rows]
        connection.execute(regressions.delete().where(_is_own(connection), regressions.c.id.in_(ids)))
        connection.execute(regressions.insert(), rows)


def mark(
    connection: sa.Connection, agent: str, ref: str, state: RegressionState, note: str | None, when: datetime
) -> Regression:
    """Set the state of a regression, by its id or the start of it; an empty note clears the old one, None keeps it."""
    known = {regression.id: regression for regression in read_regressions(connection, agent)}
    chosen = [id for id in known if id == ref or (len(ref) >= _SHORTEST_PREFIX and id.startswith(ref))]
    if len(chosen) > 1:
        raise LookupFailed(f"'{ref}' may be any of {', '.join(chosen)}. Write more of the id.")
    if not chosen:
        raise LookupFailed(no_such(ref, f"regressions of '{agent}'", known))
    values = {"state": state.value, "changed": when, "is_marked": True}
    if note is not None:
        values["note"] = note
    marked = regressions.update().where(_is_own(connection), regressions.c.id == chosen[0])
    connection.execute(marked.values(values))
    return next(found for found in read_regressions(connection, agent) if found.id == chosen[0])


def _is_own(connection: sa.Connection) -> sa.ColumnElement[bool]:
    return regressions.c.workspace_id == workspace_of(connection)


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
