"""Agents that speak OpenAI's chat completions: OpenAI itself, and the many servers that do the same."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from assay.builtin.agents.calling import Caller, assembled, is_json, whole_text
from assay.builtin.agents.chatting import ChatAgent, functions, key_for
from assay.builtin.agents.messages import Message
from assay.builtin.agents.protocol import Pieces, arguments_of, excerpt, parsed
from assay.execute.http import SseEvent, SseParser, Stream
from assay.model import Answer, Request, ToolCall, Usage
from assay.plugin.agent import AgentError, InvalidAnswer

PUBLIC_URL = "https://api.openai.com/v1"


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
        base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC_URL).rstrip("/")
        is_public = base_url == PUBLIC_URL
        self.provider = "openai" if is_public else None
        key = key_for("OPENAI_API_KEY", api_key, PUBLIC_URL if is_public else None)
        sent = {**({"authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        super().__init__(
            model, system, Caller(f"{base_url}/chat/completions", sent, retries, backoff, concurrency), tools
        )
        self._is_streamed = stream
        self._fixed: dict[str, object] = {"model": model, **(params or {})}
        if stream:
            self._fixed |= {"stream": True, "stream_options": {"include_usage": True}}

    def _body(self, request: Request, messages: list[Message]) -> dict[str, object]:
        body = {**self._fixed, "messages": messages}
        if request.tools:
            body["tools"] = functions(request)
        if request.max_tokens is not None and not body.keys() & {"max_tokens", "max_completion_tokens"}:
            # The public server has renamed it; most others know only the old name.
            body["max_completion_tokens" if self.provider else "max_tokens"] = request.max_tokens
        return body

    async def _read(self, stream: Stream) -> Answer:
        chat = ChatCompletion(stream.sent)
        if self._is_streamed and not is_json(stream):
            return await assembled(stream, SseParser(), chat)
        chat.take_whole(parsed(await whole_text(stream)))
        return chat.answer()


class ChatCompletion:
    """A chat completion, whole or put together from chunks."""

    def __init__(self, sent: float) -> None:
        self.is_complete = False
        self._has_choice = False
        self._is_over, self._late = False, 0
        self._sent = sent
        self._pieces = Pieces(sent)
        self._calls: dict[int, PartialToolCall] = {}
        self._usage: object = None
        self._timings: object = None
        self._model: str | None = None

    def take(self, event: SseEvent) -> None:
        if self._is_over:
            self._late += 1
        elif event.data == "[DONE]":
            self.is_complete = self._is_over = True
        else:
            self.take_chunk(parsed(event.data), event.at)

    def take_chunk(self, chunk: Any, at: float) -> None:
        choice = self._choice(chunk)
        if choice is None:
            return
        delta = choice.get("delta") or {}
        if content := delta.get("content"):
            self._pieces.add(content, at)
        if calls := delta.get("tool_calls"):
            self._pieces.began(at)
            self._take_calls(calls)
        self.is_complete = self.is_complete or bool(choice.get("finish_reason"))

    def take_whole(self, document: Any) -> None:
        choice = self._choice(document)
        message = choice.get("message") if choice is not None else None
        if not isinstance(message, Mapping):
            raise InvalidAnswer(f"the answer has no message: {excerpt(repr(document))}")
        self._pieces.add(message.get("content") or "", self._sent)
        self._take_calls(message.get("tool_calls") or ())
        # In one piece there is no first token to be seen.
        self._pieces.seconds.clear()

    def _choice(self, document: Any) -> dict[str, Any] | None:
        """The first choice, if there is one; facts about the whole are noted on the way."""
        if not isinstance(document, dict):
            raise InvalidAnswer(f"this is not a chat completion: {excerpt(repr(document))}")
        if document.get("error") is not None:
            raise AgentError(f"the server says: {told(document['error'])}")
        self._model = document.get("model") or self._model
        self._usage = document.get("usage") or self._usage
        self._timings = document.get("timings") or self._timings
        choices = document.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        self._has_choice = self._has_choice or isinstance(first, dict)
        return first if isinstance(first, dict) else None

    def _take_calls(self, parts: Any) -> None:
        """A server that gives no index sends whole calls, one after the other."""
        for part in parts:
            function = part.get("function") if isinstance(part, Mapping) else None
            if not isinstance(function, Mapping):
                raise InvalidAnswer(f"this is not a tool call: {excerpt(repr(part))}")
            index = part.get("index")
            call = self._calls.setdefault(len(self._calls) if index is None else index, PartialToolCall())
            call.take(function.get("name"), function.get("arguments"))

    def answer(self) -> Answer:
        if not self._has_choice:
            raise InvalidAnswer("the stream ended without any choice")
        return Answer(
            self._pieces.text,
            tuple(call.made() for _, call in sorted(self._calls.items())),
            usage_of(self._usage),
            cost_in(self._usage),
            first_token_seconds=self._pieces.first_seconds,
            model=self._model,
            durations=durations_of(self._timings),
            content_seconds=tuple(self._pieces.seconds),
            log=f"[{self._late} events after the end were passed over]\n" if self._late else None,
        )


class PartialToolCall:
    """A tool call whose name comes first and whose arguments come bit by bit."""

    def __init__(self) -> None:
        self._name = ""
        self._arguments: list[str] = []

    def take(self, name: object, arguments: object) -> None:
        self._name = self._name or str(name or "")
        if arguments:
            self._arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def made(self) -> ToolCall:
        return ToolCall(self._name, arguments_of("".join(self._arguments), self._name))


def usage_of(usage: object) -> Usage:
    """OpenAI's figures: cached tokens are a part of the prompt's, reasoning tokens of the completion's."""
    if usage is None:
        return Usage(api_calls=1)
    if not isinstance(usage, Mapping):
        raise InvalidAnswer(f"'usage' must be an object, not {excerpt(repr(usage))}")
    asked, said = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return Usage(
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        asked.get("cached_tokens") if isinstance(asked, Mapping) else None,
        said.get("reasoning_tokens") if isinstance(said, Mapping) else None,
        1,
    )


def durations_of(timings: object) -> dict[str, float]:
    """Seconds that llama.cpp's server tells of its work; other servers of this protocol tell none."""
    told = timings if isinstance(timings, Mapping) else {}
    parts = (("prompt_eval", "prompt_ms"), ("eval", "predicted_ms"))
    return {name: told[key] / 1000 for name, key in parts if isinstance(told.get(key), (int, float))}


def cost_in(usage: object) -> float | None:
    """Usd, where a server that brokers models says with the usage what it charges."""
    cost = usage.get("cost") if isinstance(usage, Mapping) else None
    return float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None


def told(error: object) -> str:
    """The message of an error object, or all of it."""
    message = error.get("message") if isinstance(error, Mapping) else error
    return excerpt(str(message or error))
