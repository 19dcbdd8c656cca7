"""How much of what an agent says is judged and stored: every limit, in one place.

Scorers judge an answer whole (`copy_whole`); what is stored afterwards is shortened (`shorten`, `limit_execution`). A value
that was shortened is marked in its text and noted under `SHORTENED` in the detail of its execution, so that the part
is not taken for the whole and stored outputs are judged again only where they are complete. docs/suites.md lists the limits
for users.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.model import Execution, Span
from assay.plugin.outcome import (
    MAX_OUTPUT_CHARACTERS,
    MAX_OUTPUT_DEPTH,
    Outcome,
    is_scalar,
    mark_shortened,
    plain,
    writable,
)

JUDGED_CHARACTERS = 10_000_000
"""An answer up to this size is judged whole; a larger one is invalid. A structure counts its texts and items."""
STORED_CHARACTERS = MAX_OUTPUT_CHARACTERS
"""Maximum characters of one output, and of all arguments of the tool calls of one execution."""
ERROR_CHARACTERS = 10_000
LOG_CHARACTERS = 20_000
NAME_CHARACTERS = 500
"""Names of models, tools and spans, and each text among `applied` settings."""
ITEMS = 1_000
"""Spans, tool calls, attempts and earlier turns of one execution, each."""
ATTRIBUTES = 20
"""Maximum attributes of one span."""
RETURNED_CHARACTERS = 1_000_000
"""All that an experiment returned beside numbers in one execution."""

SHORTENED = "shortened"
"""Key of `Execution.detail`: what was shortened when it was stored, to how much there was of it."""
_JUDGED_FROM = ("output", "turns", "tool_calls")


def store_span(span: Span) -> list[Any]:
    """Name, kind, start, seconds and, where there is more, a mapping with its parent and its attributes."""
    more = {} if span.parent is None else {"parent": span.parent}
    if span.attributes:
        noted: dict[str, int] = {}
        more |= {limit_name(str(key)): shorten(value, noted, "spans", NAME_CHARACTERS)
                 for key, value in list(span.attributes.items())[:ATTRIBUTES]}  # fmt: skip
    return [limit_name(span.name), limit_name(span.kind), span.start, span.seconds, *([more] if more else ())]


class TooLong(Exception):
    """The answer is larger than what scorers judge."""


def copy_whole(value: object) -> Any:
    """The value as JSON can hold it, with nothing left out, as scorers judge it; raises TooLong."""
    left = JUDGED_CHARACTERS

    def copy(part: Any, depth: int) -> Any:
        nonlocal left
        left -= len(part) if isinstance(part, str) else 1
        if left < 0:
            raise TooLong(f"the answer is larger than {JUDGED_CHARACTERS:,} characters")
        if isinstance(part, str):
            return writable(str.__str__(part))
        if depth and isinstance(part, Mapping):
            return {copy(str(key), 0): copy(item, depth - 1) for key, item in part.items()}
        if depth and isinstance(part, (list, tuple, set, frozenset)):
            return [copy(item, depth - 1) for item in part]
        return plain(part) if is_scalar(part) else plain(part, 0)

    return copy(value, MAX_OUTPUT_DEPTH)


def shorten(value: object, shortened: dict[str, int], name: str, most: int = STORED_CHARACTERS) -> Any:
    """What is stored of a value; one that is too long becomes the beginning of its text, and `shortened` notes its size."""
    if value is None or (isinstance(value, str) and len(value) <= most):
        return plain(value)
    try:
        complete = copy_whole(value)
    except TooLong:
        complete = plain(value)
    text = complete if isinstance(complete, str) else json.dumps(complete, ensure_ascii=False)
    if len(text) <= most:
        return complete
    shortened[name] = len(text)
    return mark_shortened(writable(text[:most]), len(text))


def limit_returned(outcome: Outcome) -> None:
    """Shorten, in place, what an experiment returned beside numbers."""
    returned = outcome.output or {}
    # Most experiments return a few short texts at most; those pass without being copied.
    if len(returned) <= ITEMS and all(
        isinstance(v, str) and len(v) < NAME_CHARACTERS for v in returned.values()
    ):
        return
    noted: dict[str, int] = {}
    limited = shorten(returned, noted, "output", RETURNED_CHARACTERS)
    if noted:
        outcome.output = {SHORTENED: limited}
        outcome.detail = {**(outcome.detail or {}), SHORTENED: noted}


def shorten_list(values: list[Any], shortened: dict[str, int], name: str) -> list[Any]:
    """The first items; `shortened` notes how many there were."""
    if len(values) > ITEMS:
        shortened[name] = len(values)
    return values[:ITEMS]


def is_judgeable(execution: Execution) -> bool:
    """Whether all that scorers look at is stored, so that they can judge it again."""
    noted = (execution.detail or {}).get(SHORTENED)
    return not (isinstance(noted, Mapping) and any(name in noted for name in _JUDGED_FROM))


def limit_execution(execution: Execution) -> Execution:
    """The execution with every text within its limit."""
    # The usual execution of code has no text at all: it is not copied.
    if not (execution.error or execution.log or execution.applied or execution.detail):
        return execution
    return replace(
        execution,
        error=_limit_text(execution.error, ERROR_CHARACTERS),
        log=_limit_text(execution.log, LOG_CHARACTERS),
        applied=_limit_names(execution.applied),
    )


def limit_reason(reason: str) -> str:
    """A scorer's reason within the limit; it may quote the whole answer that it judged."""
    return writable(_limit_text(reason, ERROR_CHARACTERS) or "")


def _limit_text(text: str | None, most: int) -> str | None:
    if text is None or len(text) <= most:
        return text
    return mark_shortened(text[:most], len(text))


def _limit_names(applied: Mapping[str, object] | None) -> Mapping[str, object] | None:
    if not applied:
        return applied
    return {
        limit_name(name): limit_name(value) if isinstance(value, str) else value
        for name, value in list(applied.items())[:ITEMS]
    }


def limit_name(name: object) -> str:
    text = name if isinstance(name, str) else str(plain(name))
    return writable(text if len(text) <= NAME_CHARACTERS else f"{text[:NAME_CHARACTERS]}…")
