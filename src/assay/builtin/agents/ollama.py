"""Agents that speak Ollama's chat: streaming JSON lines, with the server's own durations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import ClassVar

from assay.builtin.agents.chat_agent import ChatAgent
from assay.builtin.agents.http_calls import Caller, assemble_answer
from assay.builtin.agents.messages import Message
from assay.dialects.ollama import PROVIDER, OllamaReply, chat_body
from assay.dialects.openai import function_tools
from assay.http.client import Stream
from assay.http.events import NdjsonParser
from assay.model import Answer, Request


class Ollama(ChatAgent):
    """A model served by Ollama; the durations that the server reports are kept.

    Args:
        base_url: Address of the server. Default: ${OLLAMA_HOST}, else http://127.0.0.1:11434.
        params: Options of the model, such as num_ctx, num_gpu and temperature.
        keep_alive: How long the model stays loaded after a request, such as 5m; 0 unloads it at once.

    Example:
        - {name: gemma, type: ollama, model: "gemma3:latest", params: {num_ctx: 512}}
    """

    is_free: ClassVar[bool] = True
    variables = PROVIDER.variables

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        system: str | None = None,
        params: Mapping[str, object] | None = None,
        stream: bool = True,
        keep_alive: str | float | None = None,
        headers: Mapping[str, object] | None = None,
        retries: int = 3,
        backoff: float = 0.5,
        concurrency: int = 1,
        tools: Sequence[object] | None = None,
    ) -> None:
        base_url = PROVIDER.base_url(base_url, os.environ)
        sent = headers or {}
        super().__init__(
            model, system, Caller(base_url + PROVIDER.chat_path, sent, retries, backoff, concurrency), tools
        )
        self._is_streamed = stream
        self._options = dict(params or {})
        self._keep_alive = {} if keep_alive is None else {"keep_alive": keep_alive}

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        most = {"num_predict": request.max_tokens} if request.max_tokens is not None else {}
        body = chat_body(self._model, messages, {**most, **self._options}, streams=self._is_streamed)
        if request.tools:
            body["tools"] = function_tools(request.tools)
        return {**body, **self._keep_alive}

    async def _read(self, stream: Stream) -> Answer:
        return await assemble_answer(stream, NdjsonParser(), OllamaReply(stream.sent, self._is_streamed))
