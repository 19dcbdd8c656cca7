"""The client's side of Anthropic's Messages API: https://docs.anthropic.com/en/api/messages.

A stream is a sequence of named events: `message_start` with the usage of the input, then for each block of content a start and
deltas, then `message_delta` with the final usage and `message_stop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.dialects.provider import Provider
from assay.dialects.reading import PartialToolCall, Pieces, excerpt, format_server_error, parse_json
from assay.dialects.usage import ANTHROPIC as USAGE
from assay.http.events import EVENT_STREAM, SseEvent
from assay.model import Answer, Usage
from assay.model.conversation import as_text
from assay.plugin.agent import AgentError, InvalidAnswer

MESSAGES_PATH = "/v1/messages"
VERSION_HEADER, VERSION = "anthropic-version", "2023-06-01"
STREAM_TYPE = EVENT_STREAM
MAX_TOKENS = 4096
"""The limit where none is set: the server demands a number."""
PROVIDER = Provider(
    "anthropic",
    public_url="https://api.anthropic.com",
    chat_path=MESSAGES_PATH,
    url_variable="ANTHROPIC_BASE_URL",
    key_variable="ANTHROPIC_API_KEY",
    key_header=("x-api-key", ""),
    fixed_headers={VERSION_HEADER: VERSION},
    optional_end="/v1",
)


def chat_body(
    model: str, messages: Sequence[Mapping[str, object]], params: Mapping[str, object], *, streams: bool
) -> dict[str, object]:
    """The body of a request. Instructions are not messages in this API, but a field of their own."""
    system = [as_text(message["content"]) for message in messages if message["role"] == "system"]
    body: dict[str, object] = {
        "model": model,
        "max_tokens": MAX_TOKENS,
        **params,
        "messages": [message for message in messages if message["role"] != "system"],
        "stream": streams,
    }
    if system:
        body["system"] = "\n\n".join(system)
    return body


def tools_with_schemas(tools: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "name": tool.get("name"),
            "description": tool.get("description", ""),
            "input_schema": tool.get("parameters") or {"type": "object"},
        }
        for tool in tools
    ]


class AnthropicReply:
    """Reads a message, whole (`take_whole`) or from the events of a stream (`take` for each); `answer` gives the result.

    `is_complete` says whether the end of the stream has come: a stream that ends before it was cut off.
    """

    def __init__(self, sent: float) -> None:
        self.is_complete = False
        self._sent = sent
        self._pieces = Pieces(sent)
        self._calls: dict[int, PartialToolCall] = {}
        self._usage: dict[str, Any] = {}
        self._model: str | None = None

    def take(self, event: SseEvent) -> None:
        document = _check_message(parse_json(event.data))
        kind = document.get("type")
        if kind == "content_block_delta":
            delta = document.get("delta") or {}
            if delta.get("type") == "text_delta":
                self._pieces.add(delta.get("text"), event.at)
            elif delta.get("type") == "input_json_delta":
                call = self._calls.setdefault(document.get("index") or 0, PartialToolCall())
                call.take(None, delta.get("partial_json"))
        elif kind == "content_block_start":
            self._take_block(document.get("index") or 0, document.get("content_block") or {}, event.at)
        elif kind == "message_start":
            self._take_facts(document.get("message") or {})
        elif kind == "message_delta":
            self._take_facts(document)
        elif kind == "message_stop":
            self.is_complete = True

    def take_whole(self, document: Any) -> None:
        document = _check_message(document)
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

    def _take_facts(self, document: Mapping[str, Any]) -> None:
        self._model = document.get("model") or self._model
        usage = document.get("usage") or {}
        if not isinstance(usage, Mapping):
            raise InvalidAnswer(f"'usage' must be an object, not {excerpt(repr(usage))}")
        self._usage.update({name: value for name, value in usage.items() if value is not None})

    def answer(self) -> Answer:
        return Answer(
            self._pieces.text,
            tuple(call.build() for _, call in sorted(self._calls.items())),
            _usage(self._usage),
            first_token_seconds=self._pieces.first_seconds,
            content_seconds=tuple(self._pieces.seconds),
            model=self._model,
        )


def _check_message(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise InvalidAnswer(f"this is not a message: {excerpt(repr(document))}")
    if document.get("type") == "error":
        raise AgentError(f"the server says: {format_server_error(document.get('error'))}")
    return document


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Anthropic counts input that comes from its cache or goes into it separately; here, input is all of it."""
    read, written = usage.get(USAGE.cached), usage.get(USAGE.written)
    parts = [usage.get(USAGE.input), read, written]
    if any(part is not None and not isinstance(part, int) for part in parts):
        raise InvalidAnswer(f"usage counts must be whole numbers: {excerpt(repr(dict(usage)))}")
    known = [part for part in parts if part is not None]
    return Usage(sum(known) if known else None, usage.get(USAGE.output), read, None, 1)
