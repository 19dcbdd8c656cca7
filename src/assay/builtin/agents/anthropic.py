"""Agents that speak Anthropic's messages."""

from __future__ import annotations

from assay.builtin.agents.chat_agent import PublicChatAgent
from assay.builtin.agents.messages import Message
from assay.dialects.anthropic import PROVIDER, AnthropicReply, chat_body, tools_with_schemas
from assay.model import Request


class Anthropic(PublicChatAgent):
    """A model behind Anthropic's messages API.

    Args:
        base_url: Base URL, without /v1/messages. Default: ${ANTHROPIC_BASE_URL}, else Anthropic's own API.
        api_key: Key of the server. Default: ${ANTHROPIC_API_KEY}; only Anthropic's own API requires one.
        params: Parameters of the request, sent as they are; `max_tokens` is 4096 unless this or the limits of the suite say otherwise.

    Example:
        - {name: claude, type: anthropic, model: claude-sonnet-4-5, params: {temperature: 0}}
    """

    _provider = PROVIDER
    variables = PROVIDER.variables
    _reply = AnthropicReply

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        most = {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
        body = chat_body(self._model, messages, {**most, **self._params}, streams=self._is_streamed)
        if request.tools:
            body["tools"] = tools_with_schemas(request.tools)
        return body
