"""One connection of the client, and the exchange that is under way on it.

`Connection` is the protocol object of asyncio: it is called with bytes and hands them, with the time of the read, to the current
`Exchange`. The task that awaits the exchange is woken by a future: for each piece, or only at the end, which saves most of the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import cast

from assay.http.errors import BadResponse, Disconnected, HttpError, ResponseTooLarge
from assay.http.events import Piece
from assay.http.framing import (
    Body,
    CompressedBody,
    FramingError,
    HeadReader,
    OpenBody,
    build_response_body,
    decode_body,
    status_of,
)
from assay.http.request import Origin


class Exchange:
    """One request and what has come back for it so far.

    It goes through three states: waiting for the head (`status` is None), receiving the body, and over (`is_over`), with an
    `error` if the answer could not be read. One task at a time awaits `head`, `piece` or `end`.
    """

    __slots__ = (
        "_awaits_end", "_body", "_ends_at_close", "_head", "_loop", "_max_bytes", "_method", "_size",
        "_waiter", "ended", "error", "first_byte", "headers", "is_over", "keeps_alive", "pieces", "sent",
        "status",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, method: str, max_bytes: int) -> None:
        self._loop = loop
        self._method = method
        self._max_bytes = max_bytes
        self._head = HeadReader()
        self._body: Body | None = None
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._awaits_end = False
        self._ends_at_close = False
        self.pieces: list[Piece] = []
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.keeps_alive = False
        self.is_over = False
        self.error: HttpError | None = None
        self.sent = self.first_byte = self.ended = 0.0

    def receive(self, data: bytes, at: float) -> None:
        """Take what one read brought; FramingError or ResponseTooLarge where it cannot be an answer that was agreed to.

        Bytes after the end of the answer (`excess`) cannot belong to anything that was asked for, so the connection is not used
        again: a later answer would be mistaken for another.
        """
        if not self.first_byte:
            self.first_byte = at
        body = self._body
        if body is None:
            if (after := self._read_head(data)) is None:
                return
            body, data = after
        if data and (part := body.feed(data)):
            self._add(part, at)
        if body.is_done:
            self.ended = at
            self.keeps_alive &= not body.excess
            self.is_over = True
        self._wake()

    def _read_head(self, data: bytes) -> tuple[Body, bytes] | None:
        """The body and the bytes after the head, once the final head has come; heads such as 100 Continue are skipped."""
        while (found := self._head.feed(data)) is not None:
            head, data = found
            status, minor_version = status_of(head)
            if status >= 200:
                self.status, self.headers = status, head.headers
                self.keeps_alive = head.keeps_alive(minor_version)
                self._body = self._build_body(status)
                return self._body, data
        return None

    def _build_body(self, status: int) -> Body:
        body = build_response_body(self._method, status, self.headers)
        if body.is_done:
            return body
        if isinstance(body, OpenBody):
            self.keeps_alive = False
            self._ends_at_close = True
        # Refused by what is announced, before gigabytes are received.
        if body.left > self._max_bytes:
            raise ResponseTooLarge(
                f"An answer of {body.left:,} bytes was announced; {self._max_bytes:,} are allowed."
            )
        return decode_body(body, self.headers, self._max_bytes)

    def _add(self, part: bytes, at: float) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            raise ResponseTooLarge(
                f"The answer is larger than the {self._max_bytes:,} bytes that are allowed."
            )
        self.pieces.append(Piece(part, at))

    def lose(self, origin: Origin, reason: Exception | None) -> None:
        """The connection is gone: that is the end of an answer without a size, and an error for any other."""
        if self.is_over:
            return
        is_cut = isinstance(self._body, CompressedBody) and not self._body.is_complete
        if self._ends_at_close and reason is None and not is_cut:
            self.ended = perf_counter()
            self.is_over = True
            self._wake()
            return
        when = f"after {self._size:,} bytes of its answer" if self.first_byte else "before it answered"
        why = f" ({reason})" if reason else ""
        self.fail(Disconnected(f"{origin} closed the connection {when}{why}.", self.status, self.received))

    @property
    def received(self) -> bytes:
        pieces = self.pieces
        return pieces[0].data if len(pieces) == 1 else b"".join([piece.data for piece in pieces])

    def fail(self, error: HttpError) -> None:
        self.error = error
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        """Wake the task that waits, unless it waits for the end and this is none: each wake-up is a turn of the event loop."""
        waiter = self._waiter
        if waiter is not None and (self.is_over or not self._awaits_end) and not waiter.done():
            waiter.set_result(None)

    async def head(self) -> None:
        """Wait for the head; an answer that breaks off after it has one, and its error is raised when the rest is read."""
        while self.status is None and not self.is_over:
            await self._change(awaits_end=False)
        if self.error is not None and self.status is None:
            raise self.error

    async def piece(self, number: int) -> Piece | None:
        """The piece with that number; None after the last."""
        while number >= len(self.pieces):
            if self.error is not None:
                raise self.error
            if self.is_over:
                return None
            await self._change(awaits_end=False)
        return self.pieces[number]

    async def end(self) -> None:
        if not self.is_over:
            await self._change(awaits_end=True)
        if self.error is not None:
            raise self.error

    async def _change(self, awaits_end: bool) -> None:
        self._awaits_end = awaits_end
        self._waiter = self._loop.create_future()
        await self._waiter


class Connection(asyncio.BufferedProtocol):
    """A connection to an origin; at most one exchange is under way. `served` counts its exchanges."""

    __slots__ = (
        "_buffer", "_exchange", "_loop", "_transport", "is_open", "lost", "on_lost", "origin", "served",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, origin: Origin, buffer: memoryview) -> None:
        """All connections on a loop may share the buffer: what is read into it is copied out at once.

        It is a memoryview because asyncio's TLS writes each further record to a slice of it, and a slice of a
        bytearray is a copy: those records would be lost, and older bytes of the buffer delivered in their place.
        """
        self._loop = loop
        self._buffer = buffer
        self._exchange: Exchange | None = None
        self._transport: asyncio.Transport | None = None
        self.origin = origin
        self.served = 0
        self.is_open = False
        self.lost: asyncio.Future[None] = loop.create_future()
        self.on_lost: Callable[[Connection], None] | None = None

    def send(self, message: bytes, method: str, max_bytes: int) -> Exchange:
        """Begin an exchange. The time of sending is taken before the write, which sends at once where the socket accepts it."""
        assert self._transport is not None
        self._exchange = exchange = Exchange(self._loop, method, max_bytes)
        self.served += 1
        exchange.sent = perf_counter()
        self._transport.write(message)
        return exchange

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange may follow: both sides are done with the last, and the server keeps the connection."""
        exchange, transport = self._exchange, self._transport
        return (
            self.is_open
            and exchange is not None
            and exchange.is_over
            and exchange.error is None
            and exchange.keeps_alive
            and transport is not None
            and transport.get_write_buffer_size() == 0
        )

    def rest(self) -> None:
        self._exchange = None

    def close(self) -> None:
        """Close the connection at once, without sending or reading what is left."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        at = perf_counter()
        data = bytes(self._buffer[:nbytes])
        exchange = self._exchange
        if exchange is None or exchange.is_over:
            # It was not requested: whatever it is, the next answer could not be distinguished from it.
            self.close()
            return
        try:
            exchange.receive(data, at)
        except FramingError as error:
            exchange.fail(BadResponse(f"{self.origin} does not speak HTTP/1.1: {error}."))
            self.close()
        except ResponseTooLarge as error:
            exchange.fail(error)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._exchange is not None:
            self._exchange.lose(self.origin, exc)
        if not self.lost.done():
            self.lost.set_result(None)
        if self.on_lost is not None:
            self.on_lost(self)
