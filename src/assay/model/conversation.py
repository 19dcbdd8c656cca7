"""What is said to a model: text, or a list of messages."""

from __future__ import annotations

import json
from collections.abc import Mapping


def as_text(content: object) -> str:
    """
    >>> as_text("hello"), as_text({"city": "Köln"})
    ('hello', '{"city": "Köln"}')
    """
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def is_conversation(value: object) -> bool:
    """
    >>> is_conversation([{"role": "user", "content": "hello"}]), is_conversation(["hello"]), is_conversation([])
    (True, False, False)
    """
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(message, Mapping) and "role" in message for message in value)
