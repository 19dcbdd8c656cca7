"""A client agent: puts each prompt of a case to an OpenAI-compatible server, all prompts of a case at once, streamed.

Run as a program: client.py asyncio|uvloop|threads HOST PORT PATH. It imports nothing but what its runtime needs. It speaks the
protocol of agents of type `command`: requests come as JSON lines, and pieces and answers go out as JSON lines.

The same client exists in C (client.c). Together they show how much of a measured time is the client's runtime: everything
but the waiting is the same code, which is why HTTP is read by hand here.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

_MOST = 65536


class RuntimeReply:
    """The bytes of one streamed answer as they come, read alike on every runtime.

    The runtimes are compared by how fast they pass bytes on, so all of them share this parser and none
    has a quicker one.
    """

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text = on_text
        self._unread = b""
        self._head: bytes | None = None
        self._body = b""
        self._is_over = False
        self.texts: list[str] = []
        self.usage: dict[str, int] = {}
        self.model: str | None = None
        self.is_simulated = False

    def take(self, data: bytes) -> None:
        """Bytes as they come, cut anywhere; OSError for an answer that is an error."""
        self._unread += data
        if self._head is None:
            head, end, rest = self._unread.partition(b"\r\n\r\n")
            if not end:
                return
            self._head, self._unread = head.lower(), rest
            self.is_simulated = b"\r\nx-assay-simulated:" in self._head
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise OSError(head.split(b"\r\n")[0].decode("latin-1"))
        if b"transfer-encoding: chunked" in self._head:
            self._dechunk()
        else:
            self._body, self._unread = self._body + self._unread, b""
        self._events()

    def _dechunk(self) -> None:
        """Move whole chunks (RFC 9112, 7.1) from what is unread to the body; a chunk that is cut off waits for its rest."""
        while True:
            size, end, rest = self._unread.partition(b"\r\n")
            if not end or len(rest) < (length := int(size.split(b";")[0], 16)) + 2:
                return
            self._body += rest[:length]
            self._unread = rest[length + 2 :]
            if not length:
                return

    def _events(self) -> None:
        """Read the whole lines of the body as server-sent events."""
        *lines, self._body = self._body.split(b"\n")
        for line in lines:
            text = line.strip()
            if not text.startswith(b"data:"):
                continue
            if (data := text[5:].strip()) == b"[DONE]":
                self._is_over = True
            else:
                self._event(json.loads(data))

    def end(self) -> None:
        """Check that the answer was complete; to be called when no more bytes come.

        Raises OSError if the connection ended before the answer did.
        """
        if not self._is_over:
            raise OSError("the connection ended before the answer did")

    def _event(self, document: dict[str, Any]) -> None:
        if error := document.get("error"):
            raise OSError(f"the server reported an error: {json.dumps(error)[:200]}")
        self.model = document.get("model") or self.model
        for choice in document.get("choices") or ():
            self._is_over = self._is_over or bool(choice.get("finish_reason"))
            if content := (choice.get("delta") or {}).get("content"):
                self.texts.append(content)
                if self._on_text is not None:
                    self._on_text(content)
        if usage := document.get("usage"):
            self.usage = {
                "input_tokens": usage.get("prompt_tokens", 0),
                "output_tokens": usage.get("completion_tokens", 0),
            }


def request_bytes(host: str, path: str, prompt: Any, params: dict[str, Any]) -> bytes:
    body = json.dumps(
        {
            **params,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Threads:
    """A thread and a blocking socket a prompt."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)

    def ask(self, requests: list[bytes], replies: list[RuntimeReply]) -> None:
        faults: list[BaseException] = []
        threads = [
            threading.Thread(target=self._send_request, args=(request, reply, faults))
            for request, reply in zip(requests, replies, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]

    def _send_request(self, request: bytes, reply: RuntimeReply, faults: list[BaseException]) -> None:
        try:
            with socket.create_connection(self._place) as connection:
                connection.sendall(request)
                while data := connection.recv(_MOST):
                    reply.take(data)
                reply.end()
        except Exception as error:
            faults.append(error)


class Tasks:
    """A task a prompt, on an event loop: asyncio's own, or uvloop's."""

    def __init__(self, host: str, port: int, is_uvloop: bool) -> None:
        import asyncio

        factory = None
        if is_uvloop:
            import uvloop

            factory = uvloop.new_event_loop
        self._asyncio, self._host, self._port = asyncio, host, port
        self._runner = asyncio.Runner(loop_factory=factory)

    def ask(self, requests: list[bytes], replies: list[RuntimeReply]) -> None:
        async def ask_all() -> None:
            # All of them end before a failure is raised: none may continue into the next case.
            results = await self._asyncio.gather(
                *map(self._send_request, requests, replies), return_exceptions=True
            )
            if faults := [result for result in results if isinstance(result, BaseException)]:
                raise faults[0]

        self._runner.run(ask_all())

    async def _send_request(self, request: bytes, reply: RuntimeReply) -> None:
        reader, writer = await self._asyncio.open_connection(self._host, self._port)
        try:
            writer.write(request)
            while data := await reader.read(_MOST):
                reply.take(data)
            reply.end()
        finally:
            writer.close()


def answer(request: dict[str, Any], runtime: Any, host: str, path: str) -> dict[str, Any]:
    """The line that answers a request; several prompts of a case are one answer with a list of outputs."""
    prompts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    lock = threading.Lock()

    def send_delta(text: str) -> None:
        """Pieces of the first prompt's answer are sent at once, so that the time to its first token can be measured."""
        with lock:
            say({"id": request["id"], "delta": text})

    replies = [RuntimeReply(send_delta if not number else None) for number, _ in enumerate(prompts)]
    try:
        runtime.ask([request_bytes(host, path, prompt, request["params"]) for prompt in prompts], replies)
    except Exception as error:
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}
    texts = ["".join(reply.texts) for reply in replies]
    usages = [reply.usage for reply in replies]
    # No sum where the server has not reported the usage of every answer.
    total = {key: sum(usage[key] for usage in usages) for key in usages[0]} if all(usages) else {}
    return {
        "id": request["id"],
        "output": texts if len(texts) > 1 else texts[0],
        "usage": {**total, "api_calls": len(replies)},
        "model": replies[0].model,
        "simulated": any(reply.is_simulated for reply in replies),
    }


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    name, host, port, path = sys.argv[1:5]
    runtime = Threads(host, int(port)) if name == "threads" else Tasks(host, int(port), name == "uvloop")
    for line in sys.stdin:
        say(answer(json.loads(line), runtime, host, path))


if __name__ == "__main__":
    main()
