"""A proxy on loopback in front of one server, with faults that are switched while it runs.

Answers pass as they come, piece by piece; of a request all is there before it is passed on, so that it can be told from
others. Everything happens in a thread with an event loop of its own: whoever tests may be busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from http import HTTPStatus
from math import inf
from random import Random
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from assay.execute.http.framing import Body, FramingError, HeadReader, OpenBody, SizedBody, announced_body
from assay.execute.load.fault import NOTHING, Change, Fault, FaultKind, Passage, Traffic

T = TypeVar("T")

MOST_BYTES = 64 * 2**20
_READ_BYTES = 65536
_TICK = 0.05
"""Seconds between two small pieces where bytes pass slowly."""
_CALL_SECONDS = 60.0
_REQUEST = re.compile(r"([A-Z]+) (\S+) HTTP/1\.([01])")
_STATUS = re.compile(r"HTTP/1\.([01]) (\d\d\d)")
_NAMES = ("idempotency-key", "x-request-id")
_NOT_PASSED_ON = frozenset(
    {"host", "connection", "keep-alive", "expect", "transfer-encoding", "content-length"}
)


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    keeps_alive: bool


def request_key(request: ProxiedRequest) -> str:
    """What tells a request from others: the name that the client gave it, else all that it asks."""
    for name in _NAMES:
        if name in request.headers:
            return request.headers[name]
    asked = hashlib.blake2b(f"{request.method} {request.path}\n".encode(), digest_size=12)
    asked.update(request.body)
    return asked.hexdigest()


class FaultProxy:
    """Listens while it is entered, and lets everything pass until a fault is imposed.

    The moments that it tells are those of `clock`; with a `key` of their own, clients whose requests are all alike can be
    told apart. An upstream with TLS has to be one whom the system trusts, or `tls`. What in a request is `unseen`, as a mark
    that was put there only for the proxy, is not passed on.
    """

    def __init__(
        self,
        upstream: str,
        seed: int = 0,
        key: Callable[[ProxiedRequest], str] = request_key,
        clock: Callable[[], float] = time.monotonic,
        tls: ssl.SSLContext | None = None,
        unseen: re.Pattern[bytes] | None = None,
    ) -> None:
        self._place = _Place.of(upstream, tls)
        self._seed, self._key, self._clock, self._unseen = seed, key, clock, unseen
        self._fault, self._drawn = NOTHING, 0
        self._passages: list[Passage] = []
        self._changes: list[Change] = []
        self._guests: set[_Guest] = set()
        self._connections = self._unread = 0
        self._server: asyncio.Server | None = None
        self._begun: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="assay-fault-proxy", daemon=True)

    def __enter__(self) -> Self:
        # Bound and never listened to: the port stays ours while connections to it are refused.
        self._keeper = _bound(0)
        self._port = int(self._keeper.getsockname()[1])
        self._thread.start()
        try:
            self._begun.result(_CALL_SECONDS)
        except BaseException:
            self._keeper.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._keeper.close()

    @property
    def url(self) -> str:
        """Where to send what was meant for the upstream; its path is the same."""
        return f"http://127.0.0.1:{self._port}{self._place.path}"

    def impose(self, fault: Fault) -> float:
        """From now on this fault and no other; when that was, on the proxy's clock. Requests under way end as they began."""
        return self._called(self._impose(fault))

    def lift(self) -> float:
        """From now on everything passes."""
        return self.impose(NOTHING)

    def traffic(self) -> Traffic:
        """What was seen so far."""
        return self._called(self._snapshot()) if self._thread.is_alive() else self._told()

    def _called(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_SECONDS)

    async def _snapshot(self) -> Traffic:
        return self._told()

    def _told(self) -> Traffic:
        passages = tuple(map(replace, self._passages))
        return Traffic(passages, tuple(self._changes), self._connections, self._unread)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended, self._changed = asyncio.Event(), asyncio.Event()
        try:
            await self._listen()
        except OSError as error:
            self._begun.set_exception(error)
            return
        self._begun.set_result(None)
        await self._ended.wait()
        self._vanish()

    async def _impose(self, fault: Fault) -> float:
        self._fault, self._drawn = fault, 0
        self._changed.set()
        self._changed = asyncio.Event()
        if fault.kind is FaultKind.REFUSE:
            self._vanish()
        elif self._server is None:
            await self._listen()
        at = self._clock()
        self._changes.append(Change(at, fault))
        return at

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(self._guest, sock=_bound(self._port), backlog=1024)

    def _vanish(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for guest in list(self._guests):
            guest.reset()

    def _guest(self) -> _Guest:
        self._connections += 1
        return _Guest(self._connections, self._serve, self._guests)

    async def _serve(self, guest: _Guest) -> None:
        upstream = _Upstream(self._place)
        rest = b""
        with contextlib.suppress(ConnectionError, FramingError):
            try:
                while (found := await self._whole_request(guest, rest)) is not None:
                    request, rest = found
                    if not await self._pass(request, guest, upstream):
                        break
            finally:
                upstream.close()
                guest.writer.close()

    async def _whole_request(self, guest: _Guest, data: bytes) -> tuple[ProxiedRequest, bytes] | None:
        """The next request; one that comes only in part is counted."""
        guest.is_asking, is_whole = bool(data), False
        try:
            found = await self._request(guest, data)
            is_whole = found is not None
            return found
        finally:
            self._unread += guest.is_asking and not is_whole

    async def _request(self, guest: _Guest, data: bytes) -> tuple[ProxiedRequest, bytes] | None:
        """The next request on a connection and what came after it; None when there is none."""
        reader = HeadReader()
        while not data or (found := reader.feed(data)) is None:
            if not (data := await self._read(guest)):
                return None
        head, data = found
        line = _REQUEST.fullmatch(head.start)
        if line is None:
            raise FramingError(f"{head.start[:80]!r} is not a request")
        if not data and "100-continue" in head.headers.get("expect", "").lower():
            guest.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = announced_body(head.headers) or SizedBody(0)
        content = await self._content(guest, body, data)
        return ProxiedRequest(line[1], line[2], head.headers, content, head.keeps_alive(line[3])), body.excess

    async def _content(self, guest: _Guest, body: Body, data: bytes) -> bytes:
        parts, size = [body.feed(data)] if data else [], len(data)
        while not body.is_done:
            if not (data := await self._read(guest)) or size > MOST_BYTES:
                raise ConnectionError
            parts.append(body.feed(data))
            size += len(data)
        return b"".join(parts)

    async def _pass(self, request: ProxiedRequest, guest: _Guest, upstream: _Upstream) -> bool:
        """Whether the connection can be used again."""
        passage = self._noted(request, guest)
        if passage.fault is FaultKind.ANSWER:
            return await self._tell(passage, request, guest, self._fault.status, "A fault, as was asked for.")
        if passage.fault is FaultKind.RESET:
            guest.reset()
            return False
        if passage.fault is FaultKind.STALL:
            await asyncio.Event().wait()
        passage.forwarded = self._clock()
        try:
            return await self._forward(passage, request, guest, upstream)
        except OSError as error:
            if passage.first_byte is not None:
                guest.reset()
                return False
            passage.forwarded = None
            return await self._tell(passage, request, guest, 502, f"The upstream cannot be reached: {error}")

    def _noted(self, request: ProxiedRequest, guest: _Guest) -> Passage:
        passage = Passage(len(self._passages), guest.number, self._key(request), self._clock())
        self._passages.append(passage)
        self._drawn += 1
        if self._fault.kind is not FaultKind.NONE and self._is_chosen():
            passage.fault = self._fault.kind
            passage.retry_after = self._fault.retry_after
        return passage

    def _is_chosen(self) -> bool:
        """By the number of the request since the fault began: the same for the same seed, however fast they come."""
        share = self._fault.share
        return share == 1 or Random(f"{self._seed} {self._drawn}").random() < share

    async def _tell(
        self, passage: Passage, request: ProxiedRequest, guest: _Guest, status: int, message: str
    ) -> bool:
        body = json.dumps({"error": {"message": message, "type": "fault_proxy", "code": status}}).encode()
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "content-type: application/json",
                 f"content-length: {len(body)}"]  # fmt: skip
        if passage.retry_after is not None:
            lines.append(f"retry-after: {passage.retry_after:g}")
        if not request.keeps_alive:
            lines.append("connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        passage.status = status
        await self._write(guest, head if request.method == "HEAD" else head + body, passage)
        passage.ended = self._clock()
        return request.keeps_alive

    async def _forward(
        self, passage: Passage, request: ProxiedRequest, guest: _Guest, upstream: _Upstream
    ) -> bool:
        answer = await upstream.ask(self._as_seen(request))
        passage.status = answer.status
        is_cut = passage.fault is FaultKind.CUT
        async for piece, body_bytes in answer.pieces():
            if is_cut and (body_bytes or answer.is_over):
                await self._write(guest, piece[: len(piece) - max(1, body_bytes // 2)], passage)
                guest.reset()
                upstream.close()
                return False
            await self._write(guest, piece, passage)
        passage.ended = self._clock()
        return request.keeps_alive and answer.keeps_alive

    def _as_seen(self, request: ProxiedRequest) -> ProxiedRequest:
        if self._unseen is None:
            return request
        return replace(request, body=self._unseen.sub(b"", request.body))

    async def _read(self, guest: _Guest) -> bytes:
        data = await guest.reader.read(self._step)
        guest.is_asking = guest.is_asking or bool(data)
        await self._crawl(len(data))
        return data

    async def _write(self, guest: _Guest, data: bytes, passage: Passage) -> None:
        while data:
            piece, data = data[: self._step], data[self._step :]
            await self._crawl(len(piece))
            guest.writer.write(piece)
            await guest.writer.drain()
            if passage.first_byte is None:
                passage.first_byte = self._clock()

    @property
    def _step(self) -> int:
        """How many bytes may pass at once."""
        return max(1, int(min(_READ_BYTES, self._fault.bytes_per_second * _TICK)))

    async def _crawl(self, size: int) -> None:
        """As long as so many bytes take, or until there is another fault."""
        rate = self._fault.bytes_per_second
        if size and rate != inf:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), size / rate)


def _bound(port: int) -> socket.socket:
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    place.bind(("127.0.0.1", port))
    return place


class _Guest(asyncio.StreamReaderProtocol):
    """A client's connection, served by a task that ends when the client leaves."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __init__(
        self, number: int, serve: Callable[[_Guest], Coroutine[Any, Any, None]], present: set[_Guest]
    ) -> None:
        self.number = number
        self.is_asking = False
        """Whether a part of a request has come and the rest not yet."""
        self.reader = asyncio.StreamReader(limit=_READ_BYTES)
        self._serve, self._present = serve, present
        self._serving: asyncio.Task[None] | None = None
        super().__init__(self.reader, self._connected)

    def _connected(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._present.add(self)
        self._serving = asyncio.get_running_loop().create_task(self._serve(self))

    def eof_received(self) -> bool:
        """A client that closes wants no answer any more; the upstream need not go on for it."""
        super().eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._present.discard(self)
        if self._serving is not None:
            self._serving.cancel()

    def reset(self) -> None:
        """Close without a farewell: the other side is told by a reset, and what was not sent yet is dropped."""
        linger = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the upstream is."""

    host: str
    port: int
    path: str
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, url: str, tls: ssl.SSLContext | None) -> Self:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not a URL with http or https and a host.")
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        known = tls or ssl.create_default_context() if is_tls else None
        return cls(parts.hostname, port, parts.path, known)

    def request(self, request: ProxiedRequest) -> bytes:
        lines = [f"{request.method} {request.path} HTTP/1.1", f"host: {self.host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items() if name not in _NOT_PASSED_ON]
        if request.body or request.method not in ("GET", "HEAD"):
            lines.append(f"content-length: {len(request.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + request.body


class _Upstream:
    """The connection on which requests of one client are passed on, kept from one to the next."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: ProxiedRequest) -> _Answer:
        """Its answer from the first head on; one that was kept and has gone stale is replaced without a word."""
        if self._streams is not None:
            with contextlib.suppress(ConnectionError):
                return await self._asked(request)
            self.close()
        return await self._asked(request)

    async def _asked(self, request: ProxiedRequest) -> _Answer:
        place = self._place
        if self._streams is None:
            self._streams = await asyncio.open_connection(place.host, place.port, ssl=place.tls)
        reader, writer = self._streams
        writer.write(place.request(request))
        await writer.drain()
        answer = _Answer(reader, request)
        await answer.begin()
        return answer

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


class _Answer:
    """An answer on its way: its bytes as they come, and where it ends."""

    def __init__(self, reader: asyncio.StreamReader, request: ProxiedRequest) -> None:
        self._reader, self._request = reader, request
        self.status = 0
        self.keeps_alive = False
        self._body: Body = SizedBody(0)
        self._first = b""
        self._first_body = 0

    @property
    def is_over(self) -> bool:
        return self._body.is_done

    async def begin(self) -> None:
        """Until its head is complete; interim answers before it are dropped."""
        while not self.status or 100 <= self.status < 200:
            await self._head()

    async def _head(self) -> None:
        reader, raw, data = HeadReader(), b"", self._first
        while not data or (found := reader.feed(data)) is None:
            raw += data
            if not (data := await self._reader.read(_READ_BYTES)):
                raise ConnectionError("it closed the connection before it answered")
        head, rest = found
        line = _STATUS.match(head.start)
        if line is None or line[2] == "101":
            raise ConnectionError(f"it answered {head.start[:40]!r}")
        self.status, self._first = int(line[2]), rest
        if self.status >= 200:
            self._body = self._announced(head.headers)
            self.keeps_alive = head.keeps_alive(line[1]) and not isinstance(self._body, OpenBody)
            self._body.feed(rest) if rest else None
            whole = raw + data
            self._first, self._first_body = whole[: len(whole) - len(self._body.excess)], len(rest)

    def _announced(self, headers: Mapping[str, str]) -> Body:
        if self._request.method == "HEAD" or self.status in (204, 304):
            return SizedBody(0)
        return announced_body(headers) or OpenBody()

    async def pieces(self) -> AsyncIterator[tuple[bytes, int]]:
        """The bytes as they come, framing and all, and how many of them are of the body."""
        yield self._first, self._first_body
        while not self._body.is_done:
            if not (data := await self._reader.read(_READ_BYTES)):
                if isinstance(self._body, OpenBody):
                    return
                raise ConnectionError("it broke off half way")
            self._body.feed(data)
            data = data[: len(data) - len(self._body.excess)]
            yield data, len(data)
