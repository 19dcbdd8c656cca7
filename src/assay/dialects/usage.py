"""Tokens as servers count them: the names in each dialect, and a search for them in bytes.

Load workers import this module and `text`, and no other of the dialects: both have to stay small.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple


class UsageKeys(NamedTuple):
    """Under which names a dialect counts tokens."""

    input: str
    output: str
    cached: str = ""
    """Input tokens that came from a cache."""
    written: str = ""
    """Input tokens that went into a cache; where a dialect counts these, both are beside the input, not within."""


OPENAI = UsageKeys("prompt_tokens", "completion_tokens", "cached_tokens")
ANTHROPIC = UsageKeys(
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
)
OLLAMA = UsageKeys("prompt_eval_count", "eval_count")


def _quote(*names: str) -> tuple[bytes, ...]:
    return tuple(f'"{name}":'.encode() for name in names)


_OUTPUT_TOKENS = _quote(OPENAI.output, ANTHROPIC.output, OLLAMA.output)
_INPUT_TOKENS = _quote(OPENAI.input, ANTHROPIC.input, OLLAMA.input)
_CACHED_TOKENS = _quote(OPENAI.cached, ANTHROPIC.cached, "prompt_cache_hit_tokens", "cache_n")
"""The last two are DeepSeek's, and llama.cpp's where it tells no usage."""
_APART = _quote(ANTHROPIC.cached, ANTHROPIC.written)
MOST_PLAUSIBLE_TOKENS = 10_000_000
_NUMBER = re.compile(rb"\s*(\d+)")
TokenCounts = tuple[int | None, int | None, int | None]
"""Output tokens, input tokens, and those of the input that were in a cache, as a server counted them; None where it does not tell."""


def usage_in(text: bytes) -> TokenCounts:
    """What the answer of a model's server tells, in one piece or at the end of a stream.

    >>> usage_in(b'"usage":{"input_tokens":3,"cache_read_input_tokens":7,"output_tokens":5}')
    (5, 10, 7)
    """
    output = _last_number(text, _OUTPUT_TOKENS)
    for name in _INPUT_TOKENS:
        place = text.rfind(name)
        if place >= 0:
            break
    else:
        return output, None, None
    found = _NUMBER.match(text, place + len(name))
    given = int(found[1]) if found else None
    if given is None or given > MOST_PLAUSIBLE_TOKENS:
        return output, None, None
    # All servers tell what was cached after the whole, and most answers need no further look.
    if text.find(b"cache", place) < 0:
        return output, given, None
    rest = text[place:]
    if _APART[0] in rest:
        given += sum(_last_number(rest, (name,)) or 0 for name in _APART)
    return output, given, _last_number(rest, _CACHED_TOKENS)


def usage_of_document(text: bytes) -> TokenCounts:
    """Read the usage from an answer over plain HTTP.

    Only a `usage` object in JSON counts, whatever else the answer contains.
    """
    if b'"usage"' not in text:
        return None, None, None
    try:
        document = json.loads(text.decode().strip())
    except (ValueError, RecursionError):
        return None, None, None
    usage = document.get("usage") if isinstance(document, dict) else None
    return usage_in(json.dumps(usage).encode()) if isinstance(usage, dict) else (None, None, None)


def _last_number(text: bytes, names: Sequence[bytes]) -> int | None:
    """The number after the last of these names."""
    for name in names:
        place = text.rfind(name)
        if place >= 0 and (found := _NUMBER.match(text, place + len(name))):
            number = int(found[1])
            return number if number <= MOST_PLAUSIBLE_TOKENS else None
    return None
