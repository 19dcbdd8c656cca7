"""A place in a JSON document, as in "choices.0.text"."""

from __future__ import annotations

from typing import Any


def value_at(document: Any, place: str) -> Any:
    """LookupError where there is no such place.

    >>> value_at({"choices": [{"text": "4"}]}, "choices.0.text")
    '4'
    """
    for step in place.split("."):
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise LookupError(place) from None
    return document
