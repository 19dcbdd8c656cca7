"""Connections to one origin: the idle ones, and a bound on how many there are."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable

from assay.execute.http.connection import Connection
from assay.execute.http.errors import ConnectFailed, TlsFailed
from assay.execute.http.request import Origin

_BUFFER_BYTES = 128 * 1024


class ConnectionPool:
    """Whoever takes a connection gives it back, whatever became of it; those who wait are served in turn."""

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
        """An idle connection or a new one; who wants a fresh one has met a stale one, so all idle ones are suspect."""
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
            handed = await self._turn()
            if handed is None:
                return await self._connect()
            if handed.is_open:
                return handed

    def give_back(self, connection: Connection) -> None:
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
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(handed)
                return True
        return False

    async def _turn(self) -> Connection | None:
        """A connection that somebody gave back, or None for the place of one that was lost."""
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())
            raise

    def _pass_on(self, handed: Connection | None) -> None:
        if handed is None:
            self._free_place()
        elif handed.is_open:
            self._offer(handed)

    async def _connect(self) -> Connection:
        """Uses up the place that the caller holds; gives it back on failure."""
        try:
            connection = await self._connected()
        except BaseException:
            self._free_place()
            raise
        self._all.add(connection)
        connection.on_lost = self._forget
        return connection

    async def _connected(self) -> Connection:
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
