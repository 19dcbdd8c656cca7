"""The client's side of OpenAI's API (chat completions, completions, responses, embeddings) and of the many servers that follow it.

Those servers differ in details, so reading is lenient: usage may be missing, tool calls may lack an index, and a stream may
end without its last event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.dialects.provider import Provider
from assay.dialects.reading import PartialToolCall, Pieces, excerpt, format_server_error, parse_json
from assay.dialects.usage import OPENAI as USAGE
from assay.http.events import EVENT_STREAM, SseEvent
from assay.model import Answer, Usage
from assay.plugin.agent import AgentError, InvalidAnswer
from assay.units import format_count

CHAT_PATH, COMPLETIONS_PATH = "/chat/completions", "/completions"
RESPONSES_PATH, EMBEDDINGS_PATH, MODELS_PATH = "/responses", "/embeddings", "/models"
"""Each after a base address that mostly ends in /v1."""
STREAM_TYPE = EVENT_STREAM
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
"""OpenAI has renamed it; most other servers know only the old name."""
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
PROVIDER = Provider(
    "openai",
    public_url="https://api.openai.com/v1",
    chat_path=CHAT_PATH,
    url_variable="OPENAI_BASE_URL",
    key_variable="OPENAI_API_KEY",
    key_header=("authorization", "Bearer "),
)


def chat_body(
    model: str, messages: Sequence[Mapping[str, object]], params: Mapping[str, object], *, streams: bool
) -> dict[str, object]:
    return {"model": model, **params, "messages": messages, **(_STREAMED if streams else {})}


def completion_body(
    model: str, prompt: str, params: Mapping[str, object], *, streams: bool
) -> dict[str, object]:
    return {"model": model, **params, "prompt": prompt, **(_STREAMED if streams else {})}


def response_body(
    model: str,
    given: str | Sequence[Mapping[str, object]],
    params: Mapping[str, object],
    *,
    system: str | None,
    max_tokens: int | None,
    streams: bool,
) -> dict[str, object]:
    """Build a request of the Responses API; `given` is text or messages."""
    body: dict[str, object] = {"model": model, **params, "input": given}
    if system:
        body["instructions"] = system
    if max_tokens is not None:
        body["max_output_tokens"] = max_tokens
    if streams:
        body["stream"] = True
    return body


def function_tools(tools: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The tools on offer, as OpenAI and those who follow it write them."""
    return [{"type": "function", "function": dict(tool)} for tool in tools]


class ChatCompletion:
    """Reads a chat completion, whole (`take_whole`) or from the chunks of a stream (`take` for each event).

    A stream is complete when `[DONE]` or a finish reason has come. Events after `[DONE]` are ignored, and noted in the log.
    """

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
            self.take_chunk(parse_json(event.data), event.at)

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
            raise AgentError(f"the server says: {format_server_error(document['error'])}")
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
            tuple(call.build() for _, call in sorted(self._calls.items())),
            usage_of(self._usage),
            cost_in(self._usage),
            first_token_seconds=self._pieces.first_seconds,
            model=self._model,
            durations=durations_of(self._timings),
            content_seconds=tuple(self._pieces.seconds),
            log=f"[{format_count(self._late, 'event')} after the end ignored]\n" if self._late else None,
        )


def usage_of(usage: object) -> Usage:
    """OpenAI's figures: cached tokens are a part of the prompt's, reasoning tokens of the completion's."""
    if usage is None:
        return Usage(api_calls=1)
    if not isinstance(usage, Mapping):
        raise InvalidAnswer(f"'usage' must be an object, not {excerpt(repr(usage))}")
    prompt, completion = (
        usage.get("prompt_tokens_details") or {},
        usage.get("completion_tokens_details") or {},
    )
    return Usage(
        usage.get(USAGE.input),
        usage.get(USAGE.output),
        prompt.get(USAGE.cached) if isinstance(prompt, Mapping) else None,
        completion.get("reasoning_tokens") if isinstance(completion, Mapping) else None,
        1,
    )


def durations_of(timings: object) -> dict[str, float]:
    """Seconds that the server of llama.cpp reports for its work; other servers of this protocol report none."""
    reported = timings if isinstance(timings, Mapping) else {}
    parts = (("prompt_eval", "prompt_ms"), ("eval", "predicted_ms"))
    return {name: reported[key] / 1000 for name, key in parts if isinstance(reported.get(key), (int, float))}


def cost_in(usage: object) -> float | None:
    """Usd, where a server that brokers models says with the usage what it charges."""
    cost = usage.get("cost") if isinstance(usage, Mapping) else None
    return float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None
