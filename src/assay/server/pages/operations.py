"""Coverage, schedules, success and search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from assay.errors import LookupFailed, format_unknown_name
from assay.model.coverage import CoverageAges, find_coverage_state
from assay.model.page import PageSection
from assay.pipeline.coverage import read_coverage_ages
from assay.pipeline.schedules import list_schedules
from assay.pipeline.search import search_everything
from assay.pipeline.success import measure_success
from assay.report.pages.operations import (
    coverage_counts_section,
    coverage_section,
    covered_section,
    scheduled_runs_section,
    schedules_section,
    search_sections,
    success_sections,
    success_tiles,
)
from assay.report.pages.page import Page
from assay.server.access import READ_PAGE
from assay.server.context import Context
from assay.server.pages.controls import Control, Pager, choose_one, keep, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.units import format_count

router = page_router()

_ROWS, _COLUMNS, _FOUND = 25, 12, 20
"""With more suites than columns, cells are counted by suite or by agent: a table of hundreds of agents on a hundred suites is unreadable."""
Only = Literal["stale", "never"] | None
By = Literal["suite", "agent"]


@router.get("/ui/coverage", openapi_extra=READ_PAGE)
def show_coverage(
    request: Request,
    context: Context,
    only: Only = None,
    by: By = "suite",
    suite: Name | None = None,
    agent: Name | None = None,
    after: Name | None = None,
) -> Response:
    """Which agents have results on which suites, and how old these are; rows behind the one that `after` names."""
    ages = read_coverage_ages(context.store, context.settings, datetime.now(UTC), context)
    _check_names(ages, suite, agent)
    names, build = _choose_rows(ages, only, by, suite, agent)
    start = names.index(after) + 1 if after in names else 0
    page_names, query = names[start : start + _ROWS], {"only": only, "suite": suite, "agent": agent}
    query["by"] = by if by != "suite" else None
    page = Page(
        "Coverage",
        "coverage",
        [
            f"{format_count(len(ages.agents), 'agent')} on {format_count(len(ages.suites), 'suite')}",
            *(f"{number:,} {state}" for state, number in ages.count_states().items()),
        ],
        [build(page_names)] if page_names and ages.suites else [],
    )
    return show_page(
        request, page, "Coverage", "coverage.html.j2",
        controls=_build_controls(ages, only, by, suite, agent),
        is_filtered=only is not None,
        list_pager=Pager(
            write_address("/ui/coverage", **query) if start else "",
            write_address("/ui/coverage", **query, after=page_names[-1]) if start + _ROWS < len(names) else "",
            f"{start + 1:,} to {start + len(page_names):,} of {len(names):,}",
        ),
    )  # fmt: skip


def _check_names(ages: CoverageAges, suite: str | None, agent: str | None) -> None:
    for name, known, kind in ((suite, ages.suites, "suites"), (agent, ages.agents, "agents")):
        if name is not None and name not in known:
            raise LookupFailed(format_unknown_name(name, kind, known))


def _choose_rows(
    ages: CoverageAges, only: Only, by: By, suite: str | None, agent: str | None
) -> tuple[Sequence[str], Callable[[Sequence[str]], PageSection]]:
    """The names of all rows, and what makes a section of some of them."""
    if suite is not None or agent is not None:
        title, kind = (f"Agents on {suite}", "agent") if suite else (f"Suites of {agent}", "suite")
        cells = ages.list_by_need(suite, agent)
        found = [name for name, age in cells.items() if only in (None, find_coverage_state(age))]
        return found, lambda names: covered_section(title, kind, [(name, cells[name]) for name in names])
    if len(ages.suites) <= _COLUMNS:
        found = [known_agent for known_agent in ages.agents if only in (None, *ages.list_states(known_agent))]
        return found, lambda names: coverage_section(ages, names)
    counted = ages.counts_by_suite if by == "suite" else ages.count_by_agent()
    rows = {row.name: row for row in counted if only is None or getattr(row, only)}
    number = len(ages.agents) if by == "suite" else len(ages.suites)
    return list(rows), lambda names: coverage_counts_section([rows[name] for name in names], by, number)


def _build_controls(
    ages: CoverageAges, only: Only, by: By, suite: str | None, agent: str | None
) -> list[Control]:
    is_counted = len(ages.suites) > _COLUMNS
    texts = [("", "all"), ("stale", "with a stale result"), ("never", "with a suite never run")]
    if suite or agent:
        chosen = keep("by", "agent"), choose_one("agent", "Agent", agent, ages.agents, none="all")
        of_suite = choose_one("suite", "Suite", suite, ages.suites, none="all")
        texts = [("", "all"), ("stale", "stale"), ("never", "never run")]
        label = "Agents" if suite else "Suites"
        return [*([of_suite] if suite else chosen), Control("only", label, only or "", options=texts)]
    if is_counted and by == "suite":
        texts[2] = ("never", "that an agent never ran")
    rows = Control("by", "Count by", by, options=[("suite", "suite"), ("agent", "agent")])
    label = "Suites" if is_counted and by == "suite" else "Agents"
    return [*([rows] if is_counted else []), Control("only", label, only or "", options=texts)]


@router.get("/ui/schedules", openapi_extra=READ_PAGE)
def show_schedules(request: Request, context: Context) -> Response:
    now = datetime.now(UTC)
    found = list_schedules(context.store, context.settings, now)
    sections = [schedules_section(found, now)] if found else []
    if (runs := scheduled_runs_section(found)) is not None:
        sections.append(runs)
    zone = str(context.settings.server.get("timezone", "UTC"))
    page = Page("Schedules", "schedules", [f"times in {zone}"], sections)
    return show_page(request, page, "Schedules", "schedules.html.j2")


@router.get("/ui/success", openapi_extra=READ_PAGE)
def show_success(request: Request, context: Context) -> Response:
    """How well benchmarking works here: the last 30 days, and month by month."""
    found = measure_success(context.store, context.settings, datetime.now(UTC))
    page = Page("Success", "success", ["last 30 days, with 95 % intervals"], success_sections(found))
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
    page = Page(f"Search for “{text}”" if text else "Search", "search", [], sections)
    return show_page(request, page, "Search", "search.html.j2", query=q)
