"""Takes the text out of an answer, in whatever dialect and framing it came.

Workers keep answers as they arrived, because reading them would take time from the load. When the load is over, `quality`
and the stress bench read the text here and hand it to scorers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from assay.plugin.json_path import value_at

LONGEST_JUDGED = 2**20
"""Characters of an answer that is scored; a part of a longer one would be judged wrongly."""
TOO_LONG = "\ud800 too long to be judged"
"""Stands for such an answer; half a character as in it is in no text that was decoded."""


def judgeable(output: object) -> str:
    """An output of an agent in the form in which workers hand answers on; `text_of` reads it again.

    >>> text_of(judgeable("yes")), text_of(judgeable({"a": [1]}))
    ('yes', '{"a": [1]}')
    """
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    return TOO_LONG if len(text) > LONGEST_JUDGED else json.dumps({"output": text})


def text_of(payload: str, output: str | None = None) -> str:
    """What an answer says, of whatever dialect and whether it was streamed or not; one without any is plain text.

    With `output`, what is there in a document, as in "choices.0.text".

    >>> text_of('data: {"choices":[{"delta":{"content":"4"}}]}\\n\\ndata: {"choices":[{"delta":{"content":"2"}}]}\\n\\ndata: [DONE]\\n')
    '42'
    >>> text_of('{"answer": {"text": "42"}}', "answer.text"), text_of("Paris\\n")
    ('42', 'Paris')
    """
    documents = list(_documents(payload))
    if not documents and not payload.startswith(("data:", "event:", ":", "{")):
        return payload.strip()
    if output is None:
        return "".join(_text_in(document) for document in documents)
    texts = []
    for document in documents:
        # In a stream only some documents have the output.
        with contextlib.suppress(LookupError):
            texts.append(_plain(value_at(document, output)))
    return "".join(texts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _documents(payload: str) -> Iterator[Any]:
    """The JSON documents of an answer: the whole of it, or else each line of a stream that holds one."""
    try:
        yield json.loads(payload)
        return
    except ValueError:
        pass
    for line in payload.splitlines():
        text = line.removeprefix("data:").strip()
        if text.startswith("{"):
            try:
                yield json.loads(text)
            except ValueError:
                continue


def _text_in(document: Any) -> str:
    """The text in a document of OpenAI, Anthropic, Ollama or plain HTTP; "" where it has none, such as one with usage only."""
    if not isinstance(document, dict):
        return str(document)
    if str(document.get("type")).startswith("response.") or document.get("object") == "response":
        return _text_of_response(document)
    for choice in document.get("choices") or ():
        part = choice.get("delta") or choice.get("message") or choice
        return str(part.get("content") or part.get("text") or "")
    for name in ("message", "delta", "content_block"):
        part = document.get(name)
        if isinstance(part, dict):
            return str(part.get("content") or part.get("text") or "") if part.get("content") != [] else ""
    content = document.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    for name in ("response", "output", "text", "delta", "content"):
        if isinstance(document.get(name), str):
            return str(document[name])
    return _plain(document["output"]) if document.get("output") is not None else ""


def _text_of_response(document: dict[str, Any]) -> str:
    """The text of a document of OpenAI's Responses API: what an event adds, or all of a whole answer."""
    if "type" in document:
        return str(document.get("delta") or "") if document["type"] == "response.output_text.delta" else ""
    parts = [part for item in document.get("output") or () for part in item.get("content") or ()]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "output_text")
