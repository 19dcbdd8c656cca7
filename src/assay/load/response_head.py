"""What the load engine needs to know of a response's head: the framing of `assay.http`, with each head parsed once.

A server's heads are mostly alike, so parsed heads are cached by their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.http.events import EVENT_STREAM, JSON_LINES
from assay.http.framing import ChunkedBody, FramingError, build_body, content_length, parse_head, status_of

_STREAMED = (EVENT_STREAM, *JSON_LINES)


class BadReply(Exception):
    """The reply is not what it should be; its text is the kind of error that it is counted as."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What of a head decides how the answer is read, and whether its connection can be used again."""

    status: int
    length: int | None
    is_chunked: bool
    closes: bool
    type: str
    is_simulated: bool

    is_streamed: bool
    ends_at_close: bool
    """Whether the answer ends where the connection does: it has neither a length nor chunks."""


known_heads: dict[bytes, ResponseHead] = {}


def head_of(text: bytes) -> ResponseHead:
    """The parsed head; BadReply where it is no HTTP."""
    found = known_heads.get(text)
    if found is None:
        # A server that puts a date or a request's id into each head would fill the memory.
        if len(known_heads) > 256:
            known_heads.clear()
        found = known_heads[text] = _parse_head(text)
    return found


def _parse_head(text: bytes) -> ResponseHead:
    try:
        head = parse_head(text.removesuffix(b"\r\n"))
        status, minor_version = status_of(head)
        headers = head.headers
        is_chunked = isinstance(build_body(headers), ChunkedBody)
        length = content_length(headers["content-length"]) if "content-length" in headers else None
    except FramingError:
        raise BadReply("malformed_http") from None
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return ResponseHead(
        status=status,
        length=length,
        is_chunked=is_chunked,
        closes=not head.keeps_alive(minor_version),
        type=kind,
        is_simulated="x-assay-simulated" in headers,
        is_streamed=kind in _STREAMED,
        ends_at_close=not is_chunked and length is None,
    )
