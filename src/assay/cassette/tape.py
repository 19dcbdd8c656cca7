"""The cassette file: one exchange a line as JSON, readable and diffable, with nothing secret in it.

A line is {"assay_cassette": VERSION, "request": {"method", "path", "body"}, "response": {"status", "headers", "pieces"}}. A piece is
[seconds after the request, text]: what one read of the connection brought, so that a replay can keep the pace of a stream.
`"cut": true` marks an answer that broke off, and `"encoding": "base64"` one that is not text.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.files import UnreadableFile, read_bytes

VERSION = 1
VERSION_WITH_BINARY = 2
"""The version of lines that hold an answer in base64: programs that read only version 1 have to refuse them."""
_HALF = re.compile("[\ud800-\udfff]")
KEPT_HEADERS = ("content-type", "retry-after", "x-assay-simulated")
"""Headers of answers that are recorded: those that change what a client does."""


class CassetteError(AssayError):
    """A cassette that cannot be read, or does not have what was asked of it."""


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request and its answer; `pieces` are what arrived and when, in seconds after the request."""

    method: str
    path: str
    body: Any
    status: int
    headers: Mapping[str, str]
    pieces: tuple[tuple[float, str], ...]
    is_cut: bool = False
    """Whether the provider or the program hung up before the answer was over."""
    is_binary: bool = False
    """Whether the answer is not text, as audio: each character of its pieces is one byte then."""

    @property
    def prompt(self) -> str:
        return prompt_of(self.body)

    @property
    def raw_pieces(self) -> list[tuple[float, bytes]]:
        """The pieces as the provider sent them."""
        return [(at, text.encode("latin-1" if self.is_binary else "utf-8")) for at, text in self.pieces]


def prompt_of(body: Any) -> str:
    """The words of a request, whatever its shape: what people recognise it by."""
    if not isinstance(body, Mapping):
        return "" if body is None else str(body)
    if isinstance(messages := body.get("messages"), list):
        texts: list[str] = []
        for message in messages:
            content = message.get("content") if isinstance(message, Mapping) else message
            if isinstance(content, list):
                content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
            texts.append(str(content or ""))
        return "\n".join(texts)
    return str(body.get("prompt") or body.get("input") or "")


def line_of(exchange: RecordedExchange) -> str:
    """A line of a cassette; the exchange has to be redacted already."""
    # A microsecond is finer than any replay keeps, and digits beyond it make every recording a larger diff.
    pieces = [(round(at, 6), text) for at, text in exchange.pieces]
    if exchange.is_binary:
        pieces = [(at, base64.b64encode(text.encode("latin-1")).decode()) for at, text in pieces]
    document = {
        "assay_cassette": VERSION_WITH_BINARY if exchange.is_binary else VERSION,
        "request": {"method": exchange.method, "path": exchange.path, "body": exchange.body},
        "response": {
            "status": exchange.status,
            "headers": dict(exchange.headers),
            **({"encoding": "base64"} if exchange.is_binary else {}),
            "pieces": pieces,
            **({"cut": True} if exchange.is_cut else {}),
        },
    }
    line = json.dumps(document, ensure_ascii=False)
    # JSON can name half a character, which no file can hold as it is.
    return (json.dumps(document) if _HALF.search(line) else line) + "\n"


def read_tape(path: Path) -> list[RecordedExchange]:
    """Every exchange of a cassette; CassetteError names each damaged line."""
    try:
        # Not splitlines(): answers may hold characters that count as line ends there.
        lines = read_bytes(path).removesuffix(b"\n").split(b"\n")
    except UnreadableFile as error:
        hint = (
            f" Make one: assay record --cassette {shlex.quote(str(path))} -- COMMAND"
            if not path.exists()
            else ""
        )
        raise CassetteError(f"The cassette {error}{hint}") from None
    if lines == [b""]:
        raise CassetteError(f"The cassette '{path}' is empty.")
    # All damaged lines are named at once, as mistakes in a spec are.
    exchanges, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            exchanges.append(_exchange(line.decode()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            damaged.append(f"{path}:{number}: is not a recorded exchange: {_format_error(error)}.")
    if damaged:
        raise CassetteError("\n".join(damaged))
    return exchanges


def _format_error(error: Exception) -> str:
    """What is wrong with a line, in words that do not depend on how it is parsed."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, UnicodeDecodeError):
        return f"its byte {error.start} is not UTF-8"
    is_ours_or_json = type(error) in (ValueError, json.JSONDecodeError)
    return str(error) if is_ours_or_json else "it has a different shape"


def read_pace(delays: object) -> float:
    """What the recorded delays are multiplied by: `original` is 1, `none` is 0."""
    named = {"original": 1.0, "none": 0.0}
    try:
        pace = named[delays] if isinstance(delays, str) and delays in named else float(str(delays))
    except ValueError:
        pace = -1.0
    if not 0 <= pace <= 1000:
        raise CassetteError(f"'{delays}' is neither original, none nor a number from 0 to 1000.")
    return pace


_DEEPEST = 200
"""Levels of a request's body; more cannot be compared without running out of stack."""


def parse_json(text: str | bytes) -> Any:
    """The document; ValueError where it is none, or so deep that a cassette cannot hold it."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _depth(document) > _DEEPEST:
        raise ValueError(f"nested deeper than {_DEEPEST} levels")
    return document


def _depth(value: Any) -> int:
    """The levels of nested objects and lists, up to one more than is allowed; level by level, so without recursion."""
    deepest, level = 0, [value]
    while level and deepest <= _DEEPEST:
        deepest += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return deepest


def _exchange(line: str) -> RecordedExchange:
    """One line. A cassette may come from anywhere, so its depth is bounded, as `Player` compares bodies recursively."""
    document = json.loads(line)
    if document["assay_cassette"] not in (VERSION, VERSION_WITH_BINARY):
        raise ValueError(
            f"it has version {document['assay_cassette']}, but this Assay reads versions {VERSION} and {VERSION_WITH_BINARY}"
        )
    request, response = document["request"], document["response"]
    if not isinstance(request["method"], str) or not isinstance(request["path"], str):
        raise ValueError("'method' and 'path' must be text")
    if _depth(request["body"]) > _DEEPEST:
        raise ValueError(f"its body is nested deeper than {_DEEPEST} levels")
    pieces = tuple((float(at), str(text)) for at, text in response["pieces"])
    is_binary = response.get("encoding") == "base64"
    if is_binary:
        pieces = tuple((at, base64.b64decode(text, validate=True).decode("latin-1")) for at, text in pieces)
    return RecordedExchange(
        request["method"],
        request["path"],
        request["body"],
        int(response["status"]),
        dict(response["headers"]),
        pieces,
        bool(response.get("cut", False)),
        is_binary,
    )
