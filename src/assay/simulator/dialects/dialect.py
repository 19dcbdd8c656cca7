"""What every dialect of the simulated server provides, and how JSON is written fast."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from json import encoder
from typing import ClassVar

from assay.simulator.turn import SimQuestion, SimTurn

quoted: Callable[[str], str] = encoder.encode_basestring
"""A JSON string; many times faster than json.dumps."""


json_text: Callable[[object], str] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False
).encode


def json_bytes(document: object) -> bytes:
    """JSON in UTF-8. Half a surrogate pair, which a client may send and UTF-8 cannot express, becomes a question mark."""
    return json_text(document).encode(errors="replace")


def build_named_event(kind: str, document: Mapping[str, object]) -> bytes:
    """A server-sent event that has its name twice: as the event's and as the type of its data."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json_bytes({"type": kind, **document}))


class Dialect(ABC):
    """How one endpoint reads questions and writes answers.

    A whole answer is `whole`. A streamed one is `opening`, then each of `steps` at its time, then `closing`, all in the framing of
    the dialect (server-sent events or JSON lines) but not of HTTP. Implementations have no state: one serves all clients.
    """

    stream_type: ClassVar[str]
    """The content type of a streamed answer."""

    @abstractmethod
    def ask(self, document: Mapping[str, object]) -> SimQuestion:
        """The question in a request's body; raises BadAsk with a message for the client."""

    @abstractmethod
    def whole(self, turn: SimTurn) -> bytes: ...

    def opening(self, turn: SimTurn) -> bytes:
        """What is sent before there is a token."""
        return b""

    @abstractmethod
    def steps(self, turn: SimTurn) -> Iterator[bytes]:
        """One for each token, or for each call of a tool: a step is what has a moment of its own."""

    @abstractmethod
    def closing(self, turn: SimTurn) -> bytes: ...

    def error(self, status: int, message: str) -> object:
        """The body of an answer that refuses a request; Ollama's shape, which is also that of plain HTTP."""
        return {"error": message}
