"""What the agents that chat with a model behind a server have in common.

A subclass has two duties: `_body` writes the request in the words of its protocol, `_read` makes an answer of the response.
All else, from the conversation to retries, is the same for all of them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from assay.builtin.agents.http_calls import (
    AgentOverHttp,
    Assembly,
    Caller,
    assemble_answer,
    is_json,
    whole_text,
)
from assay.builtin.agents.messages import Message, chat_messages
from assay.dialects.provider import Provider
from assay.dialects.reading import excerpt, json_bytes, parse_json
from assay.http.client import Stream
from assay.http.events import SseEvent, SseParser
from assay.model import Answer, Request
from assay.model.tool import read_tools
from assay.plugin import BadAgent, InvalidAnswer


class ChatAgent(AgentOverHttp, ABC):
    """Base of the agents that call a chat model behind a server.

    A subclass says how its protocol writes a request and reads an answer.

    Args:
        model: Name of the model, as the server knows it.
        base_url: Address of the server.
        api_key: Key of the server; write it as ${NAME} so that it is read from the environment.
        system: System prompt of every conversation.
        params: Parameters of the request, sent as they are, such as temperature.
        stream: Whether answers are streamed; without it there is no time to first token.
        headers: Additional HTTP headers.
        retries: Maximum retries after a refused request, a server error or a lost connection.
        backoff: Seconds before the first retry; each further one waits twice as long.
        tools: Tools that the model may call in every case, in addition to the case's own; OpenAI's and Anthropic's formats are accepted.
    """

    provider: str | None = None
    """Whose price list holds; None for a server that is not the public one."""

    def __init__(
        self, model: str, system: str | None, caller: Caller, tools: Sequence[object] | None = None
    ) -> None:
        self._model, self._system, self._caller = model, system, caller
        try:
            self._tools = read_tools(tools or ())
        except ValueError as problem:
            raise BadAgent(str(problem)) from None
        self._answered_by = ""

    def found_version(self) -> str:
        """The model that answered; until one has, the model that is asked for."""
        return self._answered_by or self._model

    async def answer(self, request: Request) -> Answer:
        if self._tools:
            request = replace(request, tools=(*self._tools, *request.tools))
        body = self._body(request, chat_messages(request, self._system))
        answer = await self._caller.ask(json_bytes(body), self._read, self._model)
        if not isinstance(answer.model, str | None):
            raise InvalidAnswer(f"the model that answered must be text, not {excerpt(repr(answer.model))}")
        self._answered_by = answer.model or self._answered_by
        return answer

    async def look_up(self, path: str, document: object = None) -> Any:
        """What the server says at another of its paths; AgentError where it says nothing."""
        return await self._caller.look_up(path, None if document is None else json_bytes(document))

    @abstractmethod
    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        """The document to POST; `messages` are the system prompt, the history and the input of the request."""

    @abstractmethod
    async def _read(self, stream: Stream) -> Answer:
        """The answer in a response that is no error; InvalidAnswer where it breaks the protocol."""


class WholeReply(Assembly[SseEvent], Protocol):
    """An answer that comes as server-sent events, or as one document."""

    def __init__(self, sent: float) -> None: ...

    def take_whole(self, document: Any) -> None: ...


class PublicChatAgent(ChatAgent):
    """Base of the agents of a provider with a public server, which demands a key, and of the servers that speak its protocol."""

    _provider: ClassVar[Provider]
    _reply: ClassVar[type[WholeReply]]

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
        provider = self._provider
        base_url = provider.base_url(base_url, os.environ)
        is_public = base_url == provider.public_url
        self.provider = provider.name if is_public else None
        key = provider.key(api_key, os.environ)
        if is_public and not key:
            raise BadAgent(
                f"it needs a key for '{provider.public_url}'. Set the environment variable {provider.key_variable}, or base_url."
            )
        # Headers of the user's own come last: a server may want its key in another one.
        sent = {**provider.headers(key), **(headers or {})}
        caller = Caller(base_url + provider.chat_path, sent, retries, backoff, concurrency)
        super().__init__(model, system, caller, tools)
        self._is_streamed = stream
        self._params = dict(params or {})

    async def _read(self, stream: Stream) -> Answer:
        reply = self._reply(stream.sent)
        if self._is_streamed and not is_json(stream):
            return await assemble_answer(stream, SseParser(), reply)
        reply.take_whole(parse_json(await whole_text(stream)))
        return reply.answer()
