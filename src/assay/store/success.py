"""What success figures are computed from: when agents were benchmarked, what was found, and what gates said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import sqlalchemy as sa

from assay.model.codec import from_plain, to_plain
from assay.model.regression import RegressionState
from assay.model.success import AgentActivity, FoundOpportunity, FoundRegression, GateLoss, GateRecord
from assay.store.regressions import read_changes
from assay.store.tables import agents, gate_results, opportunities, regressions, trials
from assay.store.workspaces import is_own, workspace_of

_JUDGEMENTS = (RegressionState.CONFIRMED, RegressionState.FALSE_POSITIVE)
_OPPORTUNITY = [opportunities.c[name] for name in FoundOpportunity.__dataclass_fields__]


def read_activity(
    connection: sa.Connection, periods: Sequence[tuple[datetime, datetime]]
) -> dict[str, AgentActivity]:
    """Agent to its first result, and whether it has any in each of the periods; one scan for all of them."""
    started = trials.c.started
    active = [
        sa.func.max(sa.case((sa.and_(started >= begins, started <= ends), 1), else_=0))
        for begins, ends in periods
    ]
    query = (
        sa.select(agents.c.name, sa.func.min(started), *active)
        .join(trials, trials.c.agent_id == agents.c.id)
        .where(is_own(connection, agents), started.is_not(None))
        .group_by(agents.c.name)
    )
    return {
        name: AgentActivity(first, tuple(map(bool, found)))
        for name, first, *found in connection.execute(query)
    }


def read_found_regressions(connection: sa.Connection) -> list[FoundRegression]:
    """Return all regressions, each with the latest judgement of a person on whether it is real."""
    changes = read_changes(connection)
    column = regressions.c
    query = sa.select(
        column.id, column.agent, column.suite, column.benchmark, column.metric, column.version_after, column.state,
        column.detected, column.is_marked,
    ).where(column.workspace_id == workspace_of(connection))  # fmt: skip
    found = []
    for row in connection.execute(query.order_by(regressions.c.detected)):
        state = RegressionState(row.state)
        # Those that were marked before changes were kept have only their state.
        states = [change.state for change in changes.get(row.id, ())] or ([state] if row.is_marked else [])
        judged = [judgement for judgement in states if judgement in _JUDGEMENTS]
        found.append(
            FoundRegression(
                row.agent, row.suite, row.benchmark, row.metric, row.version_after, row.detected, state,
                judged[-1] if judged else None,
            )
        )  # fmt: skip
    return found


def write_gate_result(connection: sa.Connection, result: GateRecord) -> None:
    row = {
        "workspace_id": workspace_of(connection),
        "run_id": result.run_id,
        "baseline": result.baseline,
        "at": result.at,
    }
    row |= {"passed": result.passed, "losses": [to_plain(loss) for loss in result.losses]}
    connection.execute(gate_results.insert(), row)


def read_gate_results(connection: sa.Connection) -> list[GateRecord]:
    """The oldest first."""
    query = sa.select(gate_results).where(is_own(connection, gate_results))
    return [
        GateRecord(
            row.run_id,
            row.baseline,
            row.at,
            row.passed,
            tuple(from_plain(GateLoss, loss) for loss in row.losses),
        )
        for row in connection.execute(query.order_by(gate_results.c.id))
    ]


def write_opportunities(
    connection: sa.Connection,
    places: Collection[tuple[str, str]],
    found: Iterable[FoundOpportunity],
    now: datetime,
) -> None:
    """Store what a profile found at these places, pairs of agent and place.

    What was found there before keeps its date; what is no longer found is resolved, and what comes back is open again.
    """
    listed = {
        (opportunity.agent, opportunity.place, opportunity.category, opportunity.location): opportunity
        for opportunity in found
    }
    known = {
        (opportunity.agent, opportunity.place, opportunity.category, opportunity.location): opportunity
        for opportunity in read_opportunities(connection)
        if (opportunity.agent, opportunity.place) in places
    }
    for key, opportunity in known.items():
        if key in listed or opportunity.resolved is None:
            values: dict[str, object] = {"resolved": None if key in listed else now}
            if key in listed:
                values |= {"impact": listed[key].impact, "run_id": listed[key].run_id}
            own = zip(opportunities.primary_key, (workspace_of(connection), *key), strict=True)
            chosen = (column == value for column, value in own)
            connection.execute(opportunities.update().where(*chosen).values(values))
    new = [
        {
            "workspace_id": workspace_of(connection),
            **{column.name: getattr(opportunity, column.name) for column in _OPPORTUNITY},
        }
        for key, opportunity in listed.items()
        if key not in known
    ]
    if new:
        connection.execute(opportunities.insert(), new)


def read_opportunities(connection: sa.Connection) -> list[FoundOpportunity]:
    """The oldest first."""
    query = sa.select(*_OPPORTUNITY).where(is_own(connection, opportunities))
    rows = connection.execute(query.order_by(opportunities.c.found)).mappings()
    return [from_plain(FoundOpportunity, dict(row)) for row in rows]
