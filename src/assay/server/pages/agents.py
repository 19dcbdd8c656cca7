"""Agents: the list, and one agent with its newest results, its regressions, its runs, and a form to run a suite with it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from assay.errors import LookupFailed, PlanError, format_unknown_name
from assay.model.page import Cell, PageSection, Table, Tile
from assay.pipeline.registry import find_registered_agents, find_registered_suites
from assay.report.figures import NOTHING
from assay.report.pages.catalog import date_cell, number_cell, results_sections
from assay.report.pages.page import Page
from assay.report.pages.run_lists import runs_table
from assay.report.pages.timeline import regressions_table
from assay.server.access import READ_PAGE, RUN_PAGE
from assay.server.benchmarks import RunRequestBody, submit_run
from assay.server.context import Context
from assay.server.html import find_url
from assay.server.pages.controls import choose_word, page_links, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.units import count, format_count

router = page_router()

_AGENTS = 60
_ROWS = 10
_SUITES = 6
"""Suites whose results are shown at first; others are a click away."""


@router.get("/ui/agents", openapi_extra=READ_PAGE)
def list_agents(
    request: Request,
    context: Context,
    q: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    store = context.store
    registered = find_registered_agents(context.settings, store)
    stored = {found.name: found for found in context.keep_overview("agents", store.agent_overviews)}
    worse = Counter(regression.agent for regression in store.open_regressions())
    suites = find_registered_suites(context.settings, store).values()
    of_suites = {name: suite.name for suite in suites for name in suite.agents}
    all_names = sorted({*registered, *of_suites, *stored}, key=str.casefold)
    names = [name for name in all_names if q.casefold() in name.casefold()]
    rows = []
    for name in names[(page - 1) * _AGENTS : page * _AGENTS]:
        use, found = registered.get(name), stored.get(name)
        rows.append(
            [
                Cell(name, ref=f"agents/{name}"),
                Cell(use.type) if use else _describe_origin(of_suites.get(name)),
                Cell(use.version[:24] if use and use.version else NOTHING, tone="quiet"),
                number_cell(found.suites if found else 0),
                number_cell(found.versions if found else 0),
                number_cell(found.trials if found else 0),
                Cell(format_count(worse[name], "regression"), tone="bad", sort=worse[name])
                if worse[name]
                else Cell("none", tone="quiet", sort=0.0),
                date_cell(found.latest if found else None),
            ]
        )
    titles = [
        "Agent",
        "Type",
        "Version",
        "Suites",
        "Versions run",
        "Trials",
        "Open regressions",
        "Latest run",
    ]
    sections = [PageSection("All agents", [Table(titles, rows, words=(1, 2, 6, 7))])] if rows else []
    facts = [format_count(len(all_names), "agent"), f"{count(len(registered))} registered"]
    return show_page(
        request,
        Page("Agents", "agents", facts, sections),
        "Agents",
        "agents.html.j2",
        q=q,
        controls=[choose_word("q", "Name contains", q)],
        **page_links("/ui/agents", page, has_more=len(names) > page * _AGENTS, q=q),
    )


def _describe_origin(suite: str | None) -> Cell:
    return Cell(f"defined by {suite}" if suite else "not registered", tone="quiet")


@router.get("/ui/agents/{name:path}", openapi_extra=READ_PAGE)
def show_agent(request: Request, context: Context, name: Name, suite: Name | None = None) -> Response:
    """The newest results on the suites that it ran last, or on the one that is asked for."""
    store = context.store
    registered = find_registered_agents(context.settings, store)
    suites = find_registered_suites(context.settings, store)
    # A suite may define agents of its own, which can be run on it alone.
    runnable = [suite.name for suite in suites.values() if name in registered or name in suite.agents]
    trials = store.newest_trials(agent=name)
    runs = store.runs(limit=_ROWS, agent=name)
    if not runs and name not in registered and not runnable:
        known = {*registered, *(found.name for found in store.agent_overviews())}
        raise LookupFailed(format_unknown_name(name, "agents", known))
    found = store.regressions(name)
    still_open = [regression for regression in found if regression.counts]
    newest = sorted(trials, key=lambda trial: trial.started, reverse=True)
    tried_suites = list(dict.fromkeys(trial.suite for trial in newest))
    chosen = [suite] if suite else tried_suites[:_SUITES]
    listed = [trial for trial in newest if trial.suite in chosen]
    sections = results_sections(listed, store.ratings([trial.trial_id for trial in listed]))
    if still_open:
        sections.insert(
            0, PageSection("Open regressions", [regressions_table(still_open)], anchor="regressions")
        )
    if runs:
        sections.append(PageSection("Latest runs", [runs_table(runs)], anchor="runs"))
    use = registered.get(name)
    facts = [
        *([f"type {use.type}"] if use else []),
        *([f"version {use.version}"] if use and use.version else []),
        "registered" if use else f"defined by {runnable[0]}" if runnable else "not registered here",
    ]
    tiles = [
        Tile("suites with results", count(len(tried_suites)), format_count(len(trials), "benchmark")),
        Tile("open regressions", count(len(still_open)), f"{count(len(found))} found in all"),
        Tile("latest run", f"{runs[0].started:%Y-%m-%d}" if runs else "never", runs[0].name if runs else ""),
    ]
    return show_page(
        request,
        Page(name, "agent", facts, sections),
        "Agents",
        "agent.html.j2",
        agent=name,
        tiles=tiles,
        runnable=runnable,
        tried=tried_suites,
        others=[other for other in tried_suites if other not in chosen],
        links={
            "Timeline": write_address("/ui/timeline", agent=name),
            "Cost": write_address("/ui/cost", agent=name),
            "Compare": write_address("/ui/compare", a=name),
            "All runs": write_address("/ui/runs", agent=name),
        },
    )


@router.post("/ui/run", openapi_extra=RUN_PAGE)
def run_suite(
    context: Context,
    agent: Annotated[str, Form(max_length=200)] = "",
    suite: Annotated[str, Form(max_length=200)] = "",
    repetitions: Annotated[str, Form(max_length=9)] = "",
    limit: Annotated[str, Form(max_length=9)] = "",
) -> Response:
    """Queue the run as `POST /benchmarks/run` does, and go to its page, which follows it."""
    given = {"repetitions": repetitions, "limit": limit}
    configuration = {key: value for key, value in given.items() if value}
    try:
        body = RunRequestBody.model_validate(
            {"agent_id": agent, "suite_id": suite, "configuration": configuration}
        )
    except ValidationError as error:
        messages = [f"{problem['loc'][-1]}: {problem['msg']}" for problem in error.errors()]
        raise PlanError("; ".join(messages)) from None
    return RedirectResponse(find_url(f"runs/{submit_run(context, body).id}"), 303)
