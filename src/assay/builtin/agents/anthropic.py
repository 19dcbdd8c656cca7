"""Agents that speak Anthropic's messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from assay.builtin.agents.chat_agent import ChatAgent, key_for
from assay.builtin.agents.http_calls import Caller, assemble_answer, is_json, whole_text
from assay.builtin.agents.messages import Message
from assay.dialects.anthropic import PROVIDER, AnthropicReply, chat_body, tools_with_schemas
from assay.dialects.reading import parse_json
from assay.http.client import Stream
from assay.http.events import SseParser
from assay.model import Answer, Request


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
        base_url = PROVIDER.base_url(base_url, os.environ)
        is_public = base_url == PROVIDER.public_url
        self.provider = PROVIDER.name if is_public else None
        sent = {**PROVIDER.headers(key_for(PROVIDER, api_key, is_public)), **(headers or {})}
        super().__init__(
            model, system, Caller(base_url + PROVIDER.chat_path, sent, retries, backoff, concurrency), tools
        )
        self._is_streamed = stream
        self._params = dict(params or {})

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        most = {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
        body = chat_body(self._model, messages, {**most, **self._params}, streams=self._is_streamed)
        if request.tools:
            body["tools"] = tools_with_schemas(request.tools)
        return body

    async def _read(self, stream: Stream) -> Answer:
        reply = AnthropicReply(stream.sent)
        if self._is_streamed and not is_json(stream):
            return await assemble_answer(stream, SseParser(), reply)
        reply.take_whole(parse_json(await whole_text(stream)))
        return reply.answer()
