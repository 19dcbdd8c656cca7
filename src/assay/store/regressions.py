"""Regressions as they were found, each in the state that somebody or something gave it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from assay.errors import LookupFailed, no_such
from assay.model import Metric
from assay.model.metric import Better, Kind
from assay.model.regression import Impact, Loss, Regression, RegressionState, Severity
from assay.store.tables import DEFAULT_WORKSPACE, regressions

_SHORTEST_PREFIX = 2


def read_regressions(connection: sa.Connection, agent: str) -> list[Regression]:
    """The oldest first."""
    query = sa.select(regressions).where(regressions.c.agent == agent)
    order = regressions.c.detected, regressions.c.id
    return [_from(dict(row)) for row in connection.execute(query.order_by(*order)).mappings()]


def write_regressions(connection: sa.Connection, found: Iterable[Regression]) -> None:
    """Each takes the place of what was kept under its id."""
    rows = [_row(one) for one in found]
    if rows:
        ids = [row["id"] for row in rows]
        connection.execute(regressions.delete().where(regressions.c.id.in_(ids)))
        connection.execute(regressions.insert(), rows)


def mark(
    connection: sa.Connection, agent: str, ref: str, state: RegressionState, note: str | None, when: datetime
) -> Regression:
    """By its id, or the start of one; an empty note clears what was there, None leaves it."""
    known = {one.id: one for one in read_regressions(connection, agent)}
    chosen = [id for id in known if id == ref or (len(ref) >= _SHORTEST_PREFIX and id.startswith(ref))]
    if len(chosen) > 1:
        raise LookupFailed(f"'{ref}' may be any of {', '.join(chosen)}. Write more of the id.")
    if not chosen:
        raise LookupFailed(no_such(ref, f"regressions of '{agent}'", known))
    values = {"state": state.value, "changed": when, "is_marked": True}
    if note is not None:
        values["note"] = note
    connection.execute(regressions.update().where(regressions.c.id == chosen[0]).values(values))
    return next(one for one in read_regressions(connection, agent) if one.id == chosen[0])


def _row(one: Regression) -> dict[str, Any]:
    return {
        "workspace_id": DEFAULT_WORKSPACE,
        "id": one.id,
        "agent": one.agent,
        "suite": one.suite,
        "benchmark": one.benchmark,
        "metric": one.metric.name,
        "version_before": one.before,
        "version_after": one.after,
        "state": one.state.value,
        "note": one.note,
        "detected": one.detected,
        "changed": one.changed,
        "is_marked": one.is_marked,
        "figures": _figures(one),
    }


def _figures(one: Regression) -> dict[str, Any]:
    return {
        "metric": asdict(one.metric),
        "baseline_value": one.baseline_value,
        "current_value": one.current_value,
        "loss": asdict(one.loss),
        "tolerance": one.tolerance,
        "severity": one.severity.value,
        "found_by": list(one.found_by),
        "p": one.p,
        "impact": asdict(one.impact),
        "is_pending": one.is_pending,
        "is_suspect": one.is_suspect,
    }


def _from(row: Mapping[str, Any]) -> Regression:
    kept = row["figures"]
    metric, impact = kept["metric"], kept["impact"]
    return Regression(
        id=row["id"],
        agent=row["agent"],
        suite=row["suite"],
        benchmark=row["benchmark"],
        metric=Metric(metric["name"], metric["unit"], Better(metric["better"]), Kind(metric["kind"])),
        before=row["version_before"],
        after=row["version_after"],
        # An unbounded end is kept as text, for JSON has no word for it.
        baseline_value=float(kept["baseline_value"]),
        current_value=float(kept["current_value"]),
        loss=Loss(**{name: float(value) for name, value in kept["loss"].items()}),
        tolerance=kept["tolerance"],
        severity=Severity(kept["severity"]),
        found_by=tuple(kept["found_by"]),
        p=kept["p"],
        impact=Impact(**{**impact, "cases": tuple(impact["cases"])}),
        is_pending=kept["is_pending"],
        is_suspect=kept["is_suspect"],
        state=RegressionState(row["state"]),
        note=row["note"],
        detected=row["detected"],
        changed=row["changed"],
        is_marked=row["is_marked"],
    )
