"""The server's side of HTTP/1.1: requests out of bytes, one at a time on each connection."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from time import monotonic
from typing import NamedTuple, cast

from assay.execute.http.framing import Body, FramingError, HeadReader, MessageHead, SizedBody, announced_body
from assay.testing.sim_llm.dialects.dialect import json_bytes

MAX_BODY = 64 * 2**20

_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+) HTTP/1\.([01])")
_MAX_WAITING = 64 * 1024
_NO_HEADERS: Mapping[str, str] = {}


class HttpRequest(NamedTuple):
    method: str
    path: str
    body: bytes
    arrived: float
    """When its last byte was read, on the monotonic clock."""


class Guest(asyncio.Protocol):
    """A client's connection. Whoever is shown a request ends it with `answer`, or with `begin`, `send` and `finish`."""

    __slots__ = (
        "_body",
        "_head",
        "_is_busy",
        "_is_reading",
        "_keeps_alive",
        "_on_request",
        "_parts",
        "_request_line",
        "_size",
        "_transport",
        "_uses_chunks",
        "_waiting",
        "is_gone",
        "on_gone",
    )

    def __init__(
        self, on_request: Callable[[Guest, HttpRequest], None], on_gone: Callable[[Guest], None]
    ) -> None:
        self._on_request = on_request
        self.on_gone = on_gone
        self._transport: asyncio.Transport
        self._head = HeadReader()
        self._body: Body | None = None
        self._request_line = ("", "")
        self._parts: list[bytes] = []
        self._size = 0
        self._waiting = b""
        self._is_busy = False
        self._is_reading = False
        self._keeps_alive = True
        self._uses_chunks = True
        self.is_gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True
        self.on_gone(self)

    def data_received(self, data: bytes) -> None:
        self._waiting = self._waiting + data if self._waiting else data
        if not self._is_busy:
            self._read(monotonic())
        elif len(self._waiting) > _MAX_WAITING:
            self._transport.pause_reading()

    def _read(self, now: float) -> None:
        """Requests sent ahead of their turn stay where they are until the one before is answered."""
        self._is_reading = True
        try:
            while self._waiting and not self._is_busy and not self._transport.is_closing():
                data, self._waiting = self._waiting, b""
                self._take(data, now)
        except FramingError as error:
            self._refuse(400, f"This is not HTTP/1.1: {error}.")
        finally:
            self._is_reading = False

    def _take(self, data: bytes, now: float) -> None:
        if self._body is None:
            found = self._head.feed(data)
            if found is None:
                return
            head, data = found
            self._body = self._begin_request(head)
            if not data and "100-continue" in head.headers.get("expect", ""):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._body
        if data:
            part = body.feed(data)
            self._parts.append(part)
            self._size += len(part)
        if self._size + body.left > MAX_BODY:
            self._refuse(413, f"A request has at most {MAX_BODY:,} bytes.")
        elif body.is_done:
            self._show_request(body.excess, now)

    def _begin_request(self, head: MessageHead) -> Body:
        found = _REQUEST.fullmatch(head.start)
        if found is None:
            raise FramingError(f"{head.start[:80]!r} is not a request")
        self._request_line = (found[1], found[2].partition("?")[0])
        self._uses_chunks = found[3] == "1"
        self._keeps_alive = head.keeps_alive(found[3])
        return announced_body(head.headers) or SizedBody(0)

    def _show_request(self, excess: bytes, now: float) -> None:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self._size = 0
        self._body = None
        self._waiting = excess
        self._is_busy = True
        self._on_request(self, HttpRequest(*self._request_line, body, now))

    def _refuse(self, status: int, message: str) -> None:
        self._keeps_alive = False
        self.answer(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def answer(self, status: int, document: object, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        self.send(self.whole(status, json_bytes(document), headers))
        self.finish()

    def whole(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] = _NO_HEADERS,
        content_type: str = "application/json",
    ) -> bytes:
        start = self._start(status, content_type)
        if headers:
            start += "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
        return b"%bcontent-length: %d\r\n\r\n%b" % (start, len(body), body)

    def send(self, message: bytes) -> None:
        self._transport.write(message)

    def begin(self, content_type: str) -> bytes:
        """The head of a streamed answer; it is not sent yet, so that it can go with what follows."""
        framing = b"transfer-encoding: chunked\r\n" if self._uses_chunks else b"connection: close\r\n"
        self._keeps_alive &= self._uses_chunks
        return self._start(200, content_type) + b"cache-control: no-cache\r\n" + framing + b"\r\n"

    def chunk(self, payload: bytes) -> bytes:
        if not payload or not self._uses_chunks:
            return payload
        return b"%x\r\n%b\r\n" % (len(payload), payload)

    @property
    def last_chunk(self) -> bytes:
        return b"0\r\n\r\n" if self._uses_chunks else b""

    def finish(self) -> None:
        """The answer is complete; go on to the next request."""
        self._is_busy = False
        if not self._keeps_alive:
            self._transport.close()
            return
        self._transport.resume_reading()
        if self._waiting and not self._is_reading:
            self._read(monotonic())

    def close(self) -> None:
        """After what was written has left."""
        self._transport.close()

    def _start(self, status: int, content_type: str) -> bytes:
        return _STARTS.get((status, content_type, self._keeps_alive)) or _start(
            status, content_type, self._keeps_alive
        )


_STARTS: dict[tuple[int, str, bool], bytes] = {}


def _start(status: int, content_type: str, keeps_alive: bool) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"content-type: {content_type}"]
    lines += ["x-assay-simulated: 1"] + ([] if keeps_alive else ["connection: close"])
    start = ("\r\n".join(lines) + "\r\n").encode()
    _STARTS[status, content_type, keeps_alive] = start
    return start
