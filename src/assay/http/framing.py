"""HTTP/1.1 messages without any I/O: bytes go in as they arrive, heads and bodies come out (RFC 9112).

The client, the server and the load workers share it. It is strict where a lenient reading would let one message be taken for
another (chunk sizes, content lengths, header names), and lenient in the line ends that some servers send. It stays free of
imports that take long, as every load worker imports it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

MAX_HEAD = 64 * 1024

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5]\d\d)(?: |$)")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,12}")
_MAX_LINE = 8 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class FramingError(ValueError):
    """These bytes are not an HTTP/1.1 message."""


@dataclass(frozen=True, slots=True)
class MessageHead:
    """The start line, and the headers by their names in small letters."""

    start: str
    headers: Mapping[str, str]

    def keeps_alive(self, minor_version: str) -> bool:
        wish = self.headers.get("connection", "").lower()
        return "close" not in wish if minor_version == "1" else "keep-alive" in wish


class HeadReader:
    """Collects bytes until the blank line that ends a head."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    @property
    def has_begun(self) -> bool:
        return bool(self._buffer)

    def feed(self, data: bytes) -> tuple[MessageHead, bytes] | None:
        """The head and the bytes that follow it, once it is complete."""
        # The blank line may have been cut in two: up to three of its four bytes may be in the buffer already.
        searched = max(0, len(self._buffer) - 3)
        data = self._buffer + data
        end = _HEAD_END.search(data, searched)
        if (end.end() if end else len(data)) > MAX_HEAD:
            raise FramingError(f"its head is longer than {MAX_HEAD:,} bytes")
        if end is None:
            self._buffer = data
            return None
        self._buffer = b""
        return parse_head(data[: end.start()]), data[end.end() :]


@lru_cache(maxsize=64)
def parse_head(block: bytes) -> MessageHead:
    """Parse the bytes of a head. Cached, because the heads on one connection are much alike: do not change the result."""
    start, *lines = block.decode("latin-1").replace("\r\n", "\n").split("\n")
    return MessageHead(start, parse_headers(lines))


def parse_headers(lines: Iterable[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        # A blank before the colon, or a folded line, is read differently by different servers: a way to smuggle requests.
        if not colon or not name or name[0] in " \t" or name[-1] in " \t":
            raise FramingError(f"{line[:80]!r} is not a header")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class Body(Protocol):
    """Takes the bytes after a head and says when the message is over.

    `SizedBody` has a content length, `ChunkedBody` the chunked transfer encoding, `OpenBody` lasts until the connection is closed,
    and `CompressedBody` decompresses one of them. After `is_done`, `excess` holds bytes that belong to the next message.
    """

    is_done: bool
    excess: bytes
    left: int
    """Bytes that are known to come yet."""

    def feed(self, data: bytes) -> bytes:
        """The part of the body that these bytes carry."""
        ...


class SizedBody:
    __slots__ = ("excess", "is_done", "left")

    def __init__(self, size: int) -> None:
        self.left = size
        self.is_done = size == 0
        self.excess = b""

    def feed(self, data: bytes) -> bytes:
        if len(data) > self.left:
            data, self.excess = data[: self.left], data[self.left :]
        self.left -= len(data)
        self.is_done = not self.left
        return data


class OpenBody:
    """Lasts until the connection is closed."""

    __slots__ = ("excess", "is_done", "left")

    def __init__(self) -> None:
        self.is_done = False
        self.excess = b""
        self.left = 0

    def feed(self, data: bytes) -> bytes:
        return data


class ChunkedBody:
    """The chunked transfer encoding: chunks with their sizes in hexadecimal, a chunk of size 0, trailers, a blank line.

    A state machine over the place in the message: "size", "data", "after data" (the line end of a chunk) and "trailers". A chunk
    that arrives whole, as the small ones of streams do, takes a short cut past it.
    """

    __slots__ = ("_line", "_place", "excess", "is_done", "left")

    def __init__(self) -> None:
        self._place = "size"
        self.left = 0
        self._line = b""
        self.is_done = False
        self.excess = b""

    def feed(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.is_done:
            if self._place == "size" and not self._line and (whole := _whole_chunk(data, at)):
                at, part = whole
                parts.append(part)
            elif self._place == "data":
                parts.append(data[at : at + self.left])
                at += len(parts[-1])
                self.left -= len(parts[-1])
                self._place = "data" if self.left else "after data"
            else:
                at = self._read_line(data, at)
        self.excess = data[at:]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_line(self, data: bytes, at: int) -> int:
        """Read a line, or as much of it as there is; returns the position in the data to continue from."""
        newline = data.find(b"\n", at)
        self._line += data[at:] if newline < 0 else data[at:newline]
        if len(self._line) > _MAX_LINE:
            raise FramingError("a chunk's size does not end")
        if newline < 0:
            return len(data)
        line, self._line = self._line.removesuffix(b"\r"), b""
        self._end_line(line)
        return newline + 1

    def _end_line(self, line: bytes) -> None:
        if self._place == "size":
            self.left = chunk_size(line)
            self._place = "data" if self.left else "trailers"
        elif self._place == "after data":
            if line:
                raise FramingError(f"a chunk is longer than its size: {line[:20]!r} follows")
            self._place = "size"
        else:
            self.is_done = not line


def _whole_chunk(data: bytes, at: int) -> tuple[int, bytes] | None:
    """The chunk that starts here and where the next one does, if all of it has come."""
    newline = data.find(b"\r\n", at)
    if newline < 0:
        return None
    start = newline + 2
    end = start + chunk_size(data[at:newline])
    if start == end or data[end : end + 2] != b"\r\n":
        return None
    return end + 2, data[start:end]


@lru_cache(maxsize=1024)
def chunk_size(line: bytes) -> int:
    """The size in front of a chunk, without extensions. `int` alone would also take signs, underscores and blanks."""
    size = line.partition(b";")[0].strip(b" \t")
    if not _CHUNK_SIZE.fullmatch(size):
        raise FramingError(f"{line[:20]!r} is not the size of a chunk")
    return int(size, 16)


def build_body(headers: Mapping[str, str]) -> SizedBody | ChunkedBody | None:
    """The body as its headers announce it; None if they say nothing."""
    # The transfer encoding goes before a length, where both are given (RFC 9112, section 6.3).
    encoding = headers.get("transfer-encoding")
    if encoding is not None:
        if encoding.strip().lower() != "chunked":
            raise FramingError(f"the transfer encoding {encoding[:40]!r} is unknown")
        return ChunkedBody()
    length = headers.get("content-length")
    return None if length is None else SizedBody(content_length(length))


def build_response_body(method: str, status: int, headers: Mapping[str, str]) -> Body:
    """The body of the answer to a request; without a size it lasts until the connection is closed."""
    if method == "HEAD" or status in (204, 304):
        return SizedBody(0)
    return build_body(headers) or OpenBody()


class CompressedBody:
    """Decompresses a body: some servers compress although the client asked them not to.

    At most `most_bytes` and one more are decompressed at a time, so that a small body cannot fill the memory.
    """

    __slots__ = ("_body", "_inflating", "_most_bytes", "excess", "is_done", "left")

    def __init__(self, body: Body, most_bytes: int) -> None:
        self._body = body
        self._most_bytes = most_bytes
        self._inflating = zlib.decompressobj(_GZIP_OR_ZLIB)
        self.is_done, self.excess, self.left = body.is_done, body.excess, body.left

    @property
    def is_complete(self) -> bool:
        """Whether what has come so far can be all of it."""
        return self._inflating.eof

    def feed(self, data: bytes) -> bytes:
        text = self._inflate(self._body.feed(data))
        self.is_done, self.excess, self.left = self._body.is_done, self._body.excess, self._body.left
        if self.is_done and not self.is_complete and len(text) <= self._most_bytes:
            raise FramingError("its compressed body is not complete")
        return text

    def _inflate(self, data: bytes) -> bytes:
        text = b""
        while data and len(text) <= self._most_bytes:
            if self._inflating.eof:
                self._inflating = zlib.decompressobj(_GZIP_OR_ZLIB)
            try:
                # One byte more than is allowed tells that it is too much; a bomb is not unpacked to its end.
                text += self._inflating.decompress(data, self._most_bytes + 1)
            except zlib.error as error:
                raise FramingError(f"its body is not compressed as its head says ({error})") from None
            data = self._inflating.unused_data
        return text


def decode_body(body: Body, headers: Mapping[str, str], most_bytes: int) -> Body:
    """The body as it was before the server encoded it."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return body if body.is_done else CompressedBody(body, most_bytes)
    if encoding in ("identity", ""):
        return body
    raise FramingError(f"its body has the content encoding {encoding[:40]!r}, which was not asked for")


@lru_cache(maxsize=64)
def content_length(text: str) -> int:
    """The length in the header; equal ones that were sent several times are one (RFC 9110, section 8.6), different ones an error."""
    lengths = {part.strip() for part in text.split(",")}
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit() and len(length) <= 15):
        raise FramingError(f"{text[:40]!r} is not a content length")
    return int(length)


def status_of(head: MessageHead) -> tuple[int, str]:
    """The status and the minor version of HTTP/1; a server that switches to another protocol is refused."""
    line = _STATUS.match(head.start)
    if line is None:
        raise FramingError(f"{head.start[:80]!r} is not a status line")
    if line[2] == "101":
        raise FramingError("it switches to a different protocol")
    return int(line[2]), line[1]
