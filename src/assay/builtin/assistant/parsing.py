"""Reads structured answers: finds JSON in a text, completes one whose end is missing, and checks it against a schema.

The schema is a JSON schema with objects, arrays, enumerations and plain types, which is what frameworks for agents send to
models. `jsonschema` would know more of it and is an extra; a component of the core has to work without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
    "number": (int, float), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_CLOSERS = {"{": "}", "[": "]"}


class JsonParser:
    """Extracts, repairs and validates."""

    def parse(self, text: str, schema: Mapping[str, Any]) -> Any:
        found = extract_json(text)
        try:
            value = json.loads(found)
        except json.JSONDecodeError:
            value = json.loads(complete_json(found))
        if problem := find_problem(value, schema):
            raise ValueError(problem)
        return value


def extract_json(text: str) -> str:
    """The JSON of a text: what is in its first code block, else all from the first bracket on.

    >>> extract_json('Sure! ```json\\n{"a": 1}\\n``` Anything else?')
    '{"a": 1}'
    """
    if match := _FENCE.search(text):
        return match[1].strip()
    start = min((place for mark in "{[" if (place := text.find(mark)) >= 0), default=-1)
    if start < 0:
        raise ValueError("there is no JSON in the text")
    try:
        _, end = json.JSONDecoder().raw_decode(text[start:])
        return text[start : start + end]
    except json.JSONDecodeError:
        return text[start:].strip()


def complete_json(text: str) -> str:
    """JSON whose end is missing, up to its last complete value, with the brackets that are open there closed.

    An item that was cut is left out and never guessed: half a number is a different number. An object without a complete value
    is left out as well.

    >>> complete_json('{"id": 7, "tags": ["a", "b"], "note": "cut o')
    '{"id": 7, "tags": ["a", "b"]}'
    """
    open_brackets: list[str] = []
    safe, closers = 0, ""
    in_text = is_escaped = False
    for place, character in enumerate(text):
        if in_text:
            in_text = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            in_text = True
        elif character in "{[":
            open_brackets.append(_CLOSERS[character])
            if character == "[":
                safe, closers = place + 1, "".join(reversed(open_brackets))
        elif character in "}]":
            if not open_brackets or open_brackets.pop() != character:
                raise ValueError("the brackets do not match")
            safe, closers = place + 1, "".join(reversed(open_brackets))
        elif character == ",":
            safe, closers = place, "".join(reversed(open_brackets))
    return text[:safe] + closers


def find_problem(value: Any, schema: Mapping[str, Any], place: str = "value") -> str | None:
    """What is wrong with a value under a schema, the first of it; None where it is valid."""
    kind = schema.get("type")
    if kind is not None:
        is_right = isinstance(value, _TYPES[kind]) and not (isinstance(value, bool) and kind != "boolean")
        if not is_right:
            return f"{place} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} is none of {schema['enum']}"
    if isinstance(value, dict):
        if missing := [name for name in schema.get("required", ()) if name not in value]:
            return f"{place} lacks '{missing[0]}'"
        inner = [(name, known) for name, known in schema.get("properties", {}).items() if name in value]
        problems = (find_problem(value[name], known, f"{place}.{name}") for name, known in inner)
    else:
        items = value if isinstance(value, list) and "items" in schema else []
        problems = (find_problem(item, schema["items"], f"{place}[{n}]") for n, item in enumerate(items))
    return next((problem for problem in problems if problem), None)
