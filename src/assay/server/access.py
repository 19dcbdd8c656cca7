"""Who may do what: every request passes here before any route sees it.

While the database has no key, the server is for this machine alone: it listens on loopback, and refuses what a web page of another
site could make a browser send. With keys, every request but those of `PUBLIC` needs one whose scope is that of its route. A route
that names no scope needs `admin`, so none can be left open by mistake.

A program sends its key in the header `Authorization`. A browser logs in with it once and gets a session, whose secret is in a cookie.
Since a browser sends cookies whoever made it send the request, whatever changes something in a session must also hold a token that
only our own pages know.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from anyio.to_thread import run_sync
from fastapi import Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from assay.errors import StoreError
from assay.model.access import ApiKey, AuditEntry, Scope
from assay.server.answers import refuse
from assay.server.counts import RequestCounts
from assay.server.html import error_page
from assay.server.recent import Recent
from assay.store.store import Store

NEEDED, PAGE = "x-scope", "x-page"
READ, RUN, ADMIN, PUBLIC = ({NEEDED: name} for name in (*Scope, "public"))
"""For `openapi_extra` of a route: the scope that it needs."""
READ_PAGE, RUN_PAGE, ADMIN_PAGE, PUBLIC_PAGE = (
    {**needed, PAGE: True} for needed in (READ, RUN, ADMIN, PUBLIC)
)
"""The same for pages, which are answered with HTML and take forms in place of JSON."""
COOKIE = "assay_session"
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
RATE = 100
_REFUSED_RATE = 5
"""Refused keys a second of one address, before all of its requests have to wait."""
_KEYS_SECONDS = 1.0
"""So long after the first key was made, the server may still answer this machine without one."""
MOST_BYTES = 1 << 20
_TOO_LARGE = f"A request may have {MOST_BYTES:,} bytes."
_MOST_BUCKETS = 10_000
_SAFE = ("GET", "HEAD")
_UNPROVEN = "The request was not sent by a page of this session. Reload the page and try again."
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class RateLimit:
    """Token buckets: each name may do `rate` things a second, and twice as many at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def allows(self, name: str) -> bool:
        """Whether there is a token left; takes it if so."""
        now, most = monotonic(), 2 * self._rate
        left, at = self._buckets.pop(name, (most, now))
        left = min(most, left + (now - at) * self._rate)
        is_allowed = left >= 1.0
        # Put back at the end: the names that were not seen for longest come first, and go when there are too many.
        self._buckets[name] = (left - is_allowed, now)
        if len(self._buckets) > _MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        return is_allowed


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from; without a key where the database has none, or where none is needed."""

    key: ApiKey | None = None
    session: str = ""
    """The secret of the session; empty where the key itself came with the request."""

    @property
    def form_token(self) -> str:
        """What a form has to bring back in this session; nobody can derive it who does not know the session's secret."""
        return hashlib.sha256(f"form {self.session}".encode()).hexdigest() if self.session else ""

    def may(self, scope: str) -> bool:
        return self.key is None or self.key.scope.allows(Scope(scope))


class AccessControl:
    """The middleware around the application."""

    def __init__(
        self, app: ASGIApp, *, routes: Sequence[BaseRoute], store: Store, rate: float, counts: RequestCounts
    ) -> None:
        self._counts = counts
        self._app = app
        self._routes = routes
        self._store = store
        self._requests = RateLimit(rate)
        self._refusals = RateLimit(_REFUSED_RATE)
        self._has_keys = Recent[bool](_KEYS_SECONDS)

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, caller, begun = 500, Caller(), monotonic()
        route = self._find_route(scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            found = await run_sync(self._check, scope, route)
        except StoreError as error:
            found = _refuse(route, 503, str(error))
        if isinstance(found, Response):
            await found(scope, receive, send_with_headers)
        else:
            caller = found
            scope.setdefault("state", {})["caller"] = caller
            body = await _read_body(receive)
            handler: ASGIApp = self._app
            if body is None:
                handler = _refuse(route, 413, _TOO_LARGE)
            elif caller.session and scope["method"] not in _SAFE and not _has_token(scope, body, caller):
                handler = _refuse(route, 403, _UNPROVEN)
            await handler(scope, receive if body is None else _hand_on(body, receive), send_with_headers)
        path = str(getattr(route, "path_format", "other"))
        self._counts.add(scope["method"] if route else "any", path, status, monotonic() - begun)
        if scope["method"] not in _SAFE or status in (401, 403):
            await run_sync(self._note, scope, caller, status)

    def _check(self, scope: Connection, route: BaseRoute | None) -> Response | Caller:
        """The refusal of a request, or who it comes from."""
        headers = Headers(scope=scope)
        if int(headers.get("content-length", "0")) > MOST_BYTES:
            return _refuse(route, 413, _TOO_LARGE)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        expected = _FORM if is_page(route) else _JSON
        if has_body and headers.get("content-type", "").partition(";")[0].strip() != expected:
            return _refuse(
                route, 415, f"The body has to be {expected}, and the header Content-Type has to say so."
            )
        if has_body and is_page(route) and not _is_same_site(headers, is_required=True):
            return _refuse(route, 403, "The form was not sent by a page of this server.")
        # What there is not, and the schema, can be read.
        needed = Scope.READ if route is None else find_scope(route)
        if needed == "public":
            return self._check_attempts(scope, route)
        if not self.has_keys():
            return self._check_local(headers, route)
        return self._check_key(scope, headers, route, Scope(needed))

    def has_keys(self) -> bool:
        return self._has_keys.get("", lambda: bool(self._store.keys()))

    def _check_attempts(self, scope: Connection, route: BaseRoute | None) -> Response | Caller:
        """Whoever tries keys in the form of the login is slowed down like whoever tries them in a header."""
        if scope["method"] not in _SAFE and not self._refusals.allows(_address(scope)):
            return _refuse(route, 429, "There were too many attempts. Wait a moment.")
        return Caller()

    def _check_local(self, headers: Headers, route: BaseRoute | None) -> Response | Caller:
        """Another site may make a browser send requests here, by a form or by a name that it points at this machine."""
        host = urlsplit(f"//{headers.get('host', '')}").hostname
        if host not in _LOOPBACK or not _is_same_site(headers):
            told = "Without keys the server answers this machine only. Make one: assay key create NAME"
            return _refuse(route, 403, told)
        return Caller()

    def _check_key(
        self, scope: Connection, headers: Headers, route: BaseRoute | None, needed: Scope
    ) -> Response | Caller:
        now = datetime.now(UTC)
        caller = self._find_caller(headers, now)
        key = caller.key
        if key is None or not key.is_valid(now):
            if is_page(route) and scope["method"] in _SAFE:
                return _ask_to_log_in(scope)
            return self._refuse_key(route, key, _address(scope))
        if not self._requests.allows(key.prefix):
            told = "There are too many requests with this key. Wait a moment."
            return _refuse(route, 429, told, {"retry-after": "1"})
        if not key.scope.allows(needed):
            return _refuse(
                route, 403, f"This key may {key.scope}; the request needs a key that may {needed}."
            )
        self._store.note_use(key, now)
        return caller

    def _find_caller(self, headers: Headers, now: datetime) -> Caller:
        """By the key in the header, or else by the session in the cookie."""
        word, _, token = headers.get("authorization", "").partition(" ")
        if word.lower() == "bearer" and token:
            return Caller(self._store.find_key(token.strip()))
        session = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return Caller(self._store.find_session(session, now), session) if session else Caller()

    def _refuse_key(self, route: BaseRoute | None, key: ApiKey | None, address: str) -> Response:
        """Whoever has a key that ended learns that; whoever has none learns nothing about keys."""
        if not self._refusals.allows(address):
            return _refuse(route, 429, "There were too many requests without a valid key. Wait a moment.")
        told = "The request needs a key: Authorization: Bearer KEY."
        if key is not None:
            told = f"This key {'was revoked' if key.revoked else 'has expired'}. Make another: assay key create NAME"
        return _refuse(route, 401, told, {"www-authenticate": "Bearer"})

    def _find_route(self, scope: Connection) -> BaseRoute | None:
        return next((route for route in self._routes if route.matches(scope)[0] is Match.FULL), None)

    def _note(self, scope: Connection, caller: Caller, status: int) -> None:
        prefix = caller.key.prefix if caller.key else ""
        entry = AuditEntry(
            datetime.now(UTC), prefix, _address(scope), scope["method"], scope["path"][:500], status
        )
        try:
            self._store.audit(entry)
        except StoreError:
            return  # what was to be told about has been answered; the database is away


def find_scope(route: BaseRoute) -> str:
    """The scope that a route needs; `admin` for one that does not say."""
    extra: Mapping[str, Any] | None = getattr(route, "openapi_extra", None)
    return str((extra or {}).get(NEEDED, Scope.ADMIN))


def is_page(route: BaseRoute | None) -> bool:
    return bool((getattr(route, "openapi_extra", None) or {}).get(PAGE))


def _refuse(
    route: BaseRoute | None, status: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """As a page where a page was asked for, else as a document."""
    return (
        error_page(status, message, headers) if is_page(route) else refuse(status, message, headers=headers)
    )


def _ask_to_log_in(scope: Connection) -> Response:
    asked = scope["path"] + (
        f"?{scope['query_string'].decode('ascii', 'replace')}" if scope["query_string"] else ""
    )
    return RedirectResponse(f"/login?next={quote(asked, safe='')}", 303)


def _is_same_site(headers: Headers, *, is_required: bool = False) -> bool:
    """Whether a page of this server sent the request; one that does not say where it comes from, only if it need not."""
    origin = headers.get("origin")
    return urlsplit(origin).netloc == headers.get("host") if origin else not is_required


def _has_token(scope: Connection, body: bytes, caller: Caller) -> bool:
    headers = Headers(scope=scope)
    sent = headers.get("x-form-token", "")
    if headers.get("content-type", "").startswith(_FORM):
        sent = parse_qs(body.decode("utf-8", "replace")).get("form_token", [""])[0]
    return hmac.compare_digest(sent.encode(), caller.form_token.encode())


def _address(scope: Connection) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


async def _read_body(receive: Receive) -> bytes | None:
    """The body of a request, read to its end; None if it is too large, whatever length it stated."""
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return None
    return body


def _hand_on(body: bytes, receive: Receive) -> Receive:
    """What the application receives in place of the body that has been read."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def hand_on() -> Message:
        return whole.pop() if whole else await receive()

    return hand_on
