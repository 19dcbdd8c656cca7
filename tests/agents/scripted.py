"""A real HTTP server that says exactly what a test wants, broken or not."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

Script = bytes | Callable[["Heard"], bytes]


class Heard:
    """A request as it came in."""

    def __init__(self, head: str, body: bytes) -> None:
        self.line, *lines = head.split("\r\n")
        self.headers = dict(line.lower().split(": ", 1) for line in lines if line)
        self.raw_headers = dict(line.split(": ", 1) for line in lines if line)
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedServer:
    """Answers the first request with the first script, and so on; the last one serves all that follow."""

    def __init__(self, *scripts: Script) -> None:
        self.requests: list[Heard] = []
        self._scripts: Sequence[Script] = scripts
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._serve)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _serve(self, connection: Any) -> None:
        with connection.makefile("rwb") as file:
            while heard := _read(file):
                with self._lock:
                    self.requests.append(heard)
                    script = self._scripts[min(len(self.requests), len(self._scripts)) - 1]
                said = script if isinstance(script, bytes) else script(heard)
                file.write(said)
                file.flush()
                if b"connection: close" in said or not said:
                    return

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], serve: Callable[[Any], None]) -> None:
        self._serve = serve
        super().__init__(address, socketserver.BaseRequestHandler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        try:
            self._serve(request)
        except OSError:
            return


def _read(file: Any) -> Heard | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if not (line := file.readline()):
            return None
        head += line
    heard = Heard(head.decode("latin-1"), b"")
    heard.body = file.read(int(heard.headers.get("content-length", 0)))
    return heard


def response(
    body: bytes | object, status: int = 200, kind: str = "application/json", **headers: str
) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n{more}\r\n"
    return head.encode() + content


def events(*documents: object, ends: str = "data: [DONE]\n\n") -> bytes:
    """A whole stream of server-sent events, closed by the end of the connection."""
    said = "".join(f"data: {json.dumps(document)}\n\n" for document in documents) + ends
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + said.encode()


def lines(*documents: object) -> bytes:
    said = "".join(json.dumps(document) + "\n" for document in documents)
    return response(said.encode(), kind="application/x-ndjson")


def broken_off(said: bytes) -> bytes:
    """An answer that promises more than it gives."""
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\nconnection: close\r\n\r\n"
        + said
    )
