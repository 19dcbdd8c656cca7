"""Agents that speak OpenAI's chat completions: OpenAI itself, and the many servers that do the same."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from assay.builtin.agents.chat_agent import ChatAgent, key_for
from assay.builtin.agents.http_calls import Caller, assemble_answer, is_json, whole_text
from assay.builtin.agents.messages import Message
from assay.dialects.openai import LIMIT, NEW_LIMIT, PROVIDER, ChatCompletion, chat_body, function_tools
from assay.dialects.reading import parse_json
from assay.http.client import Stream
from assay.http.events import SseParser
from assay.model import Answer, Request


class OpenAI(ChatAgent):
    """A model behind OpenAI's chat completions API, or any server that speaks it: vLLM, llama.cpp, OpenRouter, LM Studio.

    Args:
        base_url: Address of the server up to, but without, /chat/completions. Default: ${OPENAI_BASE_URL}, else OpenAI itself.
        api_key: Key of the server. Default: ${OPENAI_API_KEY}; only OpenAI itself demands one.

    Example:
        - {name: gpt, type: openai, model: gpt-4o-mini, params: {temperature: 0}}
        - {name: local, type: openai, model: qwen3, base_url: "http://127.0.0.1:8000/v1"}
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
        body = chat_body(self._model, messages, self._params, streams=self._is_streamed)
        if request.tools:
            body["tools"] = function_tools(request.tools)
        if request.max_tokens is not None and not body.keys() & {LIMIT, NEW_LIMIT}:
            body[NEW_LIMIT if self.provider else LIMIT] = request.max_tokens
        return body

    async def _read(self, stream: Stream) -> Answer:
        chat = ChatCompletion(stream.sent)
        if self._is_streamed and not is_json(stream):
            return await assemble_answer(stream, SseParser(), chat)
        chat.take_whole(parse_json(await whole_text(stream)))
        return chat.answer()
