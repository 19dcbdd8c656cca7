"""What can go wrong between a request and its answer; the text of each is fit for a report.

HttpError
├── BadRequest        a URL or a header that cannot be sent
├── ConnectFailed     no server there, refused, no such host, too slow to accept
├── TlsFailed         the certificate or the handshake
├── Disconnected      the connection ended before the answer did; carries what had arrived
├── BadResponse       what came back is not HTTP/1.1, or not what its headers say
└── ResponseTooLarge  more than the client agreed to hold
"""

from __future__ import annotations


class HttpError(Exception):
    pass


class BadRequest(HttpError):
    pass


class ConnectFailed(HttpError):
    pass


class TlsFailed(HttpError):
    pass


class Disconnected(HttpError):
    def __init__(self, message: str, status: int | None = None, received: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.received = received


class BadResponse(HttpError):
    pass


class ResponseTooLarge(HttpError):
    pass
