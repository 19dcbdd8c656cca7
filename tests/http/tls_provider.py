"""An LLM provider over TLS whose answer to every question is known, cut into TLS records as a test wants."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.load.faulty import (
    CHUNKED,
    DONE,
    END,
    FINISH,
    JSON,
    SSE,
    Faulty,
    Guest,
    Talk,
    chunk,
    delta,
    faulty,
    head,
    with_length,
)

_MAKE_CERTIFICATE = [
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
]  # fmt: skip
_CORK = getattr(socket, "TCP_CORK", None)


@dataclass(frozen=True)
class Certificate:
    """Signed by itself, for 127.0.0.1."""

    file: Path
    """To be trusted."""
    key: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


def make_certificate(folder: Path, address: str = "127.0.0.1") -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    made = Certificate(folder / "certificate.crt", folder / "key.pem")
    parts = [part.replace("127.0.0.1", address) for part in _MAKE_CERTIFICATE]
    subprocess.run([*parts, "-keyout", made.key, "-out", made.file], check=True, capture_output=True)
    return made


def question(number: int) -> str:
    return f"Question {number}?"


def answer_to(question: str) -> str:
    """Another for each question: mostly short, every tenth larger than two TLS records can hold."""
    digest = hashlib.sha256(question.encode()).hexdigest()
    return f"{question} {digest * (600 if question.endswith('0?') else 3)}"


@contextlib.contextmanager
def one_segment(guest: Guest) -> Iterator[None]:
    """All records that are written within reach the client in one read, where the system can do that."""
    if _CORK is not None:
        guest.socket.setsockopt(socket.IPPROTO_TCP, _CORK, 1)
    yield
    if _CORK is not None:
        guest.socket.setsockopt(socket.IPPROTO_TCP, _CORK, 0)


def completion(text: str, framing: str) -> list[bytes]:
    """An OpenAI answer as the parts that a server writes one by one: its head, and what follows."""
    if framing == "events":
        events = [*(delta(content=text[at : at + 3000]) for at in range(0, len(text), 3000)), FINISH, DONE]
        return [head(SSE, CHUNKED), *map(chunk, events), END]
    body = json.dumps({"model": "m-1", "choices": [{"message": {"content": text}}]}).encode()
    if framing == "chunked":
        pieces = [body[at : at + 20_000] for at in range(0, len(body), 20_000)]
        return [head(JSON, CHUNKED), *map(chunk, pieces), END]
    if framing == "until close":
        return [head(JSON, b"connection: close\r\n"), body]
    start, end, body = with_length(body, JSON).partition(b"\r\n\r\n")
    return [start + end, body]


def answering(framing: str | None = None, record_bytes: int = 16_384, is_corked: bool = True) -> Talk:
    """Answers every question with `answer_to` it; without a framing, as the request's `stream` asks."""

    def talk(guest: Guest) -> bool:
        asked = json.loads(guest.request.partition(b"\r\n\r\n")[2])
        used = framing or ("events" if asked.get("stream") else "length")
        parts = completion(answer_to(asked["messages"][-1]["content"]), used)
        with one_segment(guest) if is_corked else contextlib.nullcontext():
            for part in parts:
                guest.say(*(part[at : at + record_bytes] for at in range(0, len(part), record_bytes)))
        return used != "until close"

    return talk


@contextlib.contextmanager
def provider(certificate: Certificate, talk: Talk) -> Iterator[Faulty]:
    with faulty(talk, certificate.server_context()) as server:
        yield server
