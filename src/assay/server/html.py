"""How the server writes HTML: the templates, the frame around every page, and the files that pages load.

Everything on a page is escaped by the templates, and the security policy lets only the scripts and styles of this server run. So
whatever an agent answered, and however somebody named it, stays text.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, FileSystemLoader

from assay.model.page import Chart, PageSection
from assay.model.rating import is_pass
from assay.model.redaction import known_secrets
from assay.model.scored_answer import ScoredAnswer
from assay.report.charts.theme import config
from assay.report.console.regressions import loss_text
from assay.report.pages.html import chart_library, environment
from assay.report.pages.html_side_by_side import ChartPlace, Gallery
from assay.report.side_by_side import as_text
from assay.report.warnings import split_warnings
from assay.units import show as show_figure

if TYPE_CHECKING:
    from assay.report.pages.page import Page

_HERE = Path(__file__).parent
_SHARED = Path(__file__).parents[1] / "report" / "pages" / "templates"
_PAGE_HEADERS = {
    # Charts and meters set single properties of elements, which is all that `style-src-attr` allows.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    # Without any referrer a browser would not say either that a form comes from this server.
    "referrer-policy": "same-origin",
    "vary": "Accept-Encoding",
}
_COMPRESSION = 5
_ANSWER = 4000
"""Characters of an answer that are shown in a list; its own page has all of it."""
_STATUS_TITLES = {
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    422: "Invalid request",
    429: "Too many requests",
    503: "The database cannot be reached",
}


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation."""

    name: str
    path: str
    scope: str = "read"


NAVIGATION: Mapping[str, Sequence[Place]] = {
    "Overview": (
        Place("Dashboard", "/"),
        Place("Leaderboard", "/ui/leaderboard"),
        Place("Radar", "/ui/radar"),
        Place("Compare", "/ui/compare"),
        Place("Timeline", "/ui/timeline"),
        Place("Cost", "/ui/cost"),
    ),
    "Results": (
        Place("Runs", "/ui/runs"),
        Place("Agents", "/ui/agents"),
        Place("Suites", "/ui/suites"),
        Place("Load", "/ui/load"),
        Place("Stress", "/ui/stress"),
        Place("Teams", "/ui/teams"),
        Place("Profiles", "/ui/profiles"),
    ),
    "Operations": (
        Place("Alerts", "/ui/alerts"),
        Place("Review", "/ui/review"),
        Place("Coverage", "/ui/coverage"),
        Place("Schedules", "/ui/schedules"),
        Place("Success", "/ui/success"),
        Place("Settings", "/ui/settings"),
    ),
}
"""The pages of the dashboard, by group, in the order of the navigation."""


def find_url(ref: str) -> str:
    """The address of what a page names: `agents/NAME`, `suites/NAME`, `runs/ID`, or `cases?` or `coverage?` and a query, which is encoded.

    >>> find_url("agents/a?b"), find_url("cases?suite=desk&case=c+1")
    ('/ui/agents/a%3Fb', '/ui/cases?suite=desk&case=c+1')
    """
    return f"/ui/{ref}" if ref.startswith(("cases?", "coverage?")) else f"/ui/{quote(ref, safe='/')}"


@cache
def templates() -> Environment:
    """The templates of the reports and those of the server, which come first."""
    jinja = environment()
    jinja.loader = ChoiceLoader([FileSystemLoader(_HERE / "templates"), FileSystemLoader(_SHARED)])
    jinja.globals.update(
        find_url=find_url,
        navigation=NAVIGATION,
        static=find_static_url,
        chart_configs={"light": config(dark=False), "dark": config(dark=True)},
        answer_text=partial(as_text, limit=_ANSWER),
        is_pass=is_pass,
        loss_text=loss_text,
        show_value=show_figure,
    )
    jinja.filters["group_answers"] = group_answers
    return jinja


def group_answers(answers: Sequence[ScoredAnswer]) -> list[list[ScoredAnswer]]:
    """Answers that are alike, in word and score, are shown once."""
    groups: dict[str, list[ScoredAnswer]] = {}
    for answer in answers:
        content = as_text([answer.status, answer.output, answer.error, dict(answer.scores)], limit=10**9)
        groups.setdefault(content, []).append(answer)
    return list(groups.values())


class Hanger:
    """Gives each chart of a page its place when the template comes to it, and keeps what the script draws there."""

    def __init__(self, specs: Mapping[str, Any]) -> None:
        self._others = specs
        self._gallery = Gallery()

    def __call__(self, chart: Chart) -> ChartPlace:
        return self._gallery.hang(chart)

    @property
    def specs(self) -> Mapping[str, Any]:
        return {**self._others, **self._gallery.specs}


def render(
    template: str,
    /,
    status: int = 200,
    *,
    accepted: str = "",
    specs: Mapping[str, Any] = MappingProxyType({}),
    **context: Any,
) -> HTMLResponse:
    """A page of the server as it is sent: without secrets, and with the policy that keeps it inert.

    `specs` are charts whose places are in the context already, `accepted` is the header Accept-Encoding of the request. Nothing
    secret is in a page that its length could tell: the tokens of its forms are other ones each time.
    """
    hang = Hanger(specs)
    written = templates().get_template(template).render(hang=hang, **context)
    if known_secrets().may_be_in(written):
        written = str(known_secrets().redact(written))
    if "gzip" not in accepted.lower():
        return HTMLResponse(written, status, _PAGE_HEADERS)
    compressed = gzip.compress(written.encode(), _COMPRESSION, mtime=0)
    return HTMLResponse(compressed, status, {**_PAGE_HEADERS, "content-encoding": "gzip"})


def describe_page(page: Page) -> dict[str, object]:
    """What the template of a page needs to know of the pages that commands write."""
    major, others = split_warnings(page.warnings)
    return {"page": page, "sections": page.sections, "shown_warnings": major, "other_warnings": others}


def error_page(status: int, message: str, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """Build the page that takes the place of one that cannot be shown."""
    title = _STATUS_TITLES.get(status, "Something went wrong")
    response = render("error.html.j2", status, title=title, message=message, caller=None, active="")
    response.headers.update(headers or {})
    return response


def find_section(sections: Sequence[PageSection], title: str) -> PageSection | None:
    return next((section for section in sections if section.title == title), None)


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that pages load; its address changes with its content, so browsers may keep it for good."""

    content: bytes
    """Compressed."""
    media_type: str
    digest: str


_PARTS: Mapping[str, tuple[str, Sequence[Path]]] = {
    "assay.css": ("text/css", (_SHARED / "report.css", _HERE / "static" / "dashboard.css")),
    "page.js": ("text/javascript", (_SHARED / "page.js",)),
    "dashboard.js": ("text/javascript", (_HERE / "static" / "dashboard.js",)),
    "icon.svg": ("image/svg+xml", (_HERE / "static" / "icon.svg",)),
}
VEGA = "vega.js"


@cache
def find_static(name: str) -> StaticFile | None:
    """A file by its name; None if there is no such file. Nothing else can be asked for, wherever a name points."""
    if name == VEGA:
        content, media_type = chart_library(), "text/javascript"
    elif name in _PARTS:
        media_type, parts = _PARTS[name]
        content = gzip.compress(b"".join(part.read_bytes() for part in parts), 9, mtime=0)
    else:
        return None
    return StaticFile(content, f"{media_type}; charset=utf-8", sha256(content).hexdigest()[:16])


def find_static_url(name: str) -> str:
    found = find_static(name)
    assert found is not None, name
    return f"/static/{name}?v={found.digest}"
