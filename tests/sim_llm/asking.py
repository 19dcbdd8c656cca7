"""Putting questions to a simulated server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tests.http.parsing import parse_pieces

from assay.http.client import HttpClient, Response
from assay.http.events import NdjsonParser, Piece, SseEvent, SseParser
from assay.simulator import SimOptions, SimServer

OPENAI, COMPLETIONS, ANTHROPIC = "/v1/chat/completions", "/v1/completions", "/v1/messages"
GENERATE, OLLAMA = "/api/generate", "/api/chat"


def quick(**options: Any) -> SimServer:
    """A server without delays, in a thread of this process."""
    return SimServer(SimOptions(**{"ttft": 0.0, "itl": 0.0, "tokens": 4} | options), in_thread=True)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def post(server: SimServer, path: str, document: object) -> Response:
    return posts(server, path, [document])[0]


def posts(server: SimServer, path: str, documents: Sequence[object]) -> list[Response]:
    """One after the other, on one connection."""

    async def ask() -> list[Response]:
        async with HttpClient(max_connections=1) as client:
            return [
                await client.request("POST", server.url + path, json.dumps(document).encode())
                for document in documents
            ]

    return asyncio.run(ask())


def get(server: SimServer, path: str) -> Any:
    async def ask() -> Response:
        async with HttpClient() as client:
            return await client.request("GET", server.url + path)

    return asyncio.run(ask()).json()


def events(server: SimServer, path: str, document: dict[str, Any]) -> list[SseEvent]:
    response = post(server, path, document | {"stream": True})
    assert response.status == 200
    assert response.headers["content-type"] == "text/event-stream"
    return parse_pieces([Piece(response.body, 0.0)], SseParser())


def lines(server: SimServer, path: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    response = post(server, path, document)
    assert response.status == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line.text) for line in parse_pieces([Piece(response.body, 0.0)], NdjsonParser())]


def openai_text(server: SimServer, prompt: str, **more: Any) -> str:
    return str(post(server, OPENAI, said(prompt, **more)).json()["choices"][0]["message"]["content"])
