"""The head of an HTTP/1.1 response, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*)", re.I)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked\s*\r\n", re.I)
_CLOSES = re.compile(rb"\r\nconnection:[^\r]*close", re.I)
_TYPE = re.compile(rb"\r\ncontent-type:\s*([^;\r]*)", re.I)
_STREAMED = (b"text/event-stream", b"application/x-ndjson", b"application/jsonl", b"application/x-jsonlines")


class BadReply(Exception):
    """The reply is not what it should be; its text is the kind of error that it is counted as."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    status: int
    length: int | None
    is_chunked: bool
    closes: bool
    type: bytes
    is_simulated: bool

    is_streamed: bool
    ends_at_close: bool
    """Whether the answer ends where the connection does: it has neither a length nor chunks."""


known_heads: dict[bytes, ResponseHead] = {}


def head_of(text: bytes) -> ResponseHead:
    """A server's heads are mostly alike, so that each is taken apart once."""
    found = known_heads.get(text)
    if found is None:
        if len(known_heads) > 256:
            known_heads.clear()
        found = known_heads[text] = _parsed_head(text)
    return found


def _parsed_head(text: bytes) -> ResponseHead:
    line = text[: text.find(b"\r\n")].split(b" ", 2)
    if len(line) < 2 or not line[0].startswith(b"HTTP/1.") or not _is_number(line[1], most=3):
        raise BadReply("malformed_http")
    found = _TYPE.search(text)
    kind = found[1].strip().lower() if found else b""
    length, is_chunked = _length_in(text), _CHUNKED.search(text) is not None
    return ResponseHead(
        status=int(line[1]),
        length=length,
        is_chunked=is_chunked,
        closes=_CLOSES.search(text) is not None or line[0] == b"HTTP/1.0",
        type=kind,
        is_simulated=b"x-assay-simulated" in text.lower(),
        is_streamed=kind in _STREAMED,
        ends_at_close=not is_chunked and length is None,
    )


def _length_in(text: bytes) -> int | None:
    """Said twice, it must be the same twice, or nobody knows where the answer ends."""
    told = {length.strip() for length in _LENGTH.findall(text)}
    if not told:
        return None
    length = told.pop()
    if told or not _is_number(length, most=15):
        raise BadReply("malformed_http")
    return int(length)


def _is_number(text: bytes, most: int) -> bool:
    return text.isdigit() and len(text) <= most
