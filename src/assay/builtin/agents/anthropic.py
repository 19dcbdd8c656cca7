"""Agents that speak Anthropic's messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from assay.builtin.agents.calling import Caller, assembled, is_json, whole_text
from assay.builtin.agents.chatting import ChatAgent, key_for
from assay.builtin.agents.messages import Message
from assay.builtin.agents.openai import PartialToolCall, told
from assay.builtin.agents.protocol import Pieces, excerpt, parsed
from assay.execute.http import SseEvent, SseParser, Stream
from assay.model import Answer, Request, Usage
from assay.model.conversation import as_text
from assay.plugin.agent import AgentError, InvalidAnswer

PUBLIC_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
MAX_TOKENS = 4096


class Anthropic(ChatAgent):
    """A model behind Anthropic's messages API.

    Args:
        base_url: Address of the server up to, but without, /v1/messages. Default: ${ANTHROPIC_BASE_URL}, else Anthropic itself.
        api_key: Key of the server. Default: ${ANTHROPIC_API_KEY}; only Anthropic itself demands one.
        params: Parameters of the request, sent as they are; `max_tokens` is 4096 unless this or the limits of the suite say otherwise.

    Example:
        - {name: claude, type: anthropic, model: claude-sonnet-4-5, params: {temperature: 0}}
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        params: Mapping[str, object] | None = None,
        stream: bool = True,
        headers: Mapping[str, object] | None = None,
        retries: int = 3,
        backoff: float = 0.5,
        concurrency: int = 1,
        tools: Sequence[object] | None = None,
    ) -> None:
        base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or PUBLIC_URL
        base_url = base_url.rstrip("/").removesuffix("/v1")
        is_public = base_url == PUBLIC_URL
        self.provider = "anthropic" if is_public else None
        key = key_for("ANTHROPIC_API_KEY", api_key, PUBLIC_URL if is_public else None)
        sent = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {}), **(headers or {})}
        super().__init__(
            model, system, Caller(f"{base_url}/v1/messages", sent, retries, backoff, concurrency), tools
        )
        self._is_streamed = stream
        self._fixed: dict[str, object] = {"model": model, "stream": stream, **(params or {})}

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        system = [as_text(message["content"]) for message in messages if message["role"] == "system"]
        body = {"max_tokens": request.max_tokens or MAX_TOKENS, **self._fixed}
        body["messages"] = [message for message in messages if message["role"] != "system"]
        if system:
            body["system"] = "\n\n".join(system)
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        return body

    async def _read(self, stream: Stream) -> Answer:
        reply = AnthropicReply(stream.sent)
        if self._is_streamed and not is_json(stream):
            return await assembled(stream, SseParser(), reply)
        reply.take_whole(parsed(await whole_text(stream)))
        return reply.answer()


def _tool(tool: Mapping[str, object]) -> dict[str, object]:
    schema = tool.get("parameters") or {"type": "object"}
    return {"name": tool.get("name"), "description": tool.get("description", ""), "input_schema": schema}


class AnthropicReply:
    """A message, whole or put together from events."""

    def __init__(self, sent: float) -> None:
        self.is_complete = False
        self._sent = sent
        self._pieces = Pieces(sent)
        self._calls: dict[int, PartialToolCall] = {}
        self._usage: dict[str, Any] = {}
        self._model: str | None = None

    def take(self, event: SseEvent) -> None:
        document = _checked(parsed(event.data))
        kind = document.get("type")
        if kind == "content_block_delta":
            self._take_delta(document.get("index") or 0, document.get("delta") or {}, event.at)
        elif kind == "content_block_start":
            self._take_block(document.get("index") or 0, document.get("content_block") or {}, event.at)
        elif kind == "message_start":
            self._take_facts(document.get("message") or {})
        elif kind == "message_delta":
            self._take_facts(document)
        elif kind == "message_stop":
            self.is_complete = True

    def take_whole(self, document: Any) -> None:
        document = _checked(document)
        blocks = document.get("content")
        if not isinstance(blocks, list):
            raise InvalidAnswer(f"the answer has no content: {excerpt(repr(document))}")
        self._take_facts(document)
        for index, block in enumerate(blocks):
            self._take_block(index, block, self._sent)
        # In one piece there is no first token to be seen.
        self._pieces.seconds.clear()

    def _take_block(self, index: int, block: Mapping[str, Any], at: float) -> None:
        if block.get("type") == "text":
            self._pieces.add(block.get("text") or "", at)
        elif block.get("type") == "tool_use":
            self._pieces.began(at)
            self._calls.setdefault(index, PartialToolCall()).take(block.get("name"), block.get("input"))

    def _take_delta(self, index: int, delta: Mapping[str, Any], at: float) -> None:
        if delta.get("type") == "text_delta":
            self._pieces.add(delta.get("text"), at)
        elif delta.get("type") == "input_json_delta":
            self._calls.setdefault(index, PartialToolCall()).take(None, delta.get("partial_json"))

    def _take_facts(self, document: Mapping[str, Any]) -> None:
        self._model = document.get("model") or self._model
        usage = document.get("usage") or {}
        if not isinstance(usage, Mapping):
            raise InvalidAnswer(f"'usage' must be an object, not {excerpt(repr(usage))}")
        self._usage.update({name: value for name, value in usage.items() if value is not None})

    def answer(self) -> Answer:
        return Answer(
            self._pieces.text,
            tuple(call.made() for _, call in sorted(self._calls.items())),
            _usage(self._usage),
            first_token_seconds=self._pieces.first_seconds,
            content_seconds=tuple(self._pieces.seconds),
            model=self._model,
        )


def _checked(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise InvalidAnswer(f"this is not a message: {excerpt(repr(document))}")
    if document.get("type") == "error":
        raise AgentError(f"the server says: {told(document.get('error'))}")
    return document


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Anthropic counts input from and into its cache apart; with us all that was read is input."""
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    parts = [usage.get("input_tokens"), read, written]
    if any(part is not None and not isinstance(part, int) for part in parts):
        raise InvalidAnswer(f"usage counts must be whole numbers: {excerpt(repr(dict(usage)))}")
    known = [part for part in parts if part is not None]
    return Usage(sum(known) if known else None, usage.get("output_tokens"), read, None, 1)
