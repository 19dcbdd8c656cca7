"""What is said to a model: text, or a list of messages; and what a virtual user says in a session, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One request of a session. Text that is only known by its length (`tokens`) is made when it is due."""

    prompt: object = None
    """Text, or messages; None where only the number of tokens is known."""
    tokens: int | None = None
    max_tokens: int | None = None
    """The most tokens of the answer, where the turn says so itself."""
    delay: float | None = None
    """Seconds after the last answer; None leaves it to the think time of the load."""
    at: float = 0.0
    """Seconds after the start of the session before which it is not due."""


@dataclass(frozen=True, slots=True)
class UserSession:
    """What one virtual user says, turn by turn; a single request is a session of one turn."""

    turns: tuple[SessionTurn, ...]


def are_conversations(sessions: tuple[UserSession, ...]) -> bool:
    """Whether any of them has more than one turn."""
    return any(len(session.turns) > 1 for session in sessions)
