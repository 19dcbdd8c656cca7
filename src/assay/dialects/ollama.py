"""The client's side of Ollama's API: JSON lines, of which the last has the server's own figures.

Ollama reports how long it took to load the model, to read the prompt and to write the answer, in nanoseconds. Those durations
are measured on the server, without the network. See https://github.com/ollama/ollama/blob/main/docs/api.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.dialects.provider import Provider
from assay.dialects.reading import PartialToolCall, Pieces, excerpt, format_server_error, parse_json
from assay.dialects.usage import OLLAMA as USAGE
from assay.http.events import JSON_LINES, NdjsonLine
from assay.model import Answer, Usage
from assay.plugin.agent import AgentError, InvalidAnswer

_DURATIONS = ("total", "load", "prompt_eval", "eval")
_NANO = 1e-9
PORT = 11434
LOCAL_URL = f"http://127.0.0.1:{PORT}"
CHAT_PATH, GENERATE_PATH = "/api/chat", "/api/generate"
TAGS_PATH, RUNNING_PATH, VERSION_PATH = "/api/tags", "/api/ps", "/api/version"
STREAM_TYPE = JSON_LINES[0]


def local_url(host: str | None) -> str:
    """Where Ollama is, by its own variable.

    >>> local_url("0.0.0.0"), local_url("gpu:9000"), local_url(None)
    ('http://127.0.0.1:11434', 'http://gpu:9000', 'http://127.0.0.1:11434')
    """
    if not host:
        return LOCAL_URL
    scheme, _, rest = host.rpartition("://")
    name, _, port = rest.rstrip("/").partition(":")
    # The server listens on 0.0.0.0, which is nowhere to connect to.
    name = "127.0.0.1" if name in ("0.0.0.0", "") else name  # noqa: S104
    return f"{scheme or 'http'}://{name}:{port or PORT}"


PROVIDER = Provider(
    "ollama", public_url=LOCAL_URL, chat_path=CHAT_PATH, url_variable="OLLAMA_HOST", normalize=local_url
)


def chat_body(
    model: str, messages: Sequence[Mapping[str, object]], options: Mapping[str, object], *, streams: bool
) -> dict[str, object]:
    return {**_body(model, options, streams), "messages": messages}


def generate_body(
    model: str, prompt: str, options: Mapping[str, object], *, system: str | None, streams: bool
) -> dict[str, object]:
    """Build the request for a question without a conversation."""
    return {**_body(model, options, streams), **({"system": system} if system else {}), "prompt": prompt}


def _body(model: str, options: Mapping[str, object], streams: bool) -> dict[str, object]:
    return {"model": model, "stream": streams, **({"options": options} if options else {})}


class OllamaReply:
    """One line, or many of which the last is `done` and has the figures."""

    def __init__(self, sent: float, is_streamed: bool) -> None:
        self.is_complete = False
        self._pieces = Pieces(sent)
        self._is_streamed = is_streamed
        self._calls: list[PartialToolCall] = []
        self._last: Mapping[str, Any] = {}

    def take(self, line: NdjsonLine) -> None:
        document = parse_json(line.text)
        if not isinstance(document, Mapping):
            raise InvalidAnswer(f"this is not an Ollama answer: {excerpt(line.text)}")
        if document.get("error"):
            raise AgentError(f"the server says: {format_server_error(document['error'])}")
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
        durations: dict[str, float] = {}
        for name in _DURATIONS:
            if f"{name}_duration" in last:
                nanoseconds = last[f"{name}_duration"]
                if isinstance(nanoseconds, bool) or not isinstance(nanoseconds, (int, float)):
                    raise InvalidAnswer(
                        f"'{name}_duration' must be a number, not {excerpt(repr(nanoseconds))}"
                    )
                durations[name] = nanoseconds * _NANO
        return Answer(
            self._pieces.text,
            tuple(call.build() for call in self._calls),
            Usage(last.get(USAGE.input), last.get(USAGE.output), api_calls=1),
            first_token_seconds=self._pieces.first_seconds if self._is_streamed else None,
            model=last.get("model"),
            durations=durations,
            content_seconds=tuple(self._pieces.seconds) if self._is_streamed else (),
        )
