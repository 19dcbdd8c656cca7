"""The cassette: one exchange a line, readable and diffable, with nothing secret in it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from assay.errors import AssayError

VERSION = 1
KEPT_HEADERS = ("content-type", "retry-after", "x-assay-simulated")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|AUTH", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r"^(api[_-]?key|authorization|x-api-key|access[_-]?token|password|secret)$", re.IGNORECASE
)
REDACTED = "[redacted]"


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
    """Takes secrets out: values of environment variables that are named like one, and fields that are."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        secrets = [v for k, v in environment.items() if _SECRET_NAME.search(k) and len(v) >= 8]
        self._secrets = sorted(secrets, key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {k: REDACTED if _SECRET_FIELD.match(str(k)) else self.value(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value


def line_of(exchange: Exchange, redaction: Redaction) -> str:
    document = {
        "assay_cassette": VERSION,
        "request": {"method": exchange.method, "path": exchange.path, "body": redaction.value(exchange.body)},
        "response": {
            "status": exchange.status,
            "headers": dict(exchange.headers),
            "pieces": [[round(at, 6), redaction.text(text)] for at, text in exchange.pieces],
        },
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=False) + "\n"


def read_tape(path: Path) -> list[Exchange]:
    """Every exchange of a cassette; CassetteError names each damaged line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise CassetteError(
            f"There is no cassette '{path}'. Make one: assay record --cassette {path} -- COMMAND"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CassetteError(f"The cassette '{path}' cannot be read: {error}") from None
    exchanges, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            exchanges.append(_exchange(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            damaged.append(f"{path}:{number}: is not a recorded exchange: {error!r}")
    if damaged:
        raise CassetteError("\n".join(damaged))
    if not exchanges:
        raise CassetteError(f"The cassette '{path}' is empty.")
    return exchanges


def _exchange(line: str) -> Exchange:
    document = json.loads(line)
    if document["assay_cassette"] != VERSION:
        raise ValueError(f"version {document['assay_cassette']}, this program reads {VERSION}")
    request, response = document["request"], document["response"]
    pieces = tuple((float(at), str(text)) for at, text in response["pieces"])
    return Exchange(
        request["method"],
        request["path"],
        request["body"],
        int(response["status"]),
        dict(response["headers"]),
        pieces,
    )


@dataclass(slots=True)
class Player:
    """Finds the answer to a request. Strict: everything must be equal, and the n-th time gets the n-th recording.
    Lenient: the words decide, and a recording may be used again."""

    exchanges: list[Exchange]
    is_lenient: bool = False
    redaction: Redaction = field(default_factory=Redaction)
    misses: list[str] = field(default_factory=list)
    _used: dict[str, int] = field(default_factory=dict)

    def find(self, method: str, path: str, body: Any) -> Exchange | None:
        body = self.redaction.value(body)
        key = self._key(method, path, body)
        alike = [one for one in self.exchanges if self._key(one.method, one.path, one.body) == key]
        turn = self._used.get(key, 0)
        self._used[key] = turn + 1
        if turn < len(alike):
            return alike[turn]
        if alike and self.is_lenient:
            return alike[-1]
        self.misses.append(self._told(method, path, body, len(alike)))
        return None

    def _key(self, method: str, path: str, body: Any) -> str:
        if self.is_lenient:
            return json.dumps([path.rsplit("/", 1)[-1], " ".join(prompt_of(body).split()).casefold()])
        return json.dumps([method, path, body], sort_keys=True)

    def _told(self, method: str, path: str, body: Any, recorded: int) -> str:
        if recorded:
            return f"{method} {path} was recorded {recorded} times and is asked once more: {_short(prompt_of(body))}"
        nearest = max(self.exchanges, key=lambda one: _likeness(one, path, body))
        return (
            f"Nothing is recorded for {method} {path}: {_short(prompt_of(body))} "
            f"The nearest recorded request is {nearest.method} {nearest.path}: {_short(nearest.prompt)} "
            f"{_difference(nearest.body, body)}"
        ).strip()


def _likeness(exchange: Exchange, path: str, body: Any) -> float:
    same_path = 1.0 if exchange.path == path else 0.0
    return same_path + SequenceMatcher(None, exchange.prompt[:2000], prompt_of(body)[:2000]).ratio()


def _difference(recorded: Any, asked: Any) -> str:
    """Which keys differ, where both are mappings."""
    if not (isinstance(recorded, Mapping) and isinstance(asked, Mapping)):
        return ""
    keys = sorted(k for k in {*recorded, *asked} if recorded.get(k) != asked.get(k))
    return f"They differ in: {', '.join(map(str, keys))}." if keys else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 120 else text[:117] + "…")
