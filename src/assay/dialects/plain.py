"""The JSON that agents in any language speak.

## What a program or an HTTP endpoint receives and answers

A `command` agent reads one JSON object per line from standard input and writes one per line to standard output; an `http`
agent gets the same object by POST and answers with it.

```text
in   {"id": "1", "input": "What is 2 + 2?", "params": {}}
out  {"id": "1", "output": "4", "usage": {"input_tokens": 8, "output_tokens": 1}}
```

| request | meaning |
|---|---|
| `id` | number of the request, to be repeated in the answer |
| `input` | the input of the case: text, or whatever structure the case holds |
| `params` | the agent's `params`, and the metadata of the case |
| `history` | earlier turns of a conversation, `{"role": …, "content": …}`, oldest first |
| `tools` | tools that may be called, each `{"name", "description", "parameters"}` |
| `files` | name and absolute path of files that belong to the case |
| `max_tokens` | the most tokens of the answer, where the benchmark limits them |

| answer | meaning |
|---|---|
| `output` | text, or any structure |
| `usage` | `input_tokens`, `output_tokens`, `cached_tokens`, `reasoning_tokens`, `api_calls` |
| `tool_calls` | tools that were called, each `{"name", "arguments"}` |
| `spans` | parts of the time, each `{"name", "kind", "start", "seconds"}`; kind is llm, tool, agent, queue or harness. A span may name the place of the span that it is a part of as `parent`, and have `attributes`: `input_tokens`, `output_tokens`, `cached_tokens`, `input_hash` |
| `usd` | what the answer cost |
| `model` | the model that answered |
| `durations` | seconds by name, as a server reports them |
| `log` | text that is kept with the execution |
| `simulated` | true: the figures are made up and are marked so |
| `error` | text: the execution has failed |

Lines `{"id": "1", "delta": "…"}` before the answer stream the output; the time to the first one is measured. What a
program writes to standard error is kept as the log of the execution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.dialects.reading import Pieces, arguments_of, excerpt, json_bytes
from assay.http.events import JSON_LINES
from assay.model import Answer, Request, Span, ToolCall, Usage
from assay.plugin.agent import AgentError, InvalidAnswer

ANSWER_KEYS = frozenset(
    ("id", "output", "usage", "tool_calls", "spans", "usd", "model", "durations", "error", "log", "simulated")
)
_LONGEST_SECONDS = 1e9
_BARE = frozenset(("id", "output"))
NO_USAGE = Usage()
"""Shared, because making one takes as long as the rest of a short answer."""
_USAGE_KEYS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "api_calls")


STREAM_TYPE = JSON_LINES[0]


def request_document(
    serial: str, given: object, params: Mapping[str, object], max_tokens: int | None
) -> dict[str, object]:
    document: dict[str, object] = {"id": serial, "input": given, "params": params}
    if max_tokens is not None:
        document["max_tokens"] = max_tokens
    return document


def request_line(request: Request, serial: str, params: Mapping[str, object]) -> bytes:
    """One line without the newline. Not the case's id but a number of its own, so that late answers are told apart."""
    given = {**params, **request.params} if params or request.params else {}
    document = request_document(serial, request.input, given, request.max_tokens)
    if request.history:
        document["history"] = [dict(turn) for turn in request.history]
    if request.tools:
        document["tools"] = [dict(tool) for tool in request.tools]
    if request.files:
        document["files"] = dict(request.files)
    return json_bytes(document)


def answer_of(document: Mapping[str, Any], pieces: Pieces | None = None) -> Answer:
    """An answer object; what was streamed before it is the output, unless it brings its own."""
    if document.get("error") is not None:
        raise AgentError(str(document["error"]))
    output = document.get("output")
    if output is None and pieces:
        output = pieces.text
    if document.keys() <= _BARE:
        first, times = (pieces.first_seconds, tuple(pieces.seconds)) if pieces else (None, ())
        return Answer(output, (), NO_USAGE, first_token_seconds=first, content_seconds=times)
    calls = tuple(map(_tool_call, _items(document, "tool_calls")))
    usage = usage_of(document.get("usage"))
    usd = document.get("usd")
    if usd is not None and (isinstance(usd, bool) or not isinstance(usd, (int, float))):
        raise InvalidAnswer(f"'usd' must be a number, not {excerpt(repr(usd))}")
    durations = document.get("durations")
    if durations is not None and not isinstance(durations, Mapping):
        raise InvalidAnswer(f"'durations' must be an object, not {excerpt(repr(durations))}")
    return Answer(
        output,
        calls,
        usage,
        None if usd is None else float(usd),
        pieces.first_seconds if pieces else None,
        tuple(map(_span, _items(document, "spans"))),
        _text(document.get("model"), "model"),
        {str(name): seconds_of(value, name) for name, value in (durations or {}).items()},
        is_simulated=document.get("simulated") is True,
        log=_text(document.get("log"), "log"),
        content_seconds=tuple(pieces.seconds) if pieces else (),
    )


def usage_of(usage: object) -> Usage:
    if usage is None:
        return NO_USAGE
    if not isinstance(usage, Mapping):
        raise InvalidAnswer(f"'usage' must be an object, not {excerpt(repr(usage))}")
    return Usage(*(usage.get(key) for key in _USAGE_KEYS))


def _items(document: Mapping[str, Any], key: str) -> list[Any]:
    items = document.get(key)
    if items is None:
        return []
    if not isinstance(items, (list, tuple)):
        raise InvalidAnswer(f"'{key}' must be a list, not {excerpt(repr(items))}")
    return list(items)


def _tool_call(call: Any) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise InvalidAnswer(f"a tool call needs a 'name': {excerpt(repr(call))}")
    return ToolCall(call["name"], arguments_of(call.get("arguments"), call["name"]))


def _span(span: Any) -> Span:
    if isinstance(span, Span):
        return span
    if not isinstance(span, Mapping) or not isinstance(span.get("name"), str):
        raise InvalidAnswer(f"a span needs 'name', 'kind', 'start' and 'seconds': {excerpt(repr(span))}")
    kind = _text(span.get("kind"), "kind of a span") or "agent"
    return Span(
        span["name"],
        kind,
        seconds_of(span.get("start", 0.0), "start"),
        seconds_of(span.get("seconds"), "seconds"),
        _parent_of(span.get("parent")),
        _attributes_of(span.get("attributes")),
    )


def _parent_of(place: object) -> int | None:
    if place is not None and (isinstance(place, bool) or not isinstance(place, int) or place < 0):
        raise InvalidAnswer(f"the parent of a span is the place of another one, not {excerpt(repr(place))}")
    return place


def _attributes_of(attributes: object) -> dict[str, object]:
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise InvalidAnswer(f"the attributes of a span must be an object, not {excerpt(repr(attributes))}")
    return dict(attributes)


def seconds_of(value: object, name: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidAnswer(f"'{name}' must be a number of seconds, not {excerpt(repr(value))}")
    if not 0 <= value < _LONGEST_SECONDS:
        raise InvalidAnswer(f"'{name}' must be from 0 to {_LONGEST_SECONDS:g} seconds, not {value!r}")
    return float(value)


def _text(value: object, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidAnswer(f"the {name} must be text, not {excerpt(repr(value))}")
    return value
