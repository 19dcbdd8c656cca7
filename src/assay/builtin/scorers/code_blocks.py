"""Blocks of code and JSON values within prose, as language models write them.

Scorers of code and of JSON use it to judge what the model meant and not how much it wrote around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MOST_TRIES = 200
_DECODER = json.JSONDecoder()
NOT_JSON = object()
"""Stands for the absence of a value: None is JSON's null."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block; `language` is the word behind the fence in lower case, empty where there is none."""

    language: str
    content: str


def find_code_blocks(text: str) -> list[CodeBlock]:
    """Blocks between lines of three backticks or tildes; one that is never closed goes to the end."""
    blocks: list[CodeBlock] = []
    fence, language = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if fence and bare.startswith(fence) and not bare.strip(fence[0]):
            blocks.append(CodeBlock(language, "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
        elif bare.startswith(("```", "~~~")):
            fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
            language, lines = (bare[len(fence) :].split() or [""])[0].lower(), []
    if fence and lines:
        blocks.append(CodeBlock(language, "\n".join(lines)))
    return blocks


def json_value(output: object) -> Any:
    """The value that an output is or holds: all of it, a fenced block, or the first object or list; else NOT_JSON."""
    if not isinstance(output, str):
        return output
    whole = _parse_json(output)
    if whole is not NOT_JSON:
        return whole
    for block in find_code_blocks(output):
        value = _parse_json(block.content)
        if value is not NOT_JSON:
            return value
    return next(json_values(output), NOT_JSON)


def json_values(text: str) -> Iterator[Any]:
    """Objects and lists within prose, in their order, none of them inside another."""
    place = 0
    for _ in range(_MOST_TRIES):
        places = [found for sign in "{[" if (found := text.find(sign, place)) >= 0]
        if not places:
            return
        place = min(places)
        try:
            value, place = _DECODER.raw_decode(text, place)
            yield value
        except (ValueError, RecursionError):
            place += 1


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOT_JSON
