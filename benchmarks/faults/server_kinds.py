"""Servers that break HTTP, TLS or the provider's protocol, each with what must become of its answers."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.http.tls_provider import answer_to, completion
from tests.load.faulty import CHUNKED, END, JSON, SSE, Guest, chunk, delta, event, head, with_length


class Must(StrEnum):
    BE_RIGHT = "be right"
    FAIL = "fail"
    BE_EITHER = "be right or fail"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server understands it."""

    guest: Guest
    text: str
    is_streamed: bool

    @property
    def parts(self) -> list[bytes]:
        """The right answer: its head, and what follows."""
        return completion(self.text, "events" if self.is_streamed else "length")

    @property
    def whole(self) -> bytes:
        return b"".join(self.parts)

    @property
    def body(self) -> bytes:
        return json.dumps({"model": "m-1", "choices": [{"message": {"content": self.text}}]}).encode()

    def stall(self) -> None:
        """Until the client gives up."""
        self.guest.socket.settimeout(30)
        self.guest.socket.recv(1)


Deed = Callable[[Asked], bool | None]
"""Answers one request; False closes the connection."""


def answer(kind: str, guest: Guest) -> bool | None:
    asked = json.loads(guest.request.partition(b"\r\n\r\n")[2])
    text = answer_to(asked["messages"][-1]["content"])
    return KINDS[kind][0](Asked(guest, text, bool(asked.get("stream"))))


def _say(*pieces: bytes) -> Deed:
    def deed(asked: Asked) -> bool:
        asked.guest.say(*pieces)
        return False

    return deed


def _in_pieces(size: int, pause: float = 0.0) -> Deed:
    def deed(asked: Asked) -> None:
        asked.guest.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        whole = asked.whole
        for at in range(0, len(whole), size):
            asked.guest.say(whole[at : at + size])
            time.sleep(pause)

    return deed


def _head_apart(asked: Asked) -> None:
    first, *others = asked.parts
    asked.guest.say(first)
    time.sleep(0.02)
    asked.guest.say(*others)


def _stall_midway(asked: Asked) -> None:
    whole = asked.whole
    asked.guest.say(whole[: len(whole) // 2])
    time.sleep(0.3)
    asked.guest.say(whole[len(whole) // 2 :])


def _until_close(asked: Asked) -> bool:
    if asked.is_streamed:
        content = b"".join([delta(content=asked.text), *_ENDS])
        asked.guest.say(head(SSE, b"connection: close\r\n"), content)
    else:
        asked.guest.say(*completion(asked.text, "until close"))
    return False


_ENDS = (event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}), b"data: [DONE]\n\n")


def _chunked(extension: bytes = b"", trailer: bytes = b"", size: int = 100) -> Deed:
    def deed(asked: Asked) -> None:
        content = b"".join([delta(content=asked.text), *_ENDS]) if asked.is_streamed else asked.body
        pieces = [chunk(content[at : at + size], extension) for at in range(0, len(content), size)]
        asked.guest.say(
            head(SSE if asked.is_streamed else JSON, CHUNKED), *pieces, b"0\r\n", trailer, b"\r\n"
        )

    return deed


def _interim(asked: Asked) -> None:
    asked.guest.say(
        b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", asked.whole
    )


def _close_after(asked: Asked) -> bool:
    """Although it had said nothing of closing."""
    asked.guest.say(asked.whole)
    return False


def _excess(asked: Asked) -> bool:
    asked.guest.say(asked.whole + b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstale")
    return True


def _odd_headers(asked: Asked) -> None:
    first, *others = asked.parts
    asked.guest.say(
        first.removesuffix(b"\r\n")
        + b"X-Odd:   \t many blanks \t\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\n",
        *others,
    )


def _cut(share: float, is_reset: bool = False) -> Deed:
    """Ends in the middle of the answer, for a streamed one before its last piece of content."""

    def deed(asked: Asked) -> bool:
        body_at = len(asked.parts[0])
        whole = b"".join(asked.parts[:2]) if asked.is_streamed else asked.whole
        asked.guest.say(whole[: body_at + int((len(whole) - body_at) * share)])
        if is_reset:
            time.sleep(0.02)
            _reset(asked.guest)
        return False

    return deed


def _reset(guest: Guest) -> None:
    guest.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    guest.socket.close()


def _reset_first(asked: Asked) -> bool:
    _reset(asked.guest)
    return False


def _length(*headers: bytes) -> Deed:
    def deed(asked: Asked) -> bool:
        asked.guest.say(head(JSON, *headers), asked.body)
        return False

    return deed


def _length_beyond(asked: Asked) -> None:
    asked.guest.say(head(JSON, b"content-length: %d\r\n" % (len(asked.body) + 10)), asked.body)
    asked.stall()


def _length_short(asked: Asked) -> bool:
    asked.guest.say(head(JSON, b"content-length: %d\r\n" % (len(asked.body) // 2)), asked.body)
    return False


def _wrong_chunks(asked: Asked) -> bool:
    asked.guest.say(head(JSON, CHUNKED), b"5\r\n", asked.body, b"\r\n", END)
    return False


def _no_last_chunk(asked: Asked) -> bool:
    content = delta(content=asked.text) if asked.is_streamed else asked.body[:-3]
    asked.guest.say(head(SSE if asked.is_streamed else JSON, CHUNKED), chunk(content))
    return False


def _status(code: int, *headers: bytes) -> Deed:
    def deed(asked: Asked) -> None:
        asked.guest.say(with_length(b'{"error": {"message": "no"}}', JSON, *headers, status=b"%d Odd" % code))

    return deed


def _instead(content: bytes, *headers: bytes) -> Deed:
    def deed(asked: Asked) -> None:
        asked.guest.say(with_length(content, *(headers or (SSE if asked.is_streamed else JSON,))))

    return deed


def _stall_first(asked: Asked) -> bool:
    asked.stall()
    return False


def _stall_in_head(asked: Asked) -> bool:
    asked.guest.say(b"HTTP/1.1 200 OK\r\ncontent-le")
    asked.stall()
    return False


def _error_midway(asked: Asked) -> None:
    failure = event({"error": {"message": "overloaded", "type": "server_error"}})
    if asked.is_streamed:
        asked.guest.say(head(SSE, CHUNKED), chunk(delta(content=asked.text[:10])), chunk(failure), END)
    else:
        asked.guest.say(with_length(b'{"error": {"message": "overloaded"}}', JSON))


def _garbage_midway(asked: Asked) -> None:
    if asked.is_streamed:
        asked.guest.say(
            head(SSE, CHUNKED), chunk(delta(content=asked.text[:10])), chunk(b"data: {what\n\n"), END
        )
    else:
        asked.guest.say(with_length(asked.body[:30] + b"{what", JSON))


def _no_choices(asked: Asked) -> None:
    if asked.is_streamed:
        asked.guest.say(head(SSE, CHUNKED), chunk(event({"choices": []})), chunk(b"data: [DONE]\n\n"), END)
    else:
        asked.guest.say(with_length(b'{"choices": []}', JSON))


KINDS: dict[str, tuple[Deed, Must]] = {
    "whole": (_in_pieces(10**6), Must.BE_RIGHT),
    "small pieces": (_in_pieces(61), Must.BE_RIGHT),
    "head and body apart": (_head_apart, Must.BE_RIGHT),
    "a pause midway": (_stall_midway, Must.BE_RIGHT),
    "until close": (_until_close, Must.BE_RIGHT),
    "small chunks": (_chunked(size=3), Must.BE_RIGHT),
    "chunk extensions": (_chunked(extension=b";a=b"), Must.BE_RIGHT),
    "trailers": (_chunked(trailer=b"x-check: 1\r\n"), Must.BE_RIGHT),
    "interim answers": (_interim, Must.BE_RIGHT),
    "closed after each answer": (_close_after, Must.BE_EITHER),
    "another answer behind": (_excess, Must.BE_EITHER),
    "odd headers": (_odd_headers, Must.BE_RIGHT),
    "cut in the body": (_cut(0.6), Must.FAIL),
    "cut before the last byte": (_cut(0.99), Must.FAIL),
    "reset in the body": (_cut(0.5, is_reset=True), Must.FAIL),
    "reset at once": (_reset_first, Must.FAIL),
    "closed at once": (lambda asked: False, Must.FAIL),
    "no HTTP": (_say(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), Must.FAIL),
    "random bytes": (_say(bytes(range(256)) * 20), Must.FAIL),
    "negative length": (_length(b"content-length: -1\r\n"), Must.FAIL),
    "length that is no number": (_length(b"content-length: many\r\n"), Must.FAIL),
    "two lengths": (_length(b"content-length: 10\r\n", b"content-length: 99\r\n"), Must.FAIL),
    "length beyond the body": (_length_beyond, Must.FAIL),
    "length short of the body": (_length_short, Must.FAIL),
    "wrong chunk sizes": (_wrong_chunks, Must.FAIL),
    "chunk size that is no number": (_say(head(JSON, CHUNKED), b"zz\r\nabc\r\n0\r\n\r\n"), Must.FAIL),
    "no last chunk": (_no_last_chunk, Must.FAIL),
    "headers without end": (_say(b"HTTP/1.1 200 OK\r\n", b"x: " + b"y" * 2_000_000), Must.FAIL),
    "status that is no number": (_say(b"HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n"), Must.FAIL),
    "500": (_status(500), Must.FAIL),
    "429 with a long Retry-After": (_status(429, b"retry-after: 100000\r\n"), Must.FAIL),
    "a redirect": (_status(302, b"location: /elsewhere\r\n"), Must.FAIL),
    "204": (_status(204), Must.FAIL),
    "an empty body": (_instead(b""), Must.FAIL),
    "no JSON": (_instead(b"<html>Bad gateway</html>", b"content-type: text/html\r\n"), Must.FAIL),
    "NUL bytes": (_instead(b"\x00" * 500), Must.FAIL),
    "JSON of another kind": (_instead(b"[1, 2]"), Must.FAIL),
    "gzip that is none": (_instead(b"\x1f\x8bnot", b"content-encoding: gzip\r\n"), Must.FAIL),
    "an error midway": (_error_midway, Must.FAIL),
    "garbage midway": (_garbage_midway, Must.FAIL),
    "no choices": (_no_choices, Must.FAIL),
    "no answer": (_stall_first, Must.FAIL),
    "half a head": (_stall_in_head, Must.FAIL),
}  # fmt: skip


def names(number: int | None = None) -> Sequence[str]:
    return list(KINDS)[:number]
