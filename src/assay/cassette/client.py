"""An HTTP client that answers from a cassette: the agent that uses it does not notice, and there is no network.

It serves agents with the option `cassette`. Programs of any kind are replayed by the proxy instead (`proxy.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Self
from urllib.parse import urlsplit

from assay.cassette.player import Player
from assay.cassette.proxy import headers_at, until
from assay.cassette.tape import CassetteError, RecordedExchange, read_pace, read_tape
from assay.errors import PlanError
from assay.http.client import HttpClient, Stream
from assay.http.errors import Disconnected, HttpError
from assay.http.events import Piece

_KEYS = ("path", "match", "delays")


def replaying(cassette: object, folder: Path) -> ReplayClient:
    """The client that a `cassette:` of an agent stands for: a path, or {path, match, delays}."""
    options: Mapping[Any, Any] = cassette if isinstance(cassette, Mapping) else {"path": cassette}
    unknown = [key for key in options if key not in _KEYS]
    if unknown or not isinstance(options.get("path"), str):
        raise PlanError(f"'cassette' must be a path, or a mapping of {', '.join(_KEYS)}.")
    match = options.get("match", "strict")
    if match not in ("strict", "lenient"):
        raise PlanError(f"'cassette.match' must be strict or lenient, not {match!r}.")
    try:
        player = Player(read_tape(folder / options["path"]), is_lenient=match == "lenient")
        return ReplayClient(player, read_pace(options.get("delays", "none")))
    except CassetteError as problem:
        raise PlanError(str(problem)) from None


class NotRecorded(HttpError):
    """The cassette has no answer; the text shows the nearest recorded request."""


class ReplayClient(HttpClient):
    """A client without a network. It overrides `stream`, through which all requests go."""

    def __init__(self, player: Player, pace: float) -> None:
        super().__init__()
        self._player, self._pace = player, pace

    def stream(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Stream:
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        document = json.loads(body) if body else None
        exchange = self._player.find(method, path, document)
        # Before anything is awaited, so that a request that was never recorded fails as one that cannot be sent does.
        if exchange is None:
            raise NotRecorded(self._player.misses[-1])
        return Replayed(_renumber_answer(exchange, document), self._pace)


def _renumber_answer(exchange: RecordedExchange, request: Any) -> RecordedExchange:
    """The exchange with the id of this request in its answer: agents over HTTP number requests, and answers repeat the number."""
    if not (isinstance(request, Mapping) and isinstance(exchange.body, Mapping)):
        return exchange
    before, now = exchange.body.get("id"), request.get("id")
    if before == now or before is None:
        return exchange
    number = re.compile(rf'("id"\s*:\s*){re.escape(json.dumps(before))}')
    pieces = tuple((at, number.sub(rf"\g<1>{json.dumps(now)}", text)) for at, text in exchange.pieces)
    return replace(exchange, pieces=pieces)


class Replayed(Stream):
    """A recorded answer that arrives as if it came from the server now, with the recorded delays times `pace`.

    Delays count from the moment at which the answer is asked for, not from piece to piece, so that a reader who is slow finds
    the later pieces already there, as with a real connection. One that was cut off when it was recorded is cut off again.
    """

    def __init__(self, exchange: RecordedExchange, pace: float) -> None:
        self._recorded = exchange
        self._pace = pace
        self._headers = headers_at(pace, exchange)
        self._arrived: list[Piece] = []
        self.started = 0.0

    async def __aenter__(self) -> Self:
        self.started = perf_counter()
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    @property
    def status(self) -> int:
        return self._recorded.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    @property
    def sent(self) -> float:
        return self.started

    @property
    def first_byte(self) -> float:
        return self._arrived[0].at if self._arrived else 0.0

    @property
    def ended(self) -> float:
        is_over = len(self._arrived) == len(self._recorded.pieces)
        return self._arrived[-1].at if self._arrived and is_over else 0.0

    @property
    def arrived(self) -> Sequence[Piece]:
        return self._arrived

    async def pieces(self) -> AsyncIterator[Piece]:
        for at, data in self._recorded.raw_pieces[len(self._arrived) :]:
            await until(self.started + at * self._pace)
            self._arrived.append(Piece(data, perf_counter()))
            yield self._arrived[-1]
        if self._recorded.is_cut:
            raise Disconnected("The connection ended before the answer did, as it was recorded.")

    async def end(self) -> Sequence[Piece]:
        async for _ in self.pieces():
            pass
        return self._arrived

    async def read(self) -> bytes:
        return b"".join(piece.data for piece in await self.end())
