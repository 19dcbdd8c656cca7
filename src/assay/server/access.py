"""Who may do what: every request passes here before any route sees it.

While the database has no key, the server is for this machine alone: it listens on loopback, and refuses what a web page of another
site could make a browser send. With keys, every request but those of `PUBLIC` needs one whose scope is that of its route. A route
that names no scope needs `admin`, so none can be left open by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from fastapi import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from assay.errors import StoreError
from assay.model.access import ApiKey, AuditEntry, Scope, is_use_due
from assay.server.answers import refuse
from assay.server.counts import RequestCounts
from assay.server.recent import Recent
from assay.store.store import Store

NEEDED = "x-scope"
READ, RUN, ADMIN, PUBLIC = ({NEEDED: name} for name in (*Scope, "public"))
"""For `openapi_extra` of a route: the scope that it needs."""
RATE = 100
_REFUSED_RATE = 5
"""Refused keys a second of one address, before all of its requests have to wait."""
_KEYS_SECONDS = 1.0
"""So long after the first key was made, the server may still answer this machine without one; so long after a key was revoked, it
may still be accepted."""
_MOST_BYTES = 1 << 20
_TOO_LARGE = f"A request may have {_MOST_BYTES:,} bytes."
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
        self._recent_keys = Recent[ApiKey](_KEYS_SECONDS)
        """Valid keys by the hash of their text, so that no text of a key is kept."""

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, used, begun = 500, "", monotonic()
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
            # A change of threads costs more than the check itself, and is for what may wait for the database.
            is_ready = self._has_in_memory(scope)
            found = self._check(scope, route) if is_ready else await run_sync(self._check, scope, route)
        except StoreError as error:
            found = refuse(503, str(error))
        if isinstance(found, Response):
            await found(scope, receive, send_with_headers)
        else:
            used = found
            body = await _read_body(receive)
            handler = refuse(413, _TOO_LARGE) if body is None else self._app
            await handler(scope, body or receive, send_with_headers)
        path = str(getattr(route, "path_format", "other"))
        self._counts.add(scope["method"] if route else "any", path, status, monotonic() - begun)
        if scope["method"] not in ("GET", "HEAD") or status in (401, 403):
            await run_sync(self._note, scope, used, status)

    def _has_in_memory(self, scope: Connection) -> bool:
        """Whether a request can be checked without asking the database."""
        has_keys = self._has_keys.peek("")
        if has_keys is None:
            return False
        key = self._recent_keys.peek(_hash_token(_read_token(Headers(scope=scope)))) if has_keys else None
        return not has_keys or (key is not None and not is_use_due(key, datetime.now(UTC)))

    def _find_key(self, token: str) -> ApiKey | None:
        """A key that was valid a moment ago is not looked up again. Whether it has expired is asked every time."""
        hashed = _hash_token(token)
        key = self._recent_keys.peek(hashed) or self._store.find_key(token)
        now = datetime.now(UTC)
        if key is not None and key.is_valid(now) and self._recent_keys.peek(hashed) is None:
            self._recent_keys.put(hashed, replace(key, last_used=now) if is_use_due(key, now) else key)
        return key

    def _check(self, scope: Connection, route: BaseRoute | None) -> Response | str:
        """The refusal of a request, or the prefix of the key that it may go on with."""
        headers = Headers(scope=scope)
        if int(headers.get("content-length", "0")) > _MOST_BYTES:
            return refuse(413, _TOO_LARGE)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if has_body and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refuse(415, "A request is JSON, with the header Content-Type: application/json.")
        # What there is not, and the schema, can be read.
        needed = Scope.READ if route is None else find_scope(route)
        if needed == "public":
            return ""
        if not self._has_keys.get("", lambda: bool(self._store.keys())):
            return self._check_local(headers)
        return self._check_key(headers, Scope(needed), _address(scope))

    def _check_local(self, headers: Headers) -> Response | str:
        """Another site may make a browser send requests here, by a form or by a name that it points at this machine."""
        host = urlsplit(f"//{headers.get('host', '')}").hostname
        origin = headers.get("origin")
        if host not in _LOOPBACK or (origin and urlsplit(origin).netloc != headers.get("host")):
            return refuse(
                403, "Without keys the server answers this machine only. Make one: assay key create NAME"
            )
        return ""

    def _check_key(self, headers: Headers, needed: Scope, address: str) -> Response | str:
        token = _read_token(headers)
        key = self._find_key(token) if token else None
        now = datetime.now(UTC)
        if key is None or not key.is_valid(now):
            return self._refuse_key(key, address)
        if not self._requests.allows(key.prefix):
            return refuse(
                429, "There are too many requests with this key. Wait a moment.", headers={"retry-after": "1"}
            )
        if not key.scope.allows(needed):
            return refuse(403, f"This key may {key.scope}; the request needs a key that may {needed}.")
        self._store.note_use(key, now)
        return key.prefix

    def _refuse_key(self, key: ApiKey | None, address: str) -> Response:
        """Whoever has a key that ended learns that; whoever has none learns nothing about keys."""
        if not self._refusals.allows(address):
            return refuse(429, "There were too many requests without a valid key. Wait a moment.")
        told = "The request needs a key: Authorization: Bearer KEY."
        if key is not None:
            told = f"This key {'was revoked' if key.revoked else 'has expired'}. Make another: assay key create NAME"
        return refuse(401, told, headers={"www-authenticate": "Bearer"})

    def _find_route(self, scope: Connection) -> BaseRoute | None:
        return next((route for route in self._routes if route.matches(scope)[0] is Match.FULL), None)

    def _note(self, scope: Connection, key: str, status: int) -> None:
        entry = AuditEntry(
            datetime.now(UTC), key, _address(scope), scope["method"], scope["path"][:500], status
        )
        try:
            self._store.audit(entry)
        except StoreError:
            return  # what was to be told about has been answered; the database is away


def find_scope(route: BaseRoute) -> str:
    """The scope that a route needs; `admin` for one that does not say."""
    extra: Mapping[str, Any] | None = getattr(route, "openapi_extra", None)
    return str((extra or {}).get(NEEDED, Scope.ADMIN))


def _read_token(headers: Headers) -> str:
    word, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if word.lower() == "bearer" else ""


def _hash_token(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()


def _address(scope: Connection) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


async def _read_body(receive: Receive) -> Receive | None:
    """The body of a request, read to its end and handed on; None if it is too large, whatever length it stated."""
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > _MOST_BYTES:
            return None
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def hand_on() -> Message:
        return whole.pop() if whole else await receive()

    return hand_on
