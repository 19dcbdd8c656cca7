"""The server's half of HTTP/1.1: requests out of bytes, one at a time on each connection, and answers into bytes.

The simulated LLM server, both proxies and the metrics page of a load are built on it. `HttpServer` shows requests to a callback,
for servers that know at once what to answer or send each token at a moment of its own; `TaskServer` runs a task for each
request, for proxies whose answers wait for another server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from time import monotonic
from typing import NamedTuple, cast

from assay.http.framing import Body, FramingError, HeadReader, MessageHead, SizedBody, build_body

MAX_BODY = 64 * 2**20

_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+) HTTP/1\.([01])")
_MAX_WAITING = 64 * 1024
_NO_HEADERS: Mapping[str, str] = {}
_WITHOUT_BODY = (204, 304)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class HttpRequest(NamedTuple):
    """A request that has arrived completely; the names of its headers are in lower case."""

    method: str
    target: str
    """The path, with the query if there is one."""
    headers: Mapping[str, str]
    body: bytes
    arrived: float = 0.0
    """When its last byte was read, on the monotonic clock."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


class ServerConnection(asyncio.Protocol):
    """A client's connection.

    `on_request` is called with one request at a time. It ends each with `answer`, or with `send` and then `finish`; requests
    that the client sent ahead of their turn stay unread until then. `on_gone` is called once, whichever side closed the connection.

    An answer is put together by the caller: `whole` gives the bytes of one with a known length; `begin`, `chunk` and
    `last_chunk` give those of a streamed one. Nothing is sent before `send`, so that several parts can go in one write.
    """

    __slots__ = (
        "_answers_half_closed", "_body", "_common", "_ends_at_once", "_has_body", "_head", "_headers", "_is_busy",
        "_is_reading", "_keeps_alive", "_on_request", "_parts", "_request_line", "_size", "_transport",
        "_uses_chunks", "_waiting", "_writable", "is_gone", "on_gone",
    )  # fmt: skip

    def __init__(
        self,
        on_request: Callable[[ServerConnection, HttpRequest], None],
        on_gone: Callable[[ServerConnection], None] | None = None,
        common: str = "",
        answers_half_closed: bool = False,
    ) -> None:
        """`common` are header lines of every answer, each with its line end.

        A client that closes its side of the connection has gone, unless `answers_half_closed` says that the answer under way
        is still sent to it.
        """
        self._on_request = on_request
        self.on_gone = on_gone
        self._common = common
        self._answers_half_closed = answers_half_closed
        self._transport: asyncio.Transport
        self._ends_at_once = False
        self._head = HeadReader()
        self._headers = _NO_HEADERS
        self._body: Body | None = None
        self._request_line = ("", "")
        self._parts: list[bytes] = []
        self._size = 0
        self._waiting = b""
        self._is_busy = False
        self._is_reading = False
        self._keeps_alive = True
        self._uses_chunks = True
        self._has_body = True
        self._writable: asyncio.Future[None] | None = None
        self.is_gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._ends_at_once:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True
        self.resume_writing()
        if self.on_gone is not None:
            self.on_gone(self)

    def eof_received(self) -> bool:
        """Whether to keep the connection open although the client sends nothing more."""
        self._keeps_alive = False
        return self._answers_half_closed and self._is_busy

    @property
    def is_receiving(self) -> bool:
        """Whether a part of a request has come, and the rest has not."""
        return not self._is_busy and (self._body is not None or self._head.has_begun)

    def data_received(self, data: bytes) -> None:
        self._waiting = self._waiting + data if self._waiting else data
        if not self._is_busy:
            self._read(monotonic())
        elif len(self._waiting) > _MAX_WAITING:
            # Requests ahead of their turn wait in the client's own buffers from here on, not in our memory.
            self._transport.pause_reading()

    def _read(self, now: float) -> None:
        """Take requests out of what waits, until one has to be answered first.

        A loop and no recursion: `finish` of a request that is answered at once returns into it (`_is_reading`), so that a client
        that sends thousands of requests ahead does not exhaust the stack.
        """
        self._is_reading = True
        try:
            while self._waiting and not self._is_busy and not self._transport.is_closing():
                data, self._waiting = self._waiting, b""
                self._take(data, now)
        except FramingError as error:
            self.refuse(400, f"This is not HTTP/1.1: {error}.")
        finally:
            self._is_reading = False

    def _take(self, data: bytes, now: float) -> None:
        """Feed the head, then the body, and show the request once it is complete."""
        if self._body is None:
            found = self._head.feed(data)
            if found is None:
                return
            head, data = found
            self._body = self._begin_request(head)
            if not data and "100-continue" in head.headers.get("expect", "").lower():
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._body
        if data:
            part = body.feed(data)
            self._parts.append(part)
            self._size += len(part)
        # Also by what is announced: a client that will send too much is told before it does.
        if self._size + body.left > MAX_BODY:
            self.refuse(413, f"A request has at most {MAX_BODY:,} bytes.")
        elif body.is_done:
            self._show_request(body.excess, now)

    def _begin_request(self, head: MessageHead) -> Body:
        found = _REQUEST.fullmatch(head.start)
        if found is None:
            raise FramingError(f"{head.start[:80]!r} is not a request")
        self._request_line = (found[1], found[2])
        self._headers = head.headers
        self._uses_chunks = found[3] == "1"
        self._keeps_alive = head.keeps_alive(found[3])
        return build_body(head.headers) or SizedBody(0)

    def _show_request(self, excess: bytes, now: float) -> None:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self._size = 0
        self._body = None
        self._waiting = excess
        self._is_busy = True
        self._on_request(self, HttpRequest(*self._request_line, self._headers, body, now))

    def refuse(self, status: int, message: str) -> None:
        """Answer bytes that are not a valid request, and close: where the next request would begin is not known."""
        self._keeps_alive = False
        self.answer(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def answer(self, status: int, document: object, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        self.send(self.whole(status, _encode(document).encode(errors="replace"), headers))
        self.finish()

    def whole(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] = _NO_HEADERS,
        content_type: str = "application/json",
    ) -> bytes:
        """An answer in one piece; it is not sent yet."""
        start = self._start(status, content_type, headers)
        if self._request_line[0] == "HEAD":
            return b"%bcontent-length: %d\r\n\r\n" % (start, len(body))
        return b"%bcontent-length: %d\r\n\r\n%b" % (start, len(body), body)

    def begin(self, content_type: str, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS) -> bytes:
        """The head of a streamed answer; it is not sent yet, so that it can go with what follows."""
        self._has_body = self._request_line[0] != "HEAD" and status not in _WITHOUT_BODY
        if not self._has_body:
            return self._start(status, content_type, headers) + b"\r\n"
        framing = b"transfer-encoding: chunked\r\n\r\n" if self._uses_chunks else b"\r\n"
        self._keeps_alive &= self._uses_chunks
        return self._start(status, content_type, headers) + framing

    def chunk(self, payload: bytes) -> bytes:
        """A part of the body, framed as `begin` announced it."""
        if not self._has_body:
            return b""
        if not payload or not self._uses_chunks:
            return payload
        return b"%x\r\n%b\r\n" % (len(payload), payload)

    @property
    def last_chunk(self) -> bytes:
        return b"0\r\n\r\n" if self._uses_chunks and self._has_body else b""

    def send(self, message: bytes) -> None:
        self._transport.write(message)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def drain(self) -> None:
        """Wait for a client that reads more slowly than it is sent to; ConnectionResetError when it has gone."""
        # The loop has to run once for `connection_lost` to be called, which says that the client has gone.
        if self._transport.is_closing():
            await asyncio.sleep(0)
        if self._writable is not None:
            await self._writable
        if self.is_gone:
            raise ConnectionResetError("the client has gone")

    def finish(self) -> None:
        """The answer is complete; continue with the next request."""
        self._is_busy = False
        if not self._keeps_alive:
            self._transport.close()
            return
        self._transport.resume_reading()
        if self._waiting and not self._is_reading:
            self._read(monotonic())

    def close(self) -> None:
        """Close the connection once everything that was written has been sent."""
        if self._has_transport():
            self._transport.close()

    def reset(self) -> None:
        """Close at once: the client gets a TCP reset, and what was not sent yet is dropped."""
        if not self._has_transport():
            return
        with contextlib.suppress(OSError):
            place = self._transport.get_extra_info("socket")
            place.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _has_transport(self) -> bool:
        """False for a connection that is still being made, for example during a TLS handshake: it ends as soon as it is."""
        self._ends_at_once = not hasattr(self, "_transport")
        return not self._ends_at_once

    def _start(self, status: int, content_type: str, headers: Mapping[str, str]) -> bytes:
        start = _start_of(status, content_type, self._keeps_alive, self._common)
        if headers:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            start += lines.encode("latin-1", "replace")
        return start


@lru_cache(maxsize=256)
def _start_of(status: int, content_type: str, keeps_alive: bool, common: str) -> bytes:
    """The status line and the headers that answers of a kind share; servers send few kinds of answers."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
    kind = f"content-type: {content_type}\r\n" if content_type else ""
    closing = "" if keeps_alive else "connection: close\r\n"
    return f"HTTP/1.1 {status} {phrase}\r\n{kind}{common}{closing}".encode("latin-1", "replace")


class HttpServer:
    """Listens for connections, and closes those it has when it is closed.

    A subclass may override `connect` to make connections of its own kind. What a connection does with a
    request is its handler's business; the server only admits and forgets connections.
    """

    def __init__(
        self,
        on_request: Callable[[ServerConnection, HttpRequest], None],
        on_gone: Callable[[ServerConnection], None] | None = None,
        common: str = "",
        answers_half_closed: bool = False,
    ) -> None:
        self._on_request, self._on_client_gone, self._common = on_request, on_gone, common
        self._answers_half_closed = answers_half_closed
        self._server: asyncio.Server | None = None
        self._end_connection: Callable[[ServerConnection], None] | None = None
        """How those that still come are ended once the server is closed."""
        self.connections: set[ServerConnection] = set()

    async def listen(
        self, host: str = "127.0.0.1", port: int = 0, *, sock: socket.socket | None = None, backlog: int = 100
    ) -> int:
        """Start listening, on `sock` if there is one; returns the port."""
        self._end_connection = None
        loop = asyncio.get_running_loop()
        if sock is not None:
            self._server = await loop.create_server(self._admit, sock=sock, backlog=backlog)
        else:
            self._server = await loop.create_server(self._admit, host, port, backlog=backlog)
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def is_listening(self) -> bool:
        return self._server is not None

    def connect(self) -> ServerConnection:
        """A connection that a client has just made."""
        return ServerConnection(self._on_request, self.forget, self._common, self._answers_half_closed)

    def _admit(self) -> ServerConnection:
        connection = self.connect()
        self.connections.add(connection)
        if self._end_connection is not None:  # closed since the loop accepted it, one round ago
            self._end_connection(connection)
        return connection

    def forget(self, connection: ServerConnection) -> None:
        self.connections.discard(connection)
        if self._on_client_gone is not None:
            self._on_client_gone(connection)

    def close(self, *, resets: bool = False) -> None:
        """Stop listening, and close every connection or reset it."""
        self._end_connection = ServerConnection.reset if resets else ServerConnection.close
        if self._server is not None:
            loop = asyncio.get_running_loop()
            for listener in self._server.sockets:
                loop.remove_reader(listener.fileno())
            # A round later: asyncio would leave a connection open that it has accepted but not yet made (CPython issue 109564).
            loop.call_soon(self._server.close)
            self._server = None
        for connection in list(self.connections):
            self._end_connection(connection)


class TaskServer(HttpServer):
    """Answers each request in a task of its own. A handler that raises ConnectionError has the connection closed."""

    def __init__(
        self,
        handle: Callable[[ServerConnection, HttpRequest], Awaitable[None]],
        on_gone: Callable[[ServerConnection], None] | None = None,
        answers_half_closed: bool = False,
    ) -> None:
        super().__init__(self.start, on_gone, answers_half_closed=answers_half_closed)
        self._handle = handle
        self.tasks: dict[ServerConnection, asyncio.Task[None]] = {}

    def start(self, connection: ServerConnection, request: HttpRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._run(connection, request))
        self.tasks[connection] = task

        def end(done: asyncio.Task[None]) -> None:
            # The next request of the connection may have begun before this callback runs.
            if self.tasks.get(connection) is done:
                del self.tasks[connection]

        task.add_done_callback(end)

    async def _run(self, connection: ServerConnection, request: HttpRequest) -> None:
        try:
            await self._handle(connection, request)
        except ConnectionError:
            connection.close()
        except BaseException:
            connection.close()
            raise
