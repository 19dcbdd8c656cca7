"""Tokens as servers count them, in an answer of one piece or at the end of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_OUTPUT_TOKENS = (b'"completion_tokens":', b'"output_tokens":', b'"eval_count":')
_INPUT_TOKENS = (b'"prompt_tokens":', b'"input_tokens":', b'"prompt_eval_count":')
_CACHED_TOKENS = (
    b'"cached_tokens":',
    b'"cache_read_input_tokens":',
    b'"prompt_cache_hit_tokens":',
    b'"cache_n":',
)
"""OpenAI and most servers like it; Anthropic; DeepSeek; llama.cpp without usage."""
_APART = (b'"cache_read_input_tokens":', b'"cache_creation_input_tokens":')
"""Input tokens that Anthropic counts beside `input_tokens`, not within."""
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
    """Of an answer over plain HTTP: only a `usage` object in JSON is taken for one, whatever else it contains."""
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
