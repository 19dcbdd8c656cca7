"""Events and lines of streams, as they arrive and after the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from assay.http.events import Parser, Piece

Parsed = TypeVar("Parsed")


def parse_pieces(pieces: Iterable[Piece], parser: Parser[Parsed]) -> list[Parsed]:
    """All events or lines of pieces that are all there."""
    parsed = [event for data, at in pieces for event in parser.feed(data, at)]
    return parsed + parser.finish()


async def parse_stream(pieces: AsyncIterator[Piece], parser: Parser[Parsed]) -> AsyncIterator[Parsed]:
    async for data, at in pieces:
        for event in parser.feed(data, at):
            yield event
    for event in parser.finish():
        yield event
