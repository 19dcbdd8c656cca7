"""A proxy on loopback in front of one server, with faults that are switched while it runs.

Stress scenarios put it between an agent and its model. Answers pass as they come, piece by piece. A request is read whole
before it is passed on, so that the proxy can recognise one that is sent again. Everything happens in a thread with an event
loop of its own, because the thread of the test may be busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Self
from urllib.parse import urlsplit

from assay.http.framing import (
    Body,
    FramingError,
    HeadReader,
    OpenBody,
    SizedBody,
    build_response_body,
    status_of,
)
from assay.http.loop import LoopThread
from assay.http.request import OF_ONE_CONNECTION
from assay.http.server import HttpRequest, ServerConnection, TaskServer
from assay.load.fault import NOTHING, Change, Fault, FaultKind, Passage, Traffic

_READ_BYTES = 65536
_TICK = 0.05
"""Seconds between two small pieces where bytes pass slowly."""
_CALL_SECONDS = 60.0
_NAMES = ("idempotency-key", "x-request-id")


def request_key(request: HttpRequest) -> str:
    """What identifies a request: the name that the client gave it, else its whole content."""
    for name in _NAMES:
        if name in request.headers:
            return request.headers[name]
    digest = hashlib.blake2b(f"{request.method} {request.target}\n".encode(), digest_size=12)
    digest.update(request.body)
    return digest.hexdigest()


class FaultProxy:
    """Listens while it is entered, and lets everything pass until a fault is imposed.

    Moments are those of `clock`. `key` says which requests are the same one, sent again. The certificate of an upstream with
    TLS is checked by what the system trusts, or by `tls`. What matches `unseen` in a request, such as a mark that was put
    there only for the proxy, is not passed on.
    """

    def __init__(
        self,
        upstream: str,
        seed: int = 0,
        key: Callable[[HttpRequest], str] = request_key,
        clock: Callable[[], float] = time.monotonic,
        tls: ssl.SSLContext | None = None,
        unseen: re.Pattern[bytes] | None = None,
    ) -> None:
        self._place = _Place.of(upstream, tls)
        self._seed, self._key, self._clock, self._unseen = seed, key, clock, unseen
        self._fault, self._draw_count = NOTHING, 0
        self._passages: list[Passage] = []
        self._changes: list[Change] = []
        self._connections = self._unread = 0
        self._upstreams: dict[ServerConnection, _Upstream] = {}
        self._server = _ThrottledServer(self._answer, self._end_connection, self)
        self._thread = LoopThread("assay-fault-proxy")
        self._changed = asyncio.Event()
        """Set when there is another fault."""

    def __enter__(self) -> Self:
        # Bound and never listened to: the port stays ours while connections to it are refused.
        self._keeper = _bound(0)
        self._port = int(self._keeper.getsockname()[1])
        self._thread.start()
        try:
            self._thread.run(self._listen(), _CALL_SECONDS)
        except BaseException:
            self._thread.stop()
            self._keeper.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.run(self._vanish(), _CALL_SECONDS)
        self._thread.stop()
        self._keeper.close()

    @property
    def url(self) -> str:
        """Return the address to use instead of the upstream's; its path is the same."""
        return f"http://127.0.0.1:{self._port}{self._place.path}"

    def impose(self, fault: Fault) -> float:
        """Impose this fault and no other from now on, and return when that was, on the proxy's clock.

        Requests under way end as they began.
        """
        return self._thread.run(self._impose(fault), _CALL_SECONDS)

    def lift(self) -> float:
        """Lift the fault: from now on everything passes."""
        return self.impose(NOTHING)

    def traffic(self) -> Traffic:
        """What was seen so far."""
        if not self._thread.is_alive:
            return self._copy_traffic()

        async def copy_in_loop() -> Traffic:
            return self._copy_traffic()

        return self._thread.run(copy_in_loop(), _CALL_SECONDS)

    def _copy_traffic(self) -> Traffic:
        passages = tuple(map(replace, self._passages))
        return Traffic(passages, tuple(self._changes), self._connections, self._unread)

    async def _impose(self, fault: Fault) -> float:
        """Set the fault, wake the tasks that wait at the old pace, and open or close the port; the time is taken when all is done."""
        self._fault, self._draw_count = fault, 0
        # A new event for every fault: those who wait for the old one wake up, later ones wait for the next change.
        self._changed.set()
        self._changed = asyncio.Event()
        self._server.hurry()
        if fault.kind is FaultKind.REFUSE:
            await self._vanish()
        elif not self._server.is_listening:
            await self._listen()
        at = self._clock()
        self._changes.append(Change(at, fault))
        return at

    async def _listen(self) -> None:
        await self._server.listen(sock=_bound(self._port), backlog=1024)

    async def _vanish(self) -> None:
        """Reset all connections instead of closing them: a server that is gone does not close them properly."""
        self._server.close(resets=True)
        await asyncio.sleep(0)  # the port is closed one round later

    def admit(self, connection: _ThrottledConnection) -> None:
        self._connections += 1
        connection.number = self._connections
        self._upstreams[connection] = _Upstream(self._place)

    def count_unread(self) -> None:
        self._unread += 1

    def _end_connection(self, connection: ServerConnection) -> None:
        """A client that closes wants no answer any more, and the upstream need not continue for it; a part of a request is counted."""
        self._unread += connection.is_receiving
        self._upstreams.pop(connection).close()
        if (task := self._server.tasks.get(connection)) is not None:
            task.cancel()

    async def _answer(self, connection: ServerConnection, request: HttpRequest) -> None:
        assert isinstance(connection, _ThrottledConnection)
        try:
            can_go_on = await self._pass(request, connection, self._upstreams[connection])
        except FramingError:
            can_go_on = False
        if can_go_on:
            connection.finish()
        else:
            connection.close()

    async def _pass(self, request: HttpRequest, client: _ThrottledConnection, upstream: _Upstream) -> bool:
        """Answer one request, by the fault or by way of the upstream; returns whether the connection can be used again."""
        passage = self._record_passage(request, client)
        if passage.fault is FaultKind.ANSWER:
            return await self._tell(
                passage, client, self._fault.status, "This error is a fault of the stress test."
            )
        if passage.fault is FaultKind.RESET:
            client.reset()
            return False
        if passage.fault is FaultKind.STALL:
            # For ever: only the client's leaving cancels this task.
            await asyncio.Event().wait()
        passage.forwarded = self._clock()
        try:
            return await self._forward(passage, request, client, upstream)
        except OSError as error:
            if passage.first_byte is not None:
                client.reset()
                return False
            # It never reached the upstream, so it must not look as if that had been asked.
            passage.forwarded = None
            return await self._tell(passage, client, 502, f"The proxy cannot reach the upstream: {error}")

    def _record_passage(self, request: HttpRequest, client: _ThrottledConnection) -> Passage:
        passage = Passage(len(self._passages), client.number, self._key(request), self._clock())
        self._passages.append(passage)
        self._draw_count += 1
        # Drawn by the number of the request since the fault began: the same for the same seed, however fast requests come.
        share = self._fault.share
        is_chosen = share == 1 or Random(f"{self._seed} {self._draw_count}").random() < share
        if self._fault.kind is not FaultKind.NONE and is_chosen:
            passage.fault = self._fault.kind
            passage.retry_after = self._fault.retry_after
        return passage

    async def _tell(self, passage: Passage, client: _ThrottledConnection, status: int, message: str) -> bool:
        body = json.dumps({"error": {"message": message, "type": "fault_proxy", "code": status}}).encode()
        headers = {} if passage.retry_after is None else {"retry-after": f"{passage.retry_after:g}"}
        passage.status = status
        await self._write(client, client.whole(status, body, headers), passage)
        passage.ended = self._clock()
        return True

    async def _forward(
        self, passage: Passage, request: HttpRequest, client: _ThrottledConnection, upstream: _Upstream
    ) -> bool:
        """Ask the upstream and hand its bytes on as they come, framing and all; a fault CUT ends it within the body."""
        if self._unseen is not None:
            request = request._replace(body=self._unseen.sub(b"", request.body))
        answer = await upstream.ask(request)
        passage.status = answer.status
        is_cut = passage.fault is FaultKind.CUT
        async for piece, body_bytes in answer.pieces():
            # The head passes whole, so that the client believes in an answer; of the body, half of its first piece.
            if is_cut and (body_bytes or answer.is_over):
                await self._write(client, piece[: len(piece) - max(1, body_bytes // 2)], passage)
                client.reset()
                upstream.close()
                return False
            await self._write(client, piece, passage)
        passage.ended = self._clock()
        return answer.keeps_alive

    async def _write(self, client: _ThrottledConnection, data: bytes, passage: Passage) -> None:
        while data:
            piece, data = data[: self.step], data[self.step :]
            if (rate := self._fault.bytes_per_second) != inf:
                # As long as so many bytes take, or until there is another fault.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), len(piece) / rate)
            client.send(piece)
            await client.drain()
            if passage.first_byte is None:
                passage.first_byte = self._clock()

    @property
    def step(self) -> int:
        """How many bytes may pass at once."""
        return max(1, int(min(_READ_BYTES, self._fault.bytes_per_second * _TICK)))

    @property
    def bytes_per_second(self) -> float:
        return self._fault.bytes_per_second


def _bound(port: int) -> socket.socket:
    """A socket with the port, which several may have: one keeps it for us while another listens, or none does."""
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    place.bind(("127.0.0.1", port))
    return place


class _ThrottledConnection(ServerConnection):
    """A client's connection whose requests may be read slowly, as a fault of the network.

    Reading is slowed by leaving bytes in the socket, so the client meets a full send buffer as it would
    in reality. Garbage is counted, and not answered.
    """

    __slots__ = ("_buffer", "_proxy", "_timer", "number")

    def __init__(self, server: _ThrottledServer, proxy: FaultProxy) -> None:
        super().__init__(server.start, server.forget)
        self._proxy = proxy
        self._buffer = b""
        """What has come and may not be read yet."""
        self._timer: asyncio.TimerHandle | None = None
        self.number = 0

    @property
    def is_receiving(self) -> bool:
        return super().is_receiving or (bool(self._buffer) and not self._is_busy)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._timer is None:
            self._read_step()
        elif len(self._buffer) > _READ_BYTES:
            # The client has to notice that nothing is read: what the kernel's buffers do not take, it cannot send.
            self._transport.pause_reading()

    def _read_step(self) -> None:
        """Read all at once, or a few bytes after the time that they take."""
        rate = self._proxy.bytes_per_second
        if rate == inf:
            data, self._buffer = self._buffer, b""
            self._transport.resume_reading()
            super().data_received(data)
        elif self._buffer:
            size = min(self._proxy.step, len(self._buffer))
            self._timer = asyncio.get_running_loop().call_later(size / rate, self._end_step, size)

    def _end_step(self, size: int) -> None:
        self._timer = None
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        super().data_received(data)
        self._read_step()
        if len(self._buffer) <= _READ_BYTES and not self._is_busy:
            self._transport.resume_reading()

    def hurry(self) -> None:
        """There is another fault: what is held is read at its pace."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._read_step()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def refuse(self, status: int, message: str) -> None:
        if not self.is_receiving:
            # What came was no request; a part of one is counted when the connection is lost.
            self._proxy.count_unread()
        self.close()


class _ThrottledServer(TaskServer):
    """A task server whose connections know the proxy, which says how fast they may read."""

    def __init__(
        self,
        handle: Callable[[ServerConnection, HttpRequest], Awaitable[None]],
        on_gone: Callable[[ServerConnection], None],
        proxy: FaultProxy,
    ) -> None:
        super().__init__(handle, on_gone)
        self._proxy = proxy

    def connect(self) -> ServerConnection:
        connection = _ThrottledConnection(self, self._proxy)
        self._proxy.admit(connection)
        return connection

    def hurry(self) -> None:
        for connection in self.connections:
            assert isinstance(connection, _ThrottledConnection)
            connection.hurry()


@dataclass(frozen=True, slots=True)
class _Place:
    """The address of the upstream."""

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

    def request(self, request: HttpRequest) -> bytes:
        lines = [f"{request.method} {request.target} HTTP/1.1", f"host: {self.host}:{self.port}"]
        lines += [
            f"{name}: {value}" for name, value in request.headers.items() if name not in OF_ONE_CONNECTION
        ]
        if request.body or request.method not in ("GET", "HEAD"):
            lines.append(f"content-length: {len(request.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + request.body


class _Upstream:
    """The connection on which requests of one client are passed on, kept from one to the next."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: HttpRequest) -> _Answer:
        """Send a request and return the answer, starting with its head; a stale kept-alive connection is replaced silently."""
        if self._streams is not None:
            with contextlib.suppress(ConnectionError):
                return await self._send_request(request)
            self.close()
        return await self._send_request(request)

    async def _send_request(self, request: HttpRequest) -> _Answer:
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

    def __init__(self, reader: asyncio.StreamReader, request: HttpRequest) -> None:
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
        """Read until the head is complete; interim answers (1xx) before it are dropped."""
        while not self.status or 100 <= self.status < 200:
            await self._head()

    async def _head(self) -> None:
        """Read one head; `_first` is then what is passed on first: the bytes of the final head and of the body behind it."""
        reader, raw, data = HeadReader(), b"", self._first
        while not data or (found := reader.feed(data)) is None:
            raw += data
            if not (data := await self._reader.read(_READ_BYTES)):
                raise ConnectionError("it closed the connection before it answered")
        head, rest = found
        try:
            self.status, minor_version = status_of(head)
        except FramingError:
            raise ConnectionError(f"it answered {head.start[:40]!r}") from None
        self._first = rest
        if self.status >= 200:
            self._body = build_response_body(self._request.method, self.status, head.headers)
            self.keeps_alive = head.keeps_alive(minor_version) and not isinstance(self._body, OpenBody)
            self._body.feed(rest) if rest else None
            whole = raw + data
            self._first, self._first_body = whole[: len(whole) - len(self._body.excess)], len(rest)

    async def pieces(self) -> AsyncIterator[tuple[bytes, int]]:
        """The bytes as they come, framing and all, and how many of them are of the body."""
        yield self._first, self._first_body
        while not self._body.is_done:
            if not (data := await self._reader.read(_READ_BYTES)):
                if isinstance(self._body, OpenBody):
                    return
                raise ConnectionError("the connection was closed mid-response")
            self._body.feed(data)
            data = data[: len(data) - len(self._body.excess)]
            yield data, len(data)
