"""A lean HTTP/1.1 client: keeps connections, follows no redirects, and notes the time of every read.

Agents, the cassette proxy and tests use it; the load workers have a leaner one of their own. It exists because general clients
do not say when each piece of an answer arrived, and cost more than the answers of a fast server. A request goes through four
layers: `HttpClient` prepares it, `ConnectionPool` lends a connection, `Connection` moves bytes, `Exchange` makes an answer of them.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from assay.http.connection import Connection, Exchange
from assay.http.errors import BadResponse, Disconnected
from assay.http.events import Piece
from assay.http.pool import ConnectionPool
from assay.http.request import Origin, PreparedRequest, prepare

_MAX_PREPARED = 256


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer; a `Stream` also tells the times of its parts."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise BadResponse(f"The answer is not JSON: {self.body[:80]!r}.") from error


class _Stale(Exception):
    """The other side closed a kept connection before this request reached it."""


class HttpClient:
    """An HTTP/1.1 client for one event loop; use it as `async with`.

    There is a pool of connections for each origin. A request that is cancelled gives up its connection,
    since the rest of the answer may still arrive on it. A request on a kept-alive connection that was
    closed before any byte of the answer is sent once more on a new one, as RFC 9112 allows.
    """

    def __init__(
        self,
        *,
        max_connections: int = 100,
        max_response_bytes: int = 64 * 2**20,
        connect_timeout: float = 10.0,
        ca_file: Path | None = None,
    ) -> None:
        self._max_connections = max_connections
        self._max_response_bytes = max_response_bytes
        self._connect_timeout = connect_timeout
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[Origin, ConnectionPool] = {}
        self._prepared: dict[tuple[str, str, frozenset[tuple[str, str]]], PreparedRequest] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()
        self._pools.clear()

    async def request(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Response:
        async with self.stream(method, url, body, headers) as stream:
            return Response(stream.status, stream.headers, await stream.read())

    def stream(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Stream:
        return Stream(self, self._prepare(method, url, headers or {}), body)

    async def _begin(self, prepared: PreparedRequest, body: bytes) -> tuple[Connection, Exchange]:
        """Send the request and wait for the head of the answer.

        A server may close an idle connection at the moment at which we use it. If nothing of an answer has come on a
        connection that was used before, the request is sent again, once, on a new one.
        """
        message = prepared.with_body(body)
        try:
            return await self._attempt(prepared, message, is_retry=False)
        except _Stale:
            return await self._attempt(prepared, message, is_retry=True)

    async def _attempt(
        self, prepared: PreparedRequest, message: bytes, is_retry: bool
    ) -> tuple[Connection, Exchange]:
        pool = self._pool(prepared.origin)
        connection = await pool.take(is_fresh=is_retry)
        exchange = connection.send(message, prepared.method, self._max_response_bytes)
        try:
            await exchange.head()
        except BaseException as error:
            # Also when the caller is cancelled: the place in the pool is free again, and the connection, in the middle of an
            # answer that is no longer read, is closed by the pool.
            pool.give_back(connection)
            is_stale = isinstance(error, Disconnected) and connection.served > 1 and not exchange.first_byte
            if is_stale and not is_retry:
                raise _Stale from error
            raise
        return connection, exchange

    def _prepare(self, method: str, url: str, headers: Mapping[str, str]) -> PreparedRequest:
        # An agent sends the same head again and again. A program that varies it endlessly must not fill the memory.
        key = (method, url, frozenset(headers.items()))
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= _MAX_PREPARED:
                self._prepared.clear()
            prepared = self._prepared[key] = prepare(method, url, headers)
        return prepared

    def _pool(self, origin: Origin) -> ConnectionPool:
        pool = self._pools.get(origin)
        if pool is None:
            pool = ConnectionPool(origin, self._max_connections, self._connect_timeout, self._tls_context)
            self._pools[origin] = pool
        return pool

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            # Made once and late: to read the certificates of the system takes tens of milliseconds, which plain HTTP can spare.
            self._tls = ssl.create_default_context(cafile=self._ca_file)
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


class Stream:
    """An answer as it arrives; status and headers are known inside the `async with`.

    Leaving the block gives the connection back; one whose answer was not read to its end is closed. Times are seconds of
    `perf_counter`, and 0 for what has not happened yet.
    """

    def __init__(self, client: HttpClient, prepared: PreparedRequest, body: bytes) -> None:
        self._client = client
        self._prepared = prepared
        self._body = body
        self._connection: Connection
        self._exchange: Exchange
        self.started = 0.0

    async def __aenter__(self) -> Self:
        self.started = perf_counter()
        self._connection, self._exchange = await self._client._begin(self._prepared, self._body)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client._pool(self._prepared.origin).give_back(self._connection)

    @property
    def status(self) -> int:
        assert self._exchange.status is not None
        return self._exchange.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.headers

    @property
    def sent(self) -> float:
        return self._exchange.sent

    @property
    def first_byte(self) -> float:
        return self._exchange.first_byte

    @property
    def ended(self) -> float:
        """When the last byte came; 0 until then."""
        return self._exchange.ended

    def pieces(self) -> AsyncIterator[Piece]:
        """What each read brought, from the first on; wakes its reader for each."""
        return _Pieces(self._exchange)

    @property
    def arrived(self) -> Sequence[Piece]:
        """What has come so far, also when the stream was cut off."""
        return self._exchange.pieces

    async def end(self) -> Sequence[Piece]:
        """All pieces, after the last: their times are as exact as with pieces(), for a third of the work."""
        await self._exchange.end()
        return self._exchange.pieces

    async def read(self) -> bytes:
        """The whole body."""
        await self._exchange.end()
        return self._exchange.received


class _Pieces:
    """Iterates over an answer while it arrives. A class and not a generator, which would need to be closed when left half way."""

    __slots__ = ("_exchange", "_next")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._next = 0

    def __aiter__(self) -> AsyncIterator[Piece]:
        return self

    async def __anext__(self) -> Piece:
        piece = await self._exchange.piece(self._next)
        if piece is None:
            raise StopAsyncIteration
        self._next += 1
        return piece
