"""Servers that say exactly what a test wants, however wrong."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class RawServer:
    url: str = ""
    connections: int = 0
    open_now: int = 0
    most_open: int = 0
    requests: list[bytes] = field(default_factory=list)


Talk = Callable[[asyncio.StreamWriter, int], Awaitable[bool | None]]
"""Answers the request with that number (from 1); returns False to close the connection."""


@asynccontextmanager
async def raw_server(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    seen = RawServer()
    guests: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guests.add(cast("asyncio.Task[None]", asyncio.current_task()))
        seen.connections += 1
        seen.open_now += 1
        seen.most_open = max(seen.most_open, seen.open_now)
        try:
            while (request := await _request(reader)) is not None:
                seen.requests.append(request)
                if await talk(writer, len(seen.requests)) is False:
                    break
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            seen.open_now -= 1
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    seen.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield seen
    finally:
        server.close()
        for guest in guests:
            guest.cancel()
        await asyncio.gather(*guests, return_exceptions=True)
        await asyncio.sleep(0.001)


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


def always(reply: bytes, *, closes: bool = False) -> Talk:
    async def talk(writer: asyncio.StreamWriter, number: int) -> bool:
        writer.write(reply)
        return not closes

    return talk
