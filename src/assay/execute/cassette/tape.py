"""The cassette: one exchange a line, readable and diffable, with nothing secret in it."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.files import UnreadableFile, read_bytes
from assay.model.secret import REDACTED, SECRET_FIELD, SECRET_IN_QUERY, SECRET_NAME, in_query

VERSION = 1
KEPT_HEADERS = ("content-type", "retry-after", "x-assay-simulated")
_SHORTEST_SECRET = 8


class CassetteError(AssayError):
    """A cassette that cannot be read, or does not have what was asked of it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer; `pieces` are what arrived and when, in seconds after the request."""

    method: str
    path: str
    body: Any
    status: int
    headers: Mapping[str, str]
    pieces: tuple[tuple[float, str], ...]
    is_cut: bool = False
    """Whether the provider hung up before the answer was over."""

    @property
    def prompt(self) -> str:
        return prompt_of(self.body)


def prompt_of(body: Any) -> str:
    """The words of a request, whatever its shape: what people recognise it by."""
    if not isinstance(body, Mapping):
        return "" if body is None else str(body)
    if isinstance(messages := body.get("messages"), list):
        return "\n".join(_content(message) for message in messages)
    return str(body.get("prompt") or body.get("input") or "")


def _content(message: Any) -> str:
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")


class Redaction:
    """Takes secrets out: fields and query parameters that are named like one, and values that are known to be one."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._secrets: list[str] = []
        for name, value in environment.items():
            if SECRET_NAME.search(name):
                self._learn(value)

    def learn_from(self, headers: Mapping[str, str], path: str = "") -> None:
        """A key that a program sends is a secret, wherever the program has it from: the server may repeat it."""
        for name, value in headers.items():
            if name == "cookie":
                self._learn_all(part.partition("=")[2] for part in value.split("; "))
            elif SECRET_NAME.search(name):
                self._learn_all(value.split())
        self._learn_all(in_query(path))

    def _learn_all(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            self._learn(secret)

    def _learn(self, secret: str) -> None:
        if len(secret) >= _SHORTEST_SECRET and secret not in self._secrets:
            self._secrets = sorted([*self._secrets, secret], key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def path(self, path: str) -> str:
        return SECRET_IN_QUERY.sub(rf"\1{REDACTED}", self.text(path))

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {k: REDACTED if _is_secret(k, v) else self.value(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def pieces(self, pieces: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
        """A secret that was cut in two is found all the same: then everything comes in one piece, the last."""
        clean = [(round(at, 6), self.text(text)) for at, text in pieces]
        whole = self.text("".join(text for _, text in pieces))
        return clean if "".join(text for _, text in clean) == whole else [(clean[-1][0], whole)]


def _is_secret(name: object, value: Any) -> bool:
    """Not the schema of a tool's parameter that is called so."""
    return bool(SECRET_FIELD.match(str(name))) and not isinstance(value, Mapping)


def line_of(exchange: Exchange, redaction: Redaction) -> str:
    document = {
        "assay_cassette": VERSION,
        "request": {
            "method": exchange.method,
            "path": redaction.path(exchange.path),
            "body": redaction.value(exchange.body),
        },
        "response": {
            "status": exchange.status,
            "headers": dict(exchange.headers),
            "pieces": redaction.pieces(exchange.pieces),
            **({"cut": True} if exchange.is_cut else {}),
        },
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def read_tape(path: Path) -> list[Exchange]:
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
    exchanges, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            exchanges.append(_exchange(line.decode()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            damaged.append(f"{path}:{number}: is not a recorded exchange: {_told(error)}.")
    if damaged:
        raise CassetteError("\n".join(damaged))
    return exchanges


def _told(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, UnicodeDecodeError):
        return f"its byte {error.start} is not UTF-8"
    is_ours_or_json = type(error) in (ValueError, json.JSONDecodeError)
    return str(error) if is_ours_or_json else "it has another shape"


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


def _depth(value: Any) -> int:
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


def _exchange(line: str) -> Exchange:
    document = json.loads(line)
    if document["assay_cassette"] != VERSION:
        raise ValueError(f"version {document['assay_cassette']}, this program reads {VERSION}")
    request, response = document["request"], document["response"]
    if not isinstance(request["method"], str) or not isinstance(request["path"], str):
        raise ValueError("'method' and 'path' must be text")
    if _depth(request["body"]) > _DEEPEST:
        raise ValueError(f"its body is nested deeper than {_DEEPEST} levels")
    pieces = tuple((float(at), str(text)) for at, text in response["pieces"])
    return Exchange(
        request["method"],
        request["path"],
        request["body"],
        int(response["status"]),
        dict(response["headers"]),
        pieces,
        bool(response.get("cut", False)),
    )


class Player:
    """Finds the answer to a request.

    Strict: everything must be equal but the running number of a request and the name of its limit of tokens, which has
    an old and a new one; and the n-th time gets the n-th recording. Lenient: the words decide, and the last recording
    may be used again.
    """

    def __init__(
        self, exchanges: Sequence[Exchange], is_lenient: bool = False, redaction: Redaction | None = None
    ) -> None:
        self._exchanges = exchanges
        self._is_lenient = is_lenient
        self._redaction = redaction or Redaction()
        self._sent = Redaction({})
        """Takes out what this program sends as keys."""
        self._alike: dict[str, list[Exchange]] = {}
        for one in exchanges:
            # Cleaned again: what is taken out today may be in a cassette of before.
            key = self._key(one.method, self._redaction.path(one.path), self._redaction.value(one.body))
            self._alike.setdefault(key, []).append(one)
        self._used: Counter[str] = Counter()
        self.misses: list[str] = []

    def learn_from(self, headers: Mapping[str, str], path: str) -> None:
        """What was taken out of a request when it was recorded is then taken out of this one, too."""
        self._sent.learn_from(headers, path)

    def find(self, method: str, path: str, body: Any) -> Exchange | None:
        body, path = self._redaction.value(body), self._redaction.path(path)
        whole = self._key(method, path, body)
        cleaned = self._key(method, self._sent.path(path), self._sent.value(body))
        key = cleaned if cleaned in self._alike else whole
        alike = self._alike.get(key, [])
        turn = self._used[key]
        self._used[key] += 1
        if turn < len(alike):
            return alike[turn]
        if alike and self._is_lenient:
            return alike[-1]
        self.misses.append(self._told(method, path, body, len(alike)))
        return None

    def _key(self, method: str, path: str, body: Any) -> str:
        if self._is_lenient:
            return json.dumps([path.rsplit("/", 1)[-1], " ".join(prompt_of(body).split()).casefold()])
        return json.dumps([method, path, _essence(body)], sort_keys=True)

    def _told(self, method: str, path: str, body: Any, recorded: int) -> str:
        if recorded:
            return f"{method} {path} was recorded {recorded} times and is asked once more: {_short(prompt_of(body))}"
        nearest = max(self._exchanges, key=lambda one: _likeness(one, path, body))
        return (
            f"Nothing is recorded for {method} {path}: {_short(prompt_of(body))} "
            f"The nearest recorded request is {nearest.method} {nearest.path}: {_short(nearest.prompt)} "
            f"{_difference(nearest.body, body)}"
        ).strip()


def _essence(body: Any) -> Any:
    """What is asked, without a running number, and with the older name of what has two."""
    if not isinstance(body, Mapping):
        return body
    kept = {name: value for name, value in body.items() if name != "id"}
    if _NEW_LIMIT in kept and _OLD_LIMIT not in kept:
        kept[_OLD_LIMIT] = kept.pop(_NEW_LIMIT)
    return kept


_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
"""OpenAI renamed it; which of the two a program sends depends on the server that it thinks it talks to."""


def _likeness(exchange: Exchange, path: str, body: Any) -> float:
    same_path = 1.0 if exchange.path == path else 0.0
    return same_path + SequenceMatcher(None, exchange.prompt[:2000], prompt_of(body)[:2000]).ratio()


def _difference(recorded: Any, asked: Any) -> str:
    """Which keys differ, where both are mappings."""
    if not (isinstance(recorded, Mapping) and isinstance(asked, Mapping)):
        return ""
    recorded, asked = _essence(recorded), _essence(asked)
    keys = sorted(k for k in {*recorded, *asked} if recorded.get(k) != asked.get(k))
    return f"They differ in: {', '.join(map(str, keys))}." if keys else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 120 else text[:117] + "…")
