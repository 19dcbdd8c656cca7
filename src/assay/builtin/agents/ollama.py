"""Agents that speak Ollama's chat: streaming JSON lines, with the server's own durations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from assay.builtin.agents.calling import Caller, assembled
from assay.builtin.agents.chatting import ChatAgent, functions
from assay.builtin.agents.messages import Message
from assay.builtin.agents.openai import PartialToolCall, told
from assay.builtin.agents.protocol import Pieces, excerpt, parsed
from assay.execute.http import NdjsonLine, NdjsonParser, Stream
from assay.execute.ollama import local_url
from assay.model import Answer, Request, Usage
from assay.plugin.agent import AgentError, InvalidAnswer

_DURATIONS = ("total", "load", "prompt_eval", "eval")
_NANO = 1e-9


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
        base_url = base_url.rstrip("/") if base_url else local_url(os.environ.get("OLLAMA_HOST"))
        super().__init__(
            model, system, Caller(f"{base_url}/api/chat", headers or {}, retries, backoff, concurrency), tools
        )
        self._is_streamed = stream
        self._options = dict(params or {})
        self._fixed: dict[str, object] = {"model": model, "stream": stream}
        if keep_alive is not None:
            self._fixed["keep_alive"] = keep_alive

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        body = {**self._fixed, "messages": messages}
        most = {"num_predict": request.max_tokens} if request.max_tokens is not None else {}
        if options := {**most, **self._options}:
            body["options"] = options
        if request.tools:
            body["tools"] = functions(request)
        return body

    async def _read(self, stream: Stream) -> Answer:
        return await assembled(stream, NdjsonParser(), OllamaReply(stream.sent, self._is_streamed))


class OllamaReply:
    """One line, or many of which the last is `done` and has the figures."""

    def __init__(self, sent: float, is_streamed: bool) -> None:
        self.is_complete = False
        self._pieces = Pieces(sent)
        self._is_streamed = is_streamed
        self._calls: list[PartialToolCall] = []
        self._last: Mapping[str, Any] = {}

    def take(self, line: NdjsonLine) -> None:
        document = parsed(line.text)
        if not isinstance(document, Mapping):
            raise InvalidAnswer(f"this is not an answer of Ollama: {excerpt(line.text)}")
        if document.get("error"):
            raise AgentError(f"the server says: {told(document['error'])}")
        message = document.get("message") or {}
        if not isinstance(message, Mapping):
            raise InvalidAnswer(f"the message must be an object: {excerpt(line.text)}")
        if content := message.get("content"):
            self._pieces.add(content, line.at)
        for call in message.get("tool_calls") or ():
            self._take_call(call, line.at)
        if document.get("done"):
            self.is_complete, self._last = True, document

    def _take_call(self, call: Any, at: float) -> None:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise InvalidAnswer(f"this is not a tool call: {excerpt(repr(call))}")
        self._pieces.began(at)
        self._calls.append(PartialToolCall())
        self._calls[-1].take(function.get("name"), function.get("arguments"))

    def answer(self) -> Answer:
        last = self._last
        return Answer(
            self._pieces.text,
            tuple(call.made() for call in self._calls),
            Usage(last.get("prompt_eval_count"), last.get("eval_count"), api_calls=1),
            first_token_seconds=self._pieces.first_seconds if self._is_streamed else None,
            model=last.get("model"),
            durations={name: _seconds(last, name) for name in _DURATIONS if f"{name}_duration" in last},
            content_seconds=tuple(self._pieces.seconds) if self._is_streamed else (),
        )


def _seconds(document: Mapping[str, Any], name: str) -> float:
    nanoseconds = document[f"{name}_duration"]
    if isinstance(nanoseconds, bool) or not isinstance(nanoseconds, (int, float)):
        raise InvalidAnswer(f"'{name}_duration' must be a number, not {excerpt(repr(nanoseconds))}")
    return nanoseconds * _NANO
