"""A question in the form that all dialects share, its answer, and helpers to read requests.

A dialect turns a request into a `SimQuestion`, `Writer` writes the `SimReply`, and both travel in a `SimTurn` to the dialect, which
writes the bytes. A word counts as a token.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


class BadAsk(ValueError):
    """The request is JSON but not a question."""


@dataclass(slots=True)
class SimQuestion:
    """What a client asks, whatever the dialect."""

    model: str
    prompt: str
    """What the user said last."""
    max_tokens: int | None = None
    is_streamed: bool = False
    may_call: bool = False
    """Tools are on offer, and none has answered yet."""
    includes_usage: bool = False
    seed: int | None = None
    keep_alive: float | None = None
    """Seconds that the model stays loaded; None where the dialect does not load."""
    num_ctx: int | None = None
    num_gpu: int | None = None
    """With `num_ctx`, how the model is to be loaded: context and layers on the GPU; None keeps it as it is."""
    texts: tuple[str, ...] = ()
    """All that the model reads, in its order."""
    input_tokens: int = field(init=False)
    is_embedding: bool = False
    """Nothing is said in return: the text is only read."""
    is_empty: bool = False
    """Nothing is asked: the model is only to be loaded or unloaded."""

    def __post_init__(self) -> None:
        self.input_tokens = words(*self.texts)


@dataclass(frozen=True, slots=True)
class SimToolCall:
    """A call that the simulated model makes because its prompt tells it to (see `writer`)."""

    name: str
    arguments: Mapping[str, object]

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(slots=True)
class SimReply:
    """What the simulated model says: text in tokens, or calls of tools."""

    tokens: list[str]
    calls: tuple[SimToolCall, ...] = ()
    is_cut: bool = False
    """The limit of tokens ended it."""

    @property
    def text(self) -> str:
        return "".join(self.tokens)

    @property
    def steps(self) -> int:
        """How many times something is sent: tokens, or whole calls."""
        return len(self.calls) or len(self.tokens)

    @property
    def output_tokens(self) -> int:
        """Words of the text; a call counts its name as one and its arguments by their words."""
        if not self.calls:
            return len(self.tokens)
        return sum(1 + len(call.arguments_text.split()) for call in self.calls)


@dataclass(slots=True)
class SimTurn:
    """A question under way: who asked what, the answer, and the seconds that its parts take."""

    ask: SimQuestion
    reply: SimReply
    number: int
    created: float
    """Seconds since the epoch."""
    cached: int = 0
    """Input tokens that were in the prompt cache."""
    queued: float = 0.0
    loading: float = 0.0
    reading: float = 0.0
    writing: float = 0.0


def text_of(content: object) -> str:
    """A message's content: text, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            text_of(part.get("text", "") if isinstance(part, dict) else part) for part in content
        )
    if content is None:
        return ""
    raise BadAsk("'content' is neither text nor a list of parts.")


def whole_number(document: Mapping[str, object], *names: str) -> int | None:
    """The first of these that is given; it must be positive."""
    for name in names:
        value = document.get(name)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadAsk(f"'{name}' is not a whole number above 0.")
            return value
    return None


def flag(document: Mapping[str, object], name: str, default: bool = False) -> bool:
    """A switch; null means that it was not given. A client that sends "true" as text has a mistake, and is told."""
    value = document.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadAsk(f"'{name}' is neither true nor false.")
    return default if value is None else value


def seed_in(document: Mapping[str, object]) -> int | None:
    """The request's own seed, which makes its answer the same however often it is asked."""
    value = document.get("seed")
    return value if isinstance(value, int) else None


def messages_in(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The messages of a conversation; each has a role, or the client is told."""
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadAsk("'messages' is not a list with at least one message.")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise BadAsk("Every message is a mapping with a 'role' and a 'content'.")
    return messages


def last_from_user(messages: list[Mapping[str, object]]) -> str:
    """The question that is answered: what came before it is context, and system prompts ask nothing."""
    from_user = [message for message in messages if message["role"] == "user"]
    return text_of(from_user[-1].get("content")) if from_user else ""


def words(*texts: str) -> int:
    """Tokens of the simulated model: a word is one, so that anybody can check a count by hand."""
    return sum(len(text.split()) for text in texts)
