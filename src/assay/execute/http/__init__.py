"""Speaking HTTP/1.1 fast and on time."""

from assay.execute.http.client import HttpClient, Response, Stream
from assay.execute.http.errors import (
    BadRequest,
    BadResponse,
    ConnectFailed,
    Disconnected,
    HttpError,
    ResponseTooLarge,
    TlsFailed,
)
from assay.execute.http.events import (
    NdjsonLine,
    NdjsonParser,
    Piece,
    SseEvent,
    SseParser,
    ndjson_lines,
    parsed,
    sse_events,
)

__all__ = [
    "BadRequest",
    "BadResponse",
    "ConnectFailed",
    "Disconnected",
    "HttpClient",
    "HttpError",
    "NdjsonLine",
    "NdjsonParser",
    "Piece",
    "Response",
    "ResponseTooLarge",
    "SseEvent",
    "SseParser",
    "Stream",
    "TlsFailed",
    "ndjson_lines",
    "parsed",
    "sse_events",
]
