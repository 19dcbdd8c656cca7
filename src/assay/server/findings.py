"""Runs by what they found: load tests, stress tests, teams and profiles, the newest of each kind with their key figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from assay.model.stress import STRESS
from assay.pipeline.profile import PROFILE
from assay.server.access import READ
from assay.server.analyses import RunDigest
from assay.server.answers import describe_route, respond
from assay.server.context import Context
from assay.server.parameters import Name
from assay.store.store import Store

router = APIRouter(tags=["results"])

Kind = Literal["load", "stress", "team", "profile"]
FindRuns = Callable[[Store, str | None, int, str | None], Sequence[str]]
"""The newest runs of a kind: of an agent if one is given, so many, and older than a run if one is given."""


def _find_by_experiment(experiment: str) -> FindRuns:
    return lambda store, agent, limit, before: store.find_runs_of(experiment, agent, limit, before)


FINDERS: Mapping[Kind, FindRuns] = {
    "load": _find_by_experiment("load"),
    "stress": _find_by_experiment(STRESS),
    "team": _find_by_experiment("team"),
    "profile": lambda store, agent, limit, before: store.find_profiled_runs(PROFILE, agent, limit, before),
}


class KeyFigure(BaseModel):
    """A figure with its unit, as the page of the run shows it."""

    label: str
    value: str
    note: str


class FindingRow(BaseModel):
    """A run of the kind; `/runs/{run_id}/findings/{kind}` has everything that it found."""

    run_id: str
    name: str
    status: str
    outcome: str
    agent_ids: list[str]
    started: datetime
    ended: datetime | None
    key_figures: list[KeyFigure]


class FindingPage(BaseModel):
    """Runs of a kind, the newest first."""

    kind: str
    findings: list[FindingRow]
    next_cursor: str | None


@router.get(
    "/findings/{kind}",
    **describe_route(READ, FindingPage, "Load tests, stress tests, teams or profiles", 404),
)
def list_findings(
    context: Context,
    kind: Kind,
    agent_id: Name | None = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
    cursor: Annotated[Name | None, Query(description="`next_cursor` of the page before.")] = None,
) -> Response:
    """The latest runs of a kind with their outcomes and key figures. What agents cost is at `/cost`."""
    run_ids = FINDERS[kind](context.store, agent_id, limit, cursor)
    rows = [_describe(context.analyses.summarise(context.store, run_id)) for run_id in run_ids]
    following = run_ids[-1] if len(run_ids) == limit else None
    return respond({"kind": kind, "findings": rows, "next_cursor": following})


def _describe(digest: RunDigest) -> dict[str, Any]:
    run = digest.run
    return {
        "run_id": run.id,
        "name": run.name,
        "status": run.state,
        "outcome": digest.outcome.text,
        "agent_ids": list(dict.fromkeys(stored.trial.agent.name for stored in run.trials)),
        "started": run.started,
        "ended": run.ended,
        "key_figures": [
            {"label": tile.label, "value": tile.value, "note": tile.note} for tile in digest.tiles
        ],
    }
