"""A local server that programs take for their LLM provider: it records what passes, or answers from a cassette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import IO, Any

from assay.execute.cassette.tape import KEPT_HEADERS, Exchange, Player, Redaction, line_of
from assay.execute.http import HttpClient, HttpError

MOST_BYTES = 64 * 2**20
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "transfer-encoding",
        "te",
        "upgrade",
        "host",
        "content-length",
        "accept-encoding",
        "expect",
    }
)

UPSTREAMS = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "ollama": "http://127.0.0.1:11434",
}


def provider_of(path: str) -> str:
    """Who serves a path: the three protocols do not share one."""
    if path.startswith("/api/"):
        return "ollama"
    return "anthropic" if path.startswith("/v1/messages") else "openai"


@dataclass(frozen=True, slots=True)
class Incoming:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return self.body.decode("utf-8", "replace")


class Outgoing:
    """The answer on its way to the program, piece by piece."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status} X",
            *(f"{k}: {v}" for k, v in headers.items()),
            "transfer-encoding: chunked",
        ]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))

    async def piece(self, data: bytes) -> None:
        if data:
            self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()


Serve = Callable[[Incoming, Outgoing], Awaitable[None]]


class Proxy:
    """Listens on loopback while it is entered."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**20)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (incoming := await _read(reader)) is not None:
                await self._serve(incoming, Outgoing(writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Incoming | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
    return Incoming(method, path, headers, await _body(reader, headers))


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body
    length = int(headers.get("content-length", 0))
    if length > MOST_BYTES:
        raise ValueError("the request is too large")
    return await reader.readexactly(length)


class Recorder:
    """Passes requests on to where they were meant to go, and writes each exchange down when it is over."""

    def __init__(self, file: IO[str], upstreams: Mapping[str, str], redaction: Redaction) -> None:
        self._file, self._upstreams, self._redaction = file, upstreams, redaction
        self._client = HttpClient()
        self.recorded = 0

    async def serve(self, incoming: Incoming, outgoing: Outgoing) -> None:
        upstream = self._upstreams[provider_of(incoming.path)].rstrip("/")
        headers = {k: v for k, v in incoming.headers.items() if k not in _HOP_BY_HOP}
        started = perf_counter()
        pieces: list[tuple[float, bytes]] = []
        try:
            async with self._client.stream(
                incoming.method, upstream + incoming.path, incoming.body, headers
            ) as answer:
                kept = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
                outgoing.begin(answer.status, kept)
                async for piece in answer.pieces():
                    pieces.append((piece.at - started, piece.data))
                    await outgoing.piece(piece.data)
                await outgoing.end()
                self._write(incoming, answer.status, kept, pieces)
        except HttpError as error:
            outgoing.begin(502, {"content-type": "application/json"})
            await outgoing.piece(
                json.dumps({"error": {"message": f"The provider could not be reached: {error}"}}).encode()
            )
            await outgoing.end()

    def _write(
        self, incoming: Incoming, status: int, headers: Mapping[str, str], pieces: list[tuple[float, bytes]]
    ) -> None:
        exchange = Exchange(incoming.method, incoming.path, incoming.json, status, headers, _texts(pieces))
        self._file.write(line_of(exchange, self._redaction))
        self._file.flush()
        self.recorded += 1

    async def close(self) -> None:
        await self._client.close()


def _texts(pieces: list[tuple[float, bytes]]) -> tuple[tuple[float, str], ...]:
    """Pieces as text; a character that was cut in two goes with its second half."""
    texts, rest = [], b""
    for at, data in pieces:
        data = rest + data
        cut = _whole(data)
        texts.append((at, data[:cut].decode("utf-8", "replace")))
        rest = data[cut:]
    if rest and texts:
        texts[-1] = (texts[-1][0], texts[-1][1] + rest.decode("utf-8", "replace"))
    return tuple(texts)


def _whole(data: bytes) -> int:
    """How much of the bytes ends with a whole character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return len(data)
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if back >= needed else len(data) - back
    return len(data)


class Replayer:
    """Answers from a cassette, with the recorded delays times `pace`; 0 answers at once."""

    def __init__(self, player: Player, pace: float) -> None:
        self._player, self._pace = player, pace
        self.replayed = 0

    async def serve(self, incoming: Incoming, outgoing: Outgoing) -> None:
        found = self._player.find(incoming.method, incoming.path, incoming.json)
        if found is None:
            outgoing.begin(404, {"content-type": "application/json"})
            message = {"error": {"message": self._player.misses[-1], "type": "cassette_miss"}}
            await outgoing.piece(json.dumps(message).encode())
            await outgoing.end()
            return
        started = perf_counter()
        outgoing.begin(found.status, found.headers)
        for at, text in found.pieces:
            wait = started + at * self._pace - perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            await outgoing.piece(text.encode())
        await outgoing.end()
        self.replayed += 1
