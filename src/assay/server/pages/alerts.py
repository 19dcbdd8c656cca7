"""Regressions of all agents with their states, which people change here, and the alerts that were sent about them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Form, Query, Request, Response

from assay.errors import LookupFailed
from assay.model.regression import Regression, RegressionState, Severity
from assay.report.console.regressions import SEVERITY_TONES, impact_text
from assay.report.pages.alerts import alerts_section
from assay.report.pages.page import Page
from assay.server.access import READ_PAGE, RUN_PAGE
from assay.server.context import Author, Context
from assay.server.pages.controls import Control, Pager, choose_one, write_address
from assay.server.pages.shell import go_to, page_router, show_page
from assay.server.parameters import Name
from assay.store.regressions import RegressionFilter
from assay.store.store import Store
from assay.units import format_count

router = page_router()

_AT_ONCE, _ALERTS = 50, 50
_ORDER = list(reversed(Severity))
State = Literal["open", "all", "detected", "investigating", "confirmed", "resolved", "false_positive"]


@router.get("/ui/alerts", openapi_extra=READ_PAGE)
def show_alerts(
    request: Request,
    context: Context,
    severity: Severity | None = None,
    state: State = "open",
    agent: Name | None = None,
    suite: Name | None = None,
    skip: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """The most severe first, and among those the newest."""
    store = context.store
    chosen = RegressionFilter(
        agent,
        suite,
        None if state in ("open", "all") else RegressionState(state),
        severity,
        True if state == "open" else None,
    )
    found = store.regression_page(chosen, skip, _AT_ONCE + 1, by_severity=True)
    regressions = found[:_AT_ONCE]

    def address(place: int) -> str:
        query = {"severity": severity, "state": "" if state == "open" else state, "agent": agent}
        return write_address("/ui/alerts", **query, suite=suite, skip=place)

    counts = {level: sum(regression.severity is level for regression in regressions) for level in _ORDER}
    is_part = skip or len(found) > _AT_ONCE
    facts = [format_count(number, f"{level} regression") for level, number in counts.items() if number]
    sent = alerts_section(
        store.alerts(limit=_ALERTS), has_webhook=bool(context.settings.server.get("webhook"))
    )
    page = Page("Alerts", "alerts", [] if is_part else facts, [sent])
    return show_page(
        request,
        page,
        "Alerts",
        "alerts.html.j2",
        controls=_controls(store, severity, state, agent, suite),
        regressions=regressions,
        changes=store.regression_changes([regression.id for regression in regressions]),
        states=list(RegressionState),
        tones=SEVERITY_TONES,
        describe_impact=impact_text,
        is_filtered=bool(severity or agent or suite or state != "open"),
        back=address(skip),
        list_pager=Pager(
            address(max(0, skip - _AT_ONCE)) if skip else "",
            address(skip + _AT_ONCE) if len(found) > _AT_ONCE else "",
        ),
    )


def _controls(
    store: Store, severity: Severity | None, state: str, agent: str | None, suite: str | None
) -> list[Control]:
    return [
        choose_one("severity", "Severity", severity, _ORDER, none="all"),
        choose_one("state", "State", state, State.__args__),  # type: ignore[attr-defined]
        choose_one("agent", "Agent", agent, store.agents_with_trials(), none="all"),
        choose_one("suite", "Suite", suite, store.categories(), none="all"),
    ]


@router.post("/ui/alerts/mark", openapi_extra=RUN_PAGE)
def mark_regression(
    context: Context,
    author: Author,
    regression: Annotated[str, Form(min_length=1, max_length=64)],
    state: Annotated[RegressionState, Form()],
    note: Annotated[str, Form(max_length=2000)] = "",
    back: Annotated[str, Form(max_length=2000)] = "/ui/alerts",
) -> Response:
    """Give a regression a state, in the name of the key."""
    store = context.store
    found: list[Regression] = store.regression_page(RegressionFilter(id=regression), limit=1)
    if not found:
        raise LookupFailed(f"There is no regression '{regression}'.")
    store.mark_regression(found[0].agent, regression, state, note, author=author)
    return go_to(back)
