"""A local server that stands in for the LLM provider of a program: it records the traffic, or answers from a cassette.

`Proxy` listens and hands each request to a `Serve` function: that of a `Recorder`, which forwards it and stores the exchange, or of
a `Replayer`, which looks it up. Answers pass piece by piece, so a program that streams sees tokens as they come.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from assay.cassette.player import Player
from assay.cassette.tape import KEPT_HEADERS, RecordedExchange, parse_json
from assay.cassette.writer import CassetteWriter
from assay.dialects import anthropic
from assay.http.client import HttpClient
from assay.http.errors import HttpError
from assay.http.request import OF_ONE_CONNECTION
from assay.http.server import HttpRequest, ServerConnection, TaskServer

_NOT_PASSED_ON = OF_ONE_CONNECTION | {"te", "upgrade", "accept-encoding"}
"""Headers that are about one connection, or that our own client writes."""
OPENAI_PATH = "/v1"
"""Where programs are told to look for OpenAI; what comes after it is added to the real address."""


def destination(request: HttpRequest, upstreams: Mapping[str, str]) -> str:
    """The URL that a request was meant for. The three protocols share hardly a path, so the path says which it is."""
    path = request.target
    if path.startswith("/api/") or path == "/":
        return upstreams["ollama"] + path
    if path.startswith(anthropic.MESSAGES_PATH) or anthropic.VERSION_HEADER in request.headers:
        return upstreams["anthropic"] + path
    return upstreams["openai"] + path.removeprefix(OPENAI_PATH)


def document_of(request: HttpRequest) -> Any:
    """The JSON of a request's body, or its text where it is none."""
    try:
        return parse_json(request.body) if request.body else None
    except ValueError:
        return request.body.decode("utf-8", "replace")


class Outgoing:
    """The answer on its way to the program, piece by piece."""

    def __init__(self, client: ServerConnection) -> None:
        self._client = client

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        others = {name: value for name, value in headers.items() if name != "content-type"}
        self._client.send(self._client.begin(headers.get("content-type", ""), status, others))

    async def piece(self, data: bytes) -> None:
        if data:
            self._client.send(self._client.chunk(data))
            await self._client.drain()

    async def end(self) -> None:
        self._client.send(self._client.last_chunk)
        await self._client.drain()
        self._client.finish()

    def fail(self, status: int, message: str, kind: str) -> None:
        """An answer in the shape that all three protocols give errors."""
        self._client.answer(status, {"error": {"message": message, "type": kind}})


Serve = Callable[[HttpRequest, Outgoing], Awaitable[None]]


class Proxy:
    """Listens on loopback while it is entered."""

    def __init__(self, serve: Serve) -> None:
        self._server = TaskServer(
            lambda client, request: serve(request, Outgoing(client)), answers_half_closed=True
        )

    async def __aenter__(self) -> str:
        return f"http://127.0.0.1:{await self._server.listen()}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


@dataclass(slots=True)
class _Taken:
    """An answer that is being recorded, as far as it has come; times are seconds after the request."""

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
    """Forwards requests to the server they are meant for, and stores each exchange without secrets when it is over.

    The keys that a request carries are learned before it is sent: by the time its answer is stored, one that repeats them is
    redacted. Exchanges stand in the cassette in the order in which they ended, which is how a replay hands them out.
    """

    def __init__(self, cassette: CassetteWriter, upstreams: Mapping[str, str]) -> None:
        self._cassette, self._upstreams = cassette, upstreams
        self._client = HttpClient()
        self.recorded = 0
        self.unreachable: list[str] = []
        """Why calls could not be passed on."""

    async def serve(self, request: HttpRequest, outgoing: Outgoing) -> None:
        self._cassette.learn_request(request.headers, request.target, document_of(request))
        headers = {k: v for k, v in request.headers.items() if k not in _NOT_PASSED_ON}
        url = destination(request, self._upstreams)
        taken = _Taken()
        try:
            async with self._client.stream(request.method, url, request.body, headers) as answer:
                taken.begin(answer.status, answer.headers)
                outgoing.begin(taken.status, taken.headers)
                async for piece in answer.pieces():
                    taken.pieces.append((piece.at - taken.since, piece.data))
                    await outgoing.piece(piece.data)
                taken.is_cut = False
                await outgoing.end()
        except HttpError as error:
            # Before the answer has begun the program can still be told; afterwards its connection can only break.
            if not taken.status:
                self.unreachable.append(str(error))
                outgoing.fail(502, f"The provider could not be reached: {error}", "proxy_error")
                return
            raise ConnectionError from error
        finally:
            # Also what the program did not wait for, or what broke off: it would be missed in a replay.
            if taken.status:
                self._write(request, taken)

    def _write(self, request: HttpRequest, taken: _Taken) -> None:
        # Bytes that are no text travel as characters of the same numbers (latin-1), which JSON and redaction can handle.
        texts = _texts(taken)
        pieces = [(at, data.decode("latin-1")) for at, data in taken.pieces] if texts is None else texts
        exchange = RecordedExchange(
            request.method, request.target, document_of(request), taken.status, taken.headers, tuple(pieces), taken.is_cut,
            is_binary=texts is None,
        )  # fmt: skip
        self._cassette.add(exchange)
        self.recorded += 1

    async def close(self) -> None:
        await self._client.close()


def _texts(taken: _Taken) -> list[tuple[float, str]] | None:
    """Pieces as text, a character that was cut in two with its second half; None if they are no text.

    An answer that was cut off may end within a character.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        texts = [(at, decoder.decode(data)) for at, data in taken.pieces]
        decoder.decode(b"", final=not taken.is_cut)
    except UnicodeDecodeError:
        return None
    if decoder.getstate()[0]:
        texts[-1] = (texts[-1][0], texts[-1][1] + "\N{REPLACEMENT CHARACTER}")
    return texts


class Replayer:
    """Answers from a cassette, with the recorded delays times `pace`; 0 answers at once."""

    def __init__(self, player: Player, pace: float) -> None:
        self._player, self._pace = player, pace
        self.replayed = 0

    async def serve(self, request: HttpRequest, outgoing: Outgoing) -> None:
        document = document_of(request)
        self._player.learn_from(request.headers, request.target, document)
        found = self._player.find(request.method, request.target, document)
        if found is None:
            outgoing.fail(404, self._player.misses[-1], "cassette_miss")
            return
        # After the look-up, which may take long in a large cassette: delays are those of the provider alone.
        started = perf_counter()
        outgoing.begin(found.status, headers_at(self._pace, found))
        for at, data in found.raw_pieces:
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
    """Return the headers of a replayed answer.

    At any pace but the recorded one the times are made up, and a header marks the answer as simulated.
    """
    return dict(exchange.headers) | ({} if pace == 1 else {"x-assay-simulated": "1"})
