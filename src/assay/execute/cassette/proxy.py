"""A local server that programs take for their LLM provider: it records what passes, or answers from a cassette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from time import perf_counter
from typing import Any

from assay.execute.cassette.player import Player
from assay.execute.cassette.tape import KEPT_HEADERS, RecordedExchange, parse_json
from assay.execute.cassette.writer import CassetteWriter
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
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "ollama": "http://127.0.0.1:11434",
}
OPENAI_PATH = "/v1"
"""Where programs are told to look for OpenAI; what comes after it is added to the real address."""


def destination(incoming: Incoming, upstreams: Mapping[str, str]) -> str:
    """Where a request was meant to go: the three protocols share hardly a path."""
    path = incoming.path
    if path.startswith("/api/") or path == "/":
        return upstreams["ollama"] + path
    if path.startswith("/v1/messages") or "anthropic-version" in incoming.headers:
        return upstreams["anthropic"] + path
    return upstreams["openai"] + path.removeprefix(OPENAI_PATH)


@dataclass(frozen=True, slots=True)
class Incoming:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return parse_json(self.body) if self.body else None
        except ValueError:
            return self.body.decode("utf-8", "replace")


class Outgoing:
    """The answer on its way to the program, piece by piece."""

    def __init__(self, writer: asyncio.StreamWriter, method: str) -> None:
        self._writer = writer
        self._method = method
        self._has_body = True

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._has_body = self._method != "HEAD" and status not in (204, 304)
        lines = [f"HTTP/1.1 {status} {_reason(status)}", *(f"{k}: {v}" for k, v in headers.items())]
        if self._has_body:
            lines.append("transfer-encoding: chunked")
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))

    async def piece(self, data: bytes) -> None:
        if data and self._has_body:
            self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await self._writer.drain()

    async def end(self) -> None:
        if self._has_body:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def fail(self, status: int, message: str, kind: str) -> None:
        """An answer in the shape that all three protocols give errors."""
        self.begin(status, {"content-type": "application/json"})
        await self.piece(json.dumps({"error": {"message": message, "type": kind}}).encode())
        await self.end()


def _reason(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"


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
            while (incoming := await _read(reader, writer)) is not None:
                await self._serve(incoming, Outgoing(writer, incoming.method))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Incoming | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
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


@dataclass(slots=True)
class _Taken:
    """An answer, as far as it has come."""

    since: float = field(default_factory=perf_counter)
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    is_cut: bool = True
    """Until its end has come: the provider or the program may hang up before that."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = {name: headers[name] for name in KEPT_HEADERS if name in headers}


class Recorder:
    """Forwards requests to the server they are meant for, and stores each exchange without secrets when it is over."""

    def __init__(self, cassette: CassetteWriter, upstreams: Mapping[str, str]) -> None:
        self._cassette, self._upstreams = cassette, upstreams
        self._client = HttpClient()
        self.recorded = 0
        self.unreachable: list[str] = []
        """Why calls could not be passed on."""

    async def serve(self, incoming: Incoming, outgoing: Outgoing) -> None:
        self._cassette.learn_request(incoming.headers, incoming.path, incoming.json)
        headers = {k: v for k, v in incoming.headers.items() if k not in _HOP_BY_HOP}
        url = destination(incoming, self._upstreams)
        taken = _Taken()
        try:
            async with self._client.stream(incoming.method, url, incoming.body, headers) as answer:
                taken.begin(answer.status, answer.headers)
                outgoing.begin(taken.status, taken.headers)
                async for piece in answer.pieces():
                    taken.pieces.append((piece.at - taken.since, piece.data))
                    await outgoing.piece(piece.data)
                taken.is_cut = False
                await outgoing.end()
        except HttpError as error:
            if not taken.status:
                self.unreachable.append(str(error))
                await outgoing.fail(502, f"The provider could not be reached: {error}", "proxy_error")
                return
            raise ConnectionError from error
        finally:
            # Also what the program did not wait for, or what broke off: it would be missed in a replay.
            if taken.status:
                self._write(incoming, taken)

    def _write(self, incoming: Incoming, taken: _Taken) -> None:
        is_binary = _is_binary(taken)
        pieces = _texts(taken.pieces)
        if is_binary:
            pieces = tuple((at, data.decode("latin-1")) for at, data in taken.pieces)
        exchange = RecordedExchange(
            incoming.method, incoming.path, incoming.json, taken.status, taken.headers, pieces, taken.is_cut,
            is_binary,
        )  # fmt: skip
        self._cassette.add(exchange)
        self.recorded += 1

    async def close(self) -> None:
        await self._client.close()


def _is_binary(taken: _Taken) -> bool:
    """Whether the answer is no text; one that was cut off may end within a character."""
    data = b"".join(data for _, data in taken.pieces)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return not (taken.is_cut and error.end == len(data))
    return False


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
        self._player.learn_from(incoming.headers, incoming.path, incoming.json)
        found = self._player.find(incoming.method, incoming.path, incoming.json)
        if found is None:
            await outgoing.fail(404, self._player.misses[-1], "cassette_miss")
            return
        started = perf_counter()
        outgoing.begin(found.status, headers_at(self._pace, found))
        for at, data in found.sent_pieces:
            await until(started + at * self._pace)
            await outgoing.piece(data)
        self.replayed += 1
        if found.is_cut:
            raise ConnectionError
        await outgoing.end()


async def until(moment: float) -> None:
    """Wait for a moment of perf_counter."""
    wait = moment - perf_counter()
    if wait > 0:
        await asyncio.sleep(wait)


def headers_at(pace: float, exchange: RecordedExchange) -> dict[str, str]:
    """At another pace than the recorded one, times are made up, and whoever measures them is told."""
    return dict(exchange.headers) | ({} if pace == 1 else {"x-assay-simulated": "1"})
