"""Who may do what: every request passes here before any route sees it.

While the database has no key, the server is for this machine alone: it listens on loopback, and refuses what a web page of another
site could make a browser send. With keys, every request but those of `PUBLIC` needs one whose scope is that of its route. A route
that names no scope needs `admin`, so none can be left open by mistake. A request sees the workspace of its key and no other.

A program sends its key in the header `Authorization`. A browser logs in with it once and gets a session, whose secret is in a cookie.
Since a browser sends cookies whichever page made it send the request, whatever changes something in a session must also hold a token that
only our own pages know.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from anyio.to_thread import run_sync
from fastapi import Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from assay.errors import StoreError
from assay.model.access import ApiKey, AuditEntry, Scope, is_use_due
from assay.server.answers import refuse
from assay.server.cache import Recent
from assay.server.context import CALLER, Contexts, RequestCaller
from assay.server.html import error_page
from assay.text import make_line

_log = logging.getLogger(__name__)

NEEDED, PAGE = "x-scope", "x-page"
READ, RUN, ADMIN, PUBLIC = ({NEEDED: name} for name in (*Scope, "public"))
"""For `openapi_extra` of a route: the scope that it needs."""
READ_PAGE, RUN_PAGE, ADMIN_PAGE, PUBLIC_PAGE = (
    {**needed, PAGE: True} for needed in (READ, RUN, ADMIN, PUBLIC)
)
"""The same for pages, which are answered with HTML and take forms in place of JSON."""
COOKIE = "assay_session"
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_SAFE = ("GET", "HEAD")
RATE = 100
_REFUSED_RATE = 5
"""Refused keys a second of one address, before all of its requests have to wait."""
_KEYS_SECONDS = 1.0
"""So long after the first key was made, the server may still answer this machine without one; so long after a key was revoked, it
may still be accepted."""
MOST_BYTES = 1 << 20
_TOO_LARGE = f"The request is too large; the limit is {MOST_BYTES:,} bytes."
_MOST_BUCKETS = 10_000
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
class RefusedRequest:
    """Why a request is refused."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, route: BaseRoute | None) -> Response:
        """Answer with a page if a page was asked for, and with a document otherwise."""
        if is_page(route):
            return error_page(self.status, self.message, self.headers)
        return refuse(self.status, self.message, headers=self.headers)


_HAS_NUL = RefusedRequest(422, "The request has a NUL character, which no name or text may have.")


class AccessControl:
    """The middleware around the application: who may do what, and how often.

    `_check` decides before a request is read: a NUL and a body of the wrong type or size are refused; a
    public route only limits attempts; without any key only this machine is served; otherwise the key must
    have the scope that the route demands, and its rate is limited. The body is read last, so that no client
    without a key can make the server read one.

    Every response gets the security headers, refusals and changes are noted in the log, and every request
    is counted by route and status. Valid keys are remembered for a short time by their hashes, so that
    most requests need neither a thread nor the database.
    """

    def __init__(self, app: ASGIApp, *, routes: Sequence[BaseRoute], contexts: Contexts, rate: float) -> None:
        self._app = app
        self._routes = routes
        self._contexts = contexts
        self._store = contexts.own.store
        self._requests = RateLimit(rate)
        self._refusals = RateLimit(_REFUSED_RATE)
        self._has_keys = Recent[bool](_KEYS_SECONDS)
        self._recent_keys = Recent[ApiKey](_KEYS_SECONDS)
        """Valid keys by the hash of their text, so that no text of a key is kept."""

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, begun, caller = 500, monotonic(), RequestCaller(self._contexts.own)
        route = self._find_route(scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                # Before anybody learns of it: what was answered is in the log.
                # What is refused before anybody looked at its key could fill the log.
                if status in (401, 403) or (scope["method"] not in _SAFE and status not in (413, 415, 429)):
                    await run_sync(self._note, scope, caller, status)
            await send(message)

        try:
            # A change of threads costs more than the check itself, and is for what may wait for the database.
            is_ready = self._has_in_memory(scope)
            checked = self._check(scope, route) if is_ready else await run_sync(self._check, scope, route)
            caller, refusal = checked
        except StoreError as error:
            refusal = RefusedRequest(503, str(error))
        body = b""
        if refusal is None:
            body, refusal = await _read_body(scope, receive, caller)
        if refusal is None:
            scope[CALLER] = caller
            await self._answer(scope, route, _hand_on(body, receive), send_with_headers)
        elif refusal.status == 401 and is_page(route) and scope["method"] in _SAFE:
            await _ask_to_log_in(scope)(scope, receive, send_with_headers)
        else:
            await refusal.answer(route)(scope, receive, send_with_headers)
        path = str(getattr(route, "path_format", "other"))
        method = scope["method"] if route else "any"
        caller.context.counts.add(method, path, status, monotonic() - begun)

    async def _answer(self, scope: Connection, route: BaseRoute | None, receive: Receive, send: Send) -> None:
        """Let the application answer; a fault of ours is answered like every other error, and logged."""
        has_begun = False

        async def watch(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception:
            if has_begun:
                raise
            _log.exception("%s %s", scope["method"], make_line(scope["path"]))
            text = "Internal server error. See the server log."
            await RefusedRequest(500, text).answer(route)(scope, receive, send)

    def _check(
        self, scope: Connection, route: BaseRoute | None
    ) -> tuple[RequestCaller, RefusedRequest | None]:
        """Find out who makes a request, and why it is refused; the refusal is None if it is allowed.

        What costs nothing is checked first, and the key is looked up only if the route needs one. A
        refused key still names its workspace, so that the refusal is logged and counted there.
        """
        headers, nobody = Headers(scope=scope), RequestCaller(self._contexts.own)
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            return nobody, _HAS_NUL
        if (refusal := _refuse_body(headers, is_form=is_page(route))) is not None:
            return nobody, refusal
        # What there is not, and the schema, can be read.
        needed = Scope.READ if route is None else find_scope(route)
        if needed == "public":
            return nobody, self._refuse_attempts(scope)
        if not self._has_keys.get("", self._store.has_keys):
            return nobody, _refuse_others(headers)
        key, session = self._find_key(headers)
        # What is done with a key concerns its workspace, also where the key is refused.
        caller = nobody if key is None else RequestCaller(self._contexts.find(key.workspace), key, session)
        return caller, self._refuse_key(key, Scope(needed), _address(scope))

    def _find_key(self, headers: Headers) -> tuple[ApiKey | None, str]:
        """The key in the header, or else that of the session in the cookie, with the secret of the session."""
        if token := find_token(headers):
            return self._find_known_key(token), ""
        session = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return (self._store.find_session(session), session) if session else (None, "")

    def _find_known_key(self, token: str) -> ApiKey | None:
        """A key that was valid a moment ago is not looked up again. Whether it has expired is asked every time."""
        hashed = _hash_token(token)
        key = self._recent_keys.peek(hashed) or self._store.find_key(token)
        now = datetime.now(UTC)
        if key is not None and key.is_valid(now) and self._recent_keys.peek(hashed) is None:
            self._recent_keys.put(hashed, replace(key, last_used=now) if is_use_due(key, now) else key)
        return key

    def _has_in_memory(self, scope: Connection) -> bool:
        """Say whether a request can be checked without asking the database.

        If so it is checked in the event loop: a change of threads would cost more than the check itself.
        """
        has_keys = self._has_keys.peek("")
        if has_keys is None:
            return False
        key = self._recent_keys.peek(_hash_token(find_token(Headers(scope=scope)))) if has_keys else None
        return not has_keys or (key is not None and not is_use_due(key, datetime.now(UTC)))

    def _refuse_attempts(self, scope: Connection) -> RefusedRequest | None:
        """Attempts to guess keys in the login form are slowed down like those in a header."""
        if scope["method"] in _SAFE or self._refusals.allows(_address(scope)):
            return None
        return RefusedRequest(429, "Too many attempts. Wait a moment.")

    def _refuse_key(self, key: ApiKey | None, needed: Scope, address: str) -> RefusedRequest | None:
        now = datetime.now(UTC)
        if key is None or not key.is_valid(now):
            return self._refuse_invalid(key, address)
        if not self._requests.allows(key.prefix):
            message = "Too many requests with this key. Wait a moment."
            return RefusedRequest(429, message, {"retry-after": "1"})
        if not key.scope.allows(needed):
            return RefusedRequest(403, f"This key has the scope '{key.scope}'; the request needs '{needed}'.")
        with suppress(StoreError):  # a database that cannot be written to can be read
            self._store.note_use(key, now)
        return None

    def _refuse_invalid(self, key: ApiKey | None, address: str) -> RefusedRequest:
        """The holder of a key that ended learns that; a client without a key learns nothing about keys."""
        if not self._refusals.allows(address):
            return RefusedRequest(429, "Too many requests without a valid key. Wait a moment.")
        message = "The request needs a key: Authorization: Bearer KEY."
        if key is not None:
            message = f"This key {'was revoked' if key.revoked else 'has expired'}. Make another: assay key create NAME"
        return RefusedRequest(401, message, {"www-authenticate": "Bearer"})

    def _find_route(self, scope: Connection) -> BaseRoute | None:
        return next((route for route in self._routes if route.matches(scope)[0] is Match.FULL), None)

    def _note(self, scope: Connection, caller: RequestCaller, status: int) -> None:
        key = caller.key.prefix if caller.key else ""
        entry = AuditEntry(
            datetime.now(UTC), key, _address(scope), scope["method"], make_line(scope["path"][:500]), status
        )
        try:
            caller.context.store.audit(entry)
        except StoreError:
            return  # what was to be told about has been answered; the database is away


def find_token(headers: Headers) -> str:
    """The text of the key that a request has; empty where it has none."""
    word, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if word.lower() == "bearer" else ""


def _hash_token(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()


def is_page(route: BaseRoute | None) -> bool:
    return bool((getattr(route, "openapi_extra", None) or {}).get(PAGE))


def _ask_to_log_in(scope: Connection) -> Response:
    query = scope["query_string"].decode("ascii", "replace")
    path = scope.get("raw_path", b"/").decode("ascii", "replace")
    address = f"{path}?{query}" if query else path
    return RedirectResponse(f"/login?next={quote(address, safe='')}", 303)


def _refuse_body(headers: Headers, *, is_form: bool) -> RefusedRequest | None:
    """A body that is too large, or that a form of another site could send."""
    if int(headers.get("content-length", "0")) > MOST_BYTES:
        return RefusedRequest(413, _TOO_LARGE)
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return None
    expected = _FORM if is_form else _JSON
    if headers.get("content-type", "").partition(";")[0].strip() != expected:
        return RefusedRequest(415, f"The body must be {expected}, declared by the header Content-Type.")
    if is_form and not _is_same_site(headers, is_required=True):
        return RefusedRequest(403, "The form was not sent from a page of this server.")
    return None


def _is_same_site(headers: Headers, *, is_required: bool = False) -> bool:
    """Whether a page of this server sent the request; one that does not say where it comes from, only if it need not."""
    origin = headers.get("origin")
    return _split(origin).netloc == headers.get("host") if origin else not is_required


def is_loopback_host(host: str) -> bool:
    """Whether a header `Host` names this machine."""
    return _split(f"//{host}").hostname in _LOOPBACK


def _split(address: str) -> SplitResult:
    """Split an address that anybody may have sent; text that is no address has no parts."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _refuse_others(headers: Headers) -> RefusedRequest | None:
    """Another site may make a browser send requests here, by a form or by a name that it points at this machine."""
    # Following a link is fine; anything else that another site makes a browser send is not.
    is_foreign = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
    if not is_loopback_host(headers.get("host", "")) or is_foreign or not _is_same_site(headers):
        message = "Without keys the server answers only this machine. Create one: assay key create NAME"
        return RefusedRequest(403, message)
    return None


def find_scope(route: BaseRoute) -> str:
    """The scope that a route needs; `admin` for one that does not say."""
    extra: Mapping[str, Any] | None = getattr(route, "openapi_extra", None)
    return str((extra or {}).get(NEEDED, Scope.ADMIN))


def _address(scope: Connection) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


async def _read_body(
    scope: Connection, receive: Receive, caller: RequestCaller
) -> tuple[bytes, RefusedRequest | None]:
    """The body of a request, read to its end; refused if it is too large, or lacks the token of its session."""
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return b"", RefusedRequest(413, _TOO_LARGE)
    if b"\x00" in body or b"%00" in body:
        return b"", _HAS_NUL
    if caller.session and scope["method"] not in _SAFE and not _has_token(scope, body, caller):
        text = "The request was not sent from a page of this session. Reload the page and try again."
        return b"", RefusedRequest(403, text)
    return body, None


def _has_token(scope: Connection, body: bytes, caller: RequestCaller) -> bool:
    headers = Headers(scope=scope)
    sent = headers.get("x-form-token", "")
    if headers.get("content-type", "").startswith(_FORM):
        sent = parse_qs(body.decode("utf-8", "replace")).get("form_token", [""])[0]
    return caller.has_form_token(sent)


def _hand_on(body: bytes, receive: Receive) -> Receive:
    """What the application receives in place of the body that has been read."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def hand_on() -> Message:
        return whole.pop() if whole else await receive()

    return hand_on
