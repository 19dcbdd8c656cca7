"""Keys, limits, the database and the audit log. Secrets are never shown, but for a new key, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Form, Query, Request, Response

from assay import __version__
from assay.model.access import ApiKey, Scope
from assay.model.page import Cell, PageSection, Table
from assay.report.pages.access import audit_section, format_day
from assay.report.pages.page import Page
from assay.server.access import ADMIN_PAGE, MOST_BYTES, RATE, READ_PAGE
from assay.server.context import Context, ServerContext, caller_of
from assay.server.pages.controls import Pager, write_address
from assay.server.pages.login import SESSION
from assay.server.pages.shell import go_to, page_router, show_page
from assay.units import format_count, size

router = page_router()

_ENTRIES = 50
_PATH = "/ui/settings"
KeyName = Annotated[str, Form(min_length=1, max_length=100, pattern=r"^\S(.*\S)?$")]


@router.get(_PATH, openapi_extra=READ_PAGE)
def show_settings(
    request: Request, context: Context, before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> Response:
    """Keys and the audit log are for those who may administer."""
    return _show(request, context, before)


def _show(
    request: Request,
    context: ServerContext,
    before: int | None = None,
    created: tuple[ApiKey, str] | None = None,
) -> Response:
    store, caller = context.store, caller_of(request)
    is_admin = caller.may(Scope.ADMIN)
    sections = [_describe_server(context), _describe_database(context)]
    keys: list[ApiKey] = []
    pager = Pager()
    if is_admin:
        keys = store.keys()
        entries = store.audit_log(before, _ENTRIES)
        sections.append(audit_section(entries))
        older = write_address(_PATH, before=entries[-1][0]) if len(entries) == _ENTRIES else ""
        pager = Pager(_PATH if before else "", f"{older}#audit" if older else "")
    page = Page("Settings", "settings", [f"Assay {__version__}"], sections)
    return show_page(
        request,
        page,
        "Settings",
        "settings.html.j2",
        keys=keys,
        is_admin=is_admin,
        created=created,
        scopes=list(Scope),
        now=datetime.now(UTC),
        format_day=format_day,
        list_pager=pager,
    )


@router.post(f"{_PATH}/keys", openapi_extra=ADMIN_PAGE)
def create_key(
    request: Request,
    context: Context,
    name: KeyName,
    scope: Annotated[Scope, Form()] = Scope.READ,
    days: Annotated[int, Form(ge=0, le=3650)] = 0,
) -> Response:
    """The key is in this answer and nowhere else, so there is no page to redirect to."""
    now = datetime.now(UTC)
    created = context.store.create_key(name, scope, now + timedelta(days=days) if days else None, now)
    return _show(request, context, created=created)


@router.post(f"{_PATH}/keys/revoke", openapi_extra=ADMIN_PAGE)
def revoke_key(context: Context, prefix: Annotated[str, Form(min_length=1, max_length=64)]) -> Response:
    context.store.revoke_key(prefix)
    return go_to(f"{_PATH}#keys")


def _describe_server(context: ServerContext) -> PageSection:
    """Limits as they are in effect; of a webhook only whether there is one, since its address is a secret."""
    server = context.settings.server
    options = ", ".join(server.get("agent_options", ())) or "none"
    rows = [
        ("Runs at once", str(context.max_runs), "max_runs"),
        ("Runs that may wait", str(context.max_queue), "max_queue"),
        ("Requests per key", f"{server.get('rate', RATE)} a second", "rate"),
        ("Timeout of synchronous runs", f"{context.sync_seconds:g} s", "sync_seconds"),
        ("Agent options that requests may set", options, "agent_options"),
        ("Time zone of schedules", str(server.get("timezone", "UTC")), "timezone"),
        ("Webhook for alerts", "set" if server.get("webhook") else "not set", "webhook"),
        ("Size of a request", size(MOST_BYTES), ""),
        ("Length of a session", f"{SESSION.total_seconds() / 3600:g} h", ""),
    ]
    table = Table(
        ["Limit", "Value", "Setting"],
        [[Cell(name), Cell(value), Cell(f"[server] {key}" if key else "fixed", tone="quiet")] for name, value, key in rows],
        words=(1, 2),
    )  # fmt: skip
    return PageSection("Server", [table], anchor="server")


def _describe_database(context: ServerContext) -> PageSection:
    facts = context.store.facts()
    stored = context.store.count_runs()
    states = ", ".join(f"{number:,} {state}" for state, number in sorted(stored.items())) or "none"
    rows = [
        ("Database", str(facts["dialect"])),
        ("Size", size(float(str(facts["size_bytes"])))),
        ("Schema", str(facts["revision"])),
        ("Workspace", context.store.workspace),
        ("Runs", states),
    ]
    table = Table(["Fact", "Value"], [[Cell(name), Cell(value)] for name, value in rows], words=(1,))
    total = sum(stored.values())
    return PageSection("Database", [table], format_count(total, "run"), anchor="database")
