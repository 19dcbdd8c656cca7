"""What reading answers has in common in all dialects: JSON, text that comes in pieces, calls of tools.

Whatever a server sends that is not as its API says raises InvalidAnswer, with an excerpt of it: the agent has answered, but not
validly. Errors that a server reports raise AgentError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from assay.model import ToolCall
from assay.model.redaction import redact
from assay.plugin.agent import InvalidAnswer

_EXCERPT = 200

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def json_bytes(document: object) -> bytes:
    """A document as JSON in UTF-8; lone surrogates, which UTF-8 cannot express, become question marks."""
    return _encode(document).encode(errors="replace")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def parse_json(text: str) -> Any:
    """The value of a JSON text; InvalidAnswer shows the beginning of one that is none."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        raise InvalidAnswer(f"this is not JSON: {excerpt(text)}") from None


def decode_utf8(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        # Redacted before it is cut: half of a secret would not be recognised.
        around: bytes = redact(line[: error.start])[-20:] + line[error.start : error.start + 1]
        raise InvalidAnswer(f"byte {error.start} of the answer is not UTF-8: {around!r}") from None


def excerpt(text: str, size: int = _EXCERPT) -> str:
    """
    >>> excerpt("abcdef", 3)
    "'abc…' (6 characters)"
    """
    return repr(text) if len(text) <= size else f"{text[:size] + '…'!r} ({len(text):,} characters)"


class Pieces:
    """A streamed text, and when each piece of content came, in seconds after `started`."""

    __slots__ = ("_started", "_texts", "seconds")

    def __init__(self, started: float) -> None:
        self._started = started
        self._texts: list[str] = []
        self.seconds: list[float] = []

    @property
    def first_seconds(self) -> float | None:
        return self.seconds[0] if self.seconds else None

    def add(self, text: object, at: float) -> None:
        if not isinstance(text, str):
            raise InvalidAnswer(f"a streamed piece must be text, not {type(text).__name__}")
        if text:
            self.seconds.append(at - self._started)
        self._texts.append(text)

    def began(self, at: float) -> None:
        """Content came that is not text, such as a call."""
        self.seconds.append(at - self._started)

    def __bool__(self) -> bool:
        return bool(self._texts)

    @property
    def text(self) -> str:
        return "".join(self._texts)


def arguments_of(arguments: object, tool: str) -> Mapping[str, object]:
    """The arguments of a tool call, which servers send as an object or as its JSON text."""
    if isinstance(arguments, str):
        try:
            arguments = _decode(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            raise InvalidAnswer(
                f"the arguments for tool '{tool}' are not JSON: {excerpt(str(arguments))}"
            ) from None
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise InvalidAnswer(
            f"the arguments for tool '{tool}' must be an object, not {excerpt(repr(arguments))}"
        )
    return arguments


class PartialToolCall:
    """A tool call whose name comes first and whose arguments come bit by bit."""

    def __init__(self) -> None:
        self._name = ""
        self._arguments: list[str] = []

    def take(self, name: object, arguments: object) -> None:
        self._name = self._name or str(name or "")
        if arguments:
            self._arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def build(self) -> ToolCall:
        return ToolCall(self._name, arguments_of("".join(self._arguments), self._name))


def format_server_error(error: object) -> str:
    """The message of an error object, or all of it."""
    message = error.get("message") if isinstance(error, Mapping) else error
    return excerpt(str(message or error))
