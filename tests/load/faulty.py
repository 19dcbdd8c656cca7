"""A server in a thread that says exactly what a test wants, byte by byte, however wrong."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

SSE = b"content-type: text/event-stream\r\n"
NDJSON = b"content-type: application/x-ndjson\r\n"
JSON = b"content-type: application/json\r\n"


@dataclass
class Guest:
    """One connection. `number` counts the requests of the server from 1, `turn` those on this connection."""

    socket: socket.socket
    number: int = 0
    turn: int = 0
    request: bytes = b""

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)


Talk = Callable[[Guest], bool | None]
"""Answers one request; False closes the connection."""


@dataclass
class Faulty:
    url: str = ""
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def faulty(talk: Talk, tls: ssl.SSLContext | None = None, path: str = "/v1") -> Iterator[Faulty]:
    seen = Faulty()
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    scheme = "https" if tls else "http"
    seen.url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}{path}"
    guests: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            guest = Guest(connection)
            while request := _request(connection):
                seen.requests.append(request)
                guest.request, guest.number, guest.turn = request, len(seen.requests), guest.turn + 1
                if talk(guest) is False:
                    break
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                seen.connections += 1
                guests.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield seen
    finally:
        seen.is_over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for guest in guests:
            with contextlib.suppress(OSError):
                guest.shutdown(socket.SHUT_RDWR)
            guest.close()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


END = b"0\r\n\r\n"


def head(*headers: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + b"".join(headers) + b"\r\n"


CHUNKED = b"transfer-encoding: chunked\r\n"


def with_length(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return head(*headers, b"content-length: %d\r\n" % len(body), status=status) + body


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def delta(**content: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": content, "finish_reason": None}]})


FINISH = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
DONE = b"data: [DONE]\n\n"


def openai(words: Iterable[str] = ("one", " two", " three"), usage: bool = True) -> list[bytes]:
    """The events of one whole answer, as OpenAI's servers send them."""
    told = [event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": len(list(words))}})]
    return [
        delta(role="assistant", content=""),
        *(delta(content=word) for word in words),
        FINISH,
        *(told if usage else []),
        DONE,
    ]


def streamed(events: Iterable[bytes], *headers: bytes) -> bytes:
    return head(SSE, CHUNKED, *headers) + b"".join(chunk(one) for one in events) + END


ANSWER = streamed(openai())


def always(answer: bytes, close: bool = False) -> Talk:
    def talk(guest: Guest) -> bool:
        guest.say(answer)
        return not close

    return talk


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits for what another thread or process will do; a limit only so that a failing test ends."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.01)
