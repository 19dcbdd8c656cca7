"""Agents and suites: what can be run here, and what has results."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from assay.errors import LookupFailed, format_unknown_name
from assay.pipeline.registry import find_registered_agents, find_registered_suites
from assay.report.documents.specification import suite_answer_document
from assay.server.access import READ
from assay.server.answers import describe_route, respond
from assay.server.context import Context
from assay.server.parameters import Name

router = APIRouter(tags=["catalog"])


class AgentRow(BaseModel):
    """An agent that is registered or has results."""

    agent_id: str
    type: str | None = Field(description="Null for an agent that is not registered here.")
    agent_version: str | None
    is_registered: bool = Field(description="Whether it can be run.")
    has_results: bool


class AgentList(BaseModel):
    agents: list[AgentRow]


@router.get("/agents", **describe_route(READ, AgentList, "Agents"))
def list_agents(context: Context) -> Response:
    """Registered agents and those with results, by name. Definitions are not included."""
    registered = find_registered_agents(context.settings, context.store)
    ran = set(context.store.agents_with_trials())
    rows = [
        {
            "agent_id": name,
            "type": registered[name].type if name in registered else None,
            "agent_version": registered[name].version or None if name in registered else None,
            "is_registered": name in registered,
            "has_results": name in ran,
        }
        for name in sorted({*registered, *ran})
    ]
    return respond({"agents": rows})


class SuiteRow(BaseModel):
    """A suite that is registered or has results."""

    suite_id: str
    version: str
    category: str
    is_registered: bool = Field(description="Whether it can be run.")
    has_results: bool


class SuiteList(BaseModel):
    suites: list[SuiteRow]


class SuiteAnswer(BaseModel):
    """A suite without its cases, under the names of the specification."""

    model_config = ConfigDict(extra="allow")

    suite_id: str
    suite_name: str
    version: str
    category: str
    description: str
    benchmarks: list[dict[str, Any]]
    baseline_scores: list[dict[str, Any]]
    created_at: str | None


@router.get("/suites", **describe_route(READ, SuiteList, "Suites"))
def list_suites(context: Context) -> Response:
    """Registered suites and those with results, by name."""
    registered = find_registered_suites(context.settings, context.store)
    ran = context.store.categories()
    rows = [
        {
            "suite_id": name,
            "version": registered[name].version if name in registered else "",
            "category": ran.get(name) or (registered[name].category if name in registered else ""),
            "is_registered": name in registered,
            "has_results": name in ran,
        }
        for name in sorted({*registered, *ran})
    ]
    return respond({"suites": rows})


@router.get("/suites/{suite_id:path}", **describe_route(READ, SuiteAnswer, "One suite", 404))
def read_suite(context: Context, suite_id: Name) -> Response:
    """As it is registered, or else as its latest run was made with it."""
    store = context.store
    registered = find_registered_suites(context.settings, store)
    suite = registered[suite_id].read(store) if suite_id in registered else store.latest_suite(suite_id)
    if suite is None:
        raise LookupFailed(format_unknown_name(suite_id, "suites", {*registered, *store.categories()}))
    return respond(suite_answer_document(suite, datetime.now(context.settings.zone)))
