"""Connections to one origin: keeps the idle ones and limits how many there are.

There are `size` places. A place is free, or taken by a connection that is idle, lent or being opened. Who finds no idle connection
and no free place waits; a connection that is given back, or the place of one that was lost, goes to the one who has waited
longest. All of it runs on one event loop, so there are no locks.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable

from assay.http.connection import Connection
from assay.http.errors import ConnectFailed, TlsFailed
from assay.http.request import Origin

_BUFFER_BYTES = 128 * 1024


class ConnectionPool:
    """Lends connections to one origin, at most `size` of them at a time.

    The borrower always gives a connection back, and the pool closes one that cannot be used again.

    Waiters are served in their order. They wait for either a connection or a place: if a lent connection
    is lost, its place goes to the next waiter, which then connects by itself. A place becomes free only
    when the connection is really gone, not when `close` was called on it, so the number of open sockets
    never exceeds the limit.
    """

    def __init__(
        self, origin: Origin, size: int, connect_timeout: float, tls: Callable[[], ssl.SSLContext]
    ) -> None:
        self._origin = origin
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._places = size
        # Read into one buffer: asyncio else makes and shrinks one of 256 KiB for each read, which costs more than the read.
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()

    async def take(self, is_fresh: bool = False) -> Connection:
        """An idle connection or a new one.

        With `is_fresh` only a new one will do: the caller has met one that the server had closed, and the other idle ones
        are likely to be closed as well.
        """
        if is_fresh:
            for connection in self._idle:
                connection.close()
        while True:
            while self._idle:
                if (connection := self._idle.pop()).is_open:
                    return connection
            if self._places:
                self._places -= 1
                return await self._connect()
            # None is a free place. A connection may have been closed between being handed on and this task's turn.
            handed = await self._turn()
            if handed is None:
                return await self._connect()
            if handed.is_open:
                return handed

    def give_back(self, connection: Connection) -> None:
        """Take a connection back from its borrower; one that cannot be used again is closed.

        Its place becomes free only when the connection is lost, which `_forget` is told.
        """
        if connection.is_reusable:
            connection.rest()
            self._offer(connection)
        else:
            connection.close()

    def _offer(self, connection: Connection) -> None:
        if not self._wake_next(connection):
            self._idle.append(connection)

    def _free_place(self) -> None:
        if not self._wake_next(None):
            self._places += 1

    def _wake_next(self, handed: Connection | None) -> bool:
        """Hand a connection or a place to the longest waiter; False if there is none. Cancelled waiters
        are skipped.

        It must be a waiter that still waits: one that was cancelled would take the connection with it,
        and the place would be lost for good.
        """
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(handed)
                return True
        return False

    async def _turn(self) -> Connection | None:
        """A connection that somebody gave back, or None for the place of one that was lost.

        A task may be cancelled after its turn has come and before it runs again. What it was given then
        goes to the next waiter.
        """
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            # It was this one's turn already when it was cancelled: what it was given goes to the next.
            if waiter.done() and not waiter.cancelled():
                handed = waiter.result()
                if handed is None:
                    self._free_place()
                elif handed.is_open:
                    self._offer(handed)
            raise

    async def _connect(self) -> Connection:
        """Uses up the place that the caller holds; gives it back on failure."""
        try:
            connection = await self._open_connection()
        except BaseException:
            self._free_place()
            raise
        self._all.add(connection)
        connection.on_lost = self._forget
        return connection

    async def _open_connection(self) -> Connection:
        origin = self._origin
        loop = asyncio.get_running_loop()
        tls = self._tls() if origin.scheme == "https" else None
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, origin, self._buffer), origin.host, origin.port, ssl=tls
                )
        except TimeoutError as error:
            raise ConnectFailed(f"No connection to {origin} within {self._connect_timeout:g} s.") from error
        except ssl.SSLError as error:
            raise TlsFailed(f"No trusted connection to {origin}: {_reason(error)}.") from error
        except (OSError, UnicodeError) as error:
            raise ConnectFailed(f"No connection to {origin}: {_reason(error)}.") from error
        if not connection.is_open:
            raise ConnectFailed(f"{origin} closed the connection as soon as it was made.")
        return connection

    def _forget(self, connection: Connection) -> None:
        """A connection was lost, on either side: only now is its place free. Closing alone does not free it."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._free_place()

    async def close(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ConnectFailed("The client was closed."))
        self._waiters.clear()
        losing = [connection.lost for connection in self._all]
        for connection in self._all:
            connection.close()
        if losing:
            await asyncio.wait(losing, timeout=1)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "the certificate is not trusted"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and (error.errno or 0) > 0:
        # asyncio puts its own words in strerror, and they do not say what happened.
        return os.strerror(error.errno or 0).lower()
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(text or type(error).__name__).rstrip(".")
