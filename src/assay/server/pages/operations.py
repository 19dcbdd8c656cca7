"""Coverage, schedules, success and search."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from assay.pipeline.coverage import measure_coverage
from assay.pipeline.schedules import list_schedules
from assay.pipeline.search import search_everything
from assay.pipeline.success import measure_success
from assay.report.pages.operations import (
    coverage_section,
    scheduled_runs_section,
    schedules_section,
    search_sections,
    success_sections,
    success_tiles,
)
from assay.report.pages.page import Page
from assay.server.access import READ_PAGE
from assay.server.context import Context
from assay.server.pages.controls import Control, Pager, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.units import format_count

router = page_router()

_AGENTS, _MOST_AGENTS, _FOUND = 12, 1000, 20
"""With 50 suites, a page of so many agents stays below 100 kB."""


@router.get("/ui/coverage", openapi_extra=READ_PAGE)
def show_coverage(
    request: Request,
    context: Context,
    only: Literal["stale", "never"] | None = None,
    after: Name | None = None,
) -> Response:
    """Which agents have results on which suites, and how old these are; agents behind `after` by name."""
    # Which agents are wanted is not known before their cells are.
    most = _AGENTS if only is None else _MOST_AGENTS
    found = measure_coverage(context.store, context.settings, datetime.now(UTC), after or "", most)
    wanted = {cell.agent for cell in found.cells if only in (None, cell.state)}
    agents = [agent for agent in found.agents if agent in wanted]
    shown = agents[:_AGENTS]
    has_more = len(agents) > _AGENTS or (found.next_agent is not None and bool(shown))
    total = sum(found.counts.values()) // max(1, len(found.suites))
    page = Page(
        "Coverage",
        "coverage",
        [
            f"{format_count(total, 'agent')} on {format_count(len(found.suites), 'suite')}",
            *(f"{number:,} {state}" for state, number in found.counts.items()),
        ],
        "",
        False,
        [],
        [coverage_section(found, shown)] if shown and found.suites else [],
    )
    texts = [("", "all"), ("stale", "with a stale result"), ("never", "with a suite never run")]
    return show_page(
        request, page, "Coverage", "coverage.html.j2",
        controls=[Control("only", "Agents", only or "", options=texts)],
        is_filtered=only is not None,
        list_pager=Pager(
            write_address("/ui/coverage", only=only) if after else "",
            write_address("/ui/coverage", only=only, after=shown[-1]) if has_more else "",
        ),
    )  # fmt: skip


@router.get("/ui/schedules", openapi_extra=READ_PAGE)
def show_schedules(request: Request, context: Context) -> Response:
    now = datetime.now(UTC)
    found = list_schedules(context.store, context.settings, now)
    sections = [schedules_section(found, now)] if found else []
    if (runs := scheduled_runs_section(found)) is not None:
        sections.append(runs)
    zone = str(context.settings.server.get("timezone", "UTC"))
    page = Page("Schedules", "schedules", [f"times in {zone}"], "", False, [], sections)
    return show_page(request, page, "Schedules", "schedules.html.j2")


@router.get("/ui/success", openapi_extra=READ_PAGE)
def show_success(request: Request, context: Context) -> Response:
    """How well benchmarking works here: the last 30 days, and month by month."""
    found = measure_success(context.store, context.settings, datetime.now(UTC))
    page = Page(
        "Success", "success", ["last 30 days, with 95 % intervals"], "", False, [], success_sections(found)
    )
    return show_page(request, page, "Success", tiles=success_tiles(found.last_30_days))


@router.get("/ui/search", openapi_extra=READ_PAGE)
def show_search(
    request: Request, context: Context, q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Agents, suites, runs and cases by a part of their names."""
    text = q.strip()
    sections = (
        search_sections(search_everything(context.store, context.settings, text, _FOUND), _FOUND)
        if text
        else []
    )
    page = Page(f"Search for “{text}”" if text else "Search", "search", [], "", False, [], sections)
    return show_page(request, page, "Search", "search.html.j2", query=q)
