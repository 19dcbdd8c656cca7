"""Parses server-sent events and JSON lines from pieces of a stream, wherever it was cut, with the time of each.

An event has the time of the read that brought its first byte of data: that is when a user could have seen the token. Parsers
do no I/O, so the same ones read a stream as it arrives and pieces that are all there.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

from assay.http.errors import BadResponse

EVENT_STREAM = "text/event-stream"
JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
"""Content types of streams; of JSON lines there are several, of which the first is written."""
_BOM = b"\xef\xbb\xbf"


class Piece(NamedTuple):
    """What one read of the socket brought, and when (perf_counter)."""

    data: bytes
    at: float


class SseEvent(NamedTuple):
    """One server-sent event: its name ("message" where none was sent), its data, and its time (perf_counter)."""

    event: str
    data: str
    at: float


class NdjsonLine(NamedTuple):
    text: str
    at: float


class LineSplitter:
    """Splits pieces into whole lines; the time of a line is that of the read which brought its first byte."""

    __slots__ = ("_parts", "_since")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._since = 0.0

    def feed(self, data: bytes, at: float) -> list[tuple[bytes, float]]:
        # The common case is a read of whole lines: then nothing is joined, and `_parts` stays empty.
        *ended, rest = data.split(b"\n")
        lines = [(line, at) for line in ended]
        if lines and self._parts:
            lines[0] = (b"".join([*self._parts, ended[0]]), self._since)
            self._parts.clear()
        if rest:
            if not self._parts:
                self._since = at
            self._parts.append(rest)
        return lines

    def finish(self) -> list[tuple[bytes, float]]:
        """The last line, if nothing ended it."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return [(rest, self._since)] if rest else []


Parsed = TypeVar("Parsed")


class Parser(Protocol[Parsed]):
    """Turns the bytes of a stream into events or lines, however the network cut them.

    It keeps what is incomplete until the next call; `finish` returns what is left when the stream has
    ended.
    """

    def feed(self, data: bytes, at: float) -> list[Parsed]:
        """What these bytes complete; `at` is when they were read."""
        ...

    def finish(self) -> list[Parsed]:
        """What is left when the stream has ended."""
        ...


class SseParser:
    """Follows the HTML standard (section "Server-sent events"), but also returns a last event without its blank line:
    some servers end the stream right after it."""

    __slots__ = ("_at", "_data", "_event", "_is_new", "_lines", "_skips_newline")

    def __init__(self) -> None:
        self._lines = LineSplitter()
        self._event = ""
        self._data: list[bytes] = []
        self._at = 0.0
        self._is_new = True
        self._skips_newline = False

    def feed(self, data: bytes, at: float) -> list[SseEvent]:
        return self._events(self._lines.feed(self._with_newlines(data), at))

    def finish(self) -> list[SseEvent]:
        return self._events([*self._lines.finish(), (b"", 0.0)])

    def _with_newlines(self, data: bytes) -> bytes:
        """The data with all line ends as LF. A line may end with CR, LF or both, and a read may end between the two."""
        if self._skips_newline and data.startswith(b"\n"):
            data = data[1:]
            self._skips_newline = False
        if b"\r" in data:
            self._skips_newline = data.endswith(b"\r")
            return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data:
            self._skips_newline = False
        return data

    def _events(self, lines: list[tuple[bytes, float]]) -> list[SseEvent]:
        events = []
        for line, at in lines:
            # Nearly all lines are of this form: they need not be taken apart as fields are.
            if line.startswith(b"data: "):
                self._add(line[6:], at)
            elif line:
                self._field(line, at)
            else:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(SseEvent(self._event or "message", _text(data), self._at))
                    self._data = []
                self._event = ""
        return events

    def _add(self, data: bytes, at: float) -> None:
        if not self._data:
            self._at = at
        self._data.append(data)

    def _field(self, line: bytes, at: float) -> None:
        if self._is_new:
            line = line.removeprefix(_BOM)
            self._is_new = False
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(value, at)
        elif name == b"event":
            self._event = _text(value)


class NdjsonParser:
    """JSON lines as text, without blank ones; whether each is JSON is for the reader to find out."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines = LineSplitter()

    def feed(self, data: bytes, at: float) -> list[NdjsonLine]:
        return self._texts(self._lines.feed(data, at))

    def finish(self) -> list[NdjsonLine]:
        return self._texts(self._lines.finish())

    def _texts(self, lines: list[tuple[bytes, float]]) -> list[NdjsonLine]:
        return [NdjsonLine(_text(line), at) for line, at in lines if line.strip()]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadResponse(f"The answer is not UTF-8: {data[error.start : error.start + 20]!r}.") from error
