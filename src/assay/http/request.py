"""Builds the bytes of a request, and says where it goes, and whether that is this machine.

`prepare` checks the URL and the headers and does everything that does not depend on the body, so that a client that sends many
similar requests does it once.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from assay.http.errors import BadRequest

_PORTS = {"http": 80, "https": 443}
_SAFE = "/?#[]@!$&'()*+,;=:%~"
OF_ONE_CONNECTION = frozenset(
    {"host", "connection", "keep-alive", "expect", "transfer-encoding", "content-length"}
)
"""Headers that a proxy does not pass on."""


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PreparedRequest(NamedTuple):
    """Everything of a request but its body."""

    method: str
    origin: Origin
    head: bytes
    """Lacks the content length and the blank line."""

    def with_body(self, body: bytes) -> bytes:
        if not body and self.method in ("GET", "HEAD"):
            return self.head + b"\r\n"
        return b"%bcontent-length: %d\r\n\r\n%b" % (self.head, len(body), body)


def prepare(method: str, url: str, headers: Mapping[str, str]) -> PreparedRequest:
    """Check and encode everything but the body; BadRequest says what cannot be sent. Secrets in a URL are not repeated."""
    parts = _split(url)
    origin = Origin(parts.scheme, str(parts.hostname), parts.port or _PORTS[parts.scheme])
    target = quote(parts.path or "/", safe=_SAFE) + (
        f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    )
    lines = [f"{method} {target} HTTP/1.1"]
    names = {name.lower() for name in headers}
    if "host" not in names:
        host = f"[{origin.host}]" if ":" in origin.host else origin.host.encode("idna").decode()
        is_usual_port = origin.port == _PORTS[origin.scheme]
        lines.append(f"host: {host}" if is_usual_port else f"host: {host}:{origin.port}")
    # Compressed pieces cannot be told apart as they arrive, and the time of each token is what is measured.
    if "accept-encoding" not in names:
        lines.append("accept-encoding: identity")
    lines += [_header(name, value) for name, value in headers.items() if name.lower() != "content-length"]
    try:
        return PreparedRequest(method, origin, ("\r\n".join(lines) + "\r\n").encode("latin-1"))
    except UnicodeEncodeError as error:
        raise BadRequest(f"A header for '{url}' has a character that HTTP cannot carry.") from error


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadRequest(f"'{url}' is not a URL: {error}.") from error
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise BadRequest(f"'{url}' is not a URL with http:// or https:// and a host.")
    if not _is_host(parts.hostname):
        raise BadRequest(f"'{url}' is not a URL: '{parts.hostname}' is not the name of a host.")
    if parts.username is not None:
        raise BadRequest(f"The URL for '{parts.hostname}' contains a password. Send it in a header instead.")
    return parts


def _is_host(name: str) -> bool:
    """Whether it has no empty or overlong labels, blanks or control characters; the rest is up to the resolver."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return name != "." and all(character > " " and character != "\x7f" for character in name)


def _header(name: str, value: str) -> str:
    if not name or any(character in "\r\n\0: \t" for character in name) or any(c in "\r\n\0" for c in value):
        raise BadRequest(
            f"The header {name!r} cannot be sent: its name or value contains a character that headers must not have, such as a line break."
        )
    return f"{name}: {value}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name; other names are not looked up, as they may lead anywhere.

    >>> is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("localhost"), is_loopback("example.com")
    (True, True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
