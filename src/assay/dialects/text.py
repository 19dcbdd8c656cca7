"""The text in a JSON document of any dialect: a whole answer, or one event or line of a stream.

Load workers import this module and `usage`, and no other of the dialects: both have to stay small. The modules of the single
dialects read answers strictly and say what is wrong with one; a load only wants what was said, from whatever server it came,
so here the shape of a document decides, and one without text gives none.
"""

from __future__ import annotations

import json
from typing import Any


def text_in(document: Any) -> str:
    """What a document says; "" where it says nothing, as one with usage only.

    Each reader knows the documents of one API and returns None for those of others. The order matters: a `delta` is a mapping
    in Anthropic's events and text in our own, and `output` is a list in OpenAI's responses and anything at all in ours.
    """
    if not isinstance(document, dict):
        return str(document)
    for read in (_read_response, _read_choices, _read_message, _read_content_blocks):
        if (text := read(document)) is not None:
            return text
    # Ollama's `response`, and what answers over plain HTTP call their text.
    for name in ("response", "output", "text", "delta", "content"):
        if isinstance(document.get(name), str):
            return str(document[name])
    return plain_text(document["output"]) if document.get("output") is not None else ""


def plain_text(value: Any) -> str:
    """An output that need not be text, in the form in which scorers get it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_response(document: dict[str, Any]) -> str | None:
    """OpenAI's Responses API: what an event adds, or all of a whole answer. Other events repeat what deltas have said."""
    if not (str(document.get("type")).startswith("response.") or document.get("object") == "response"):
        return None
    if "type" in document:
        return str(document.get("delta") or "") if document["type"] == "response.output_text.delta" else ""
    parts = [part for item in document.get("output") or () for part in item.get("content") or ()]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "output_text")


def _read_choices(document: dict[str, Any]) -> str | None:
    """OpenAI's chat and completions, whole or streamed; of several choices the first."""
    for choice in document.get("choices") or ():
        part = choice.get("delta") or choice.get("message") or choice
        return str(part.get("content") or part.get("text") or "")
    return None


def _read_message(document: dict[str, Any]) -> str | None:
    """Ollama's chat, and the events of Anthropic; a message that only begins has an empty list for its content."""
    for name in ("message", "delta", "content_block"):
        part = document.get(name)
        if isinstance(part, dict):
            return str(part.get("content") or part.get("text") or "") if part.get("content") != [] else ""
    return None


def _read_content_blocks(document: dict[str, Any]) -> str | None:
    """A whole message of Anthropic."""
    content = document.get("content")
    if not isinstance(content, list):
        return None
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
