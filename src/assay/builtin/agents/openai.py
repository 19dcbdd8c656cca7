"""Agents that speak OpenAI's chat completions: OpenAI itself, and the many servers that do the same."""

from __future__ import annotations

from assay.builtin.agents.chat_agent import PublicChatAgent
from assay.builtin.agents.messages import Message
from assay.dialects.openai import LIMIT, NEW_LIMIT, PROVIDER, ChatCompletion, chat_body, function_tools
from assay.model import Request


class OpenAI(PublicChatAgent):
    """A model behind OpenAI's chat completions API, or any server that speaks it: vLLM, llama.cpp, OpenRouter, LM Studio.

    Args:
        base_url: Base URL, without /chat/completions. Default: ${OPENAI_BASE_URL}, else OpenAI's own API.
        api_key: Key of the server. Default: ${OPENAI_API_KEY}; only OpenAI's own API requires one.

    Example:
        - {name: gpt, type: openai, model: gpt-4o-mini, params: {temperature: 0}}
        - {name: local, type: openai, model: qwen3, base_url: "http://127.0.0.1:8000/v1"}
    """

    _provider = PROVIDER
    variables = PROVIDER.variables
    _reply = ChatCompletion

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        body = chat_body(self._model, messages, self._params, streams=self._is_streamed)
        if request.tools:
            body["tools"] = function_tools(request.tools)
        if request.max_tokens is not None and not body.keys() & {LIMIT, NEW_LIMIT}:
            body[NEW_LIMIT if self.provider else LIMIT] = request.max_tokens
        return body
