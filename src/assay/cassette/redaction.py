"""Secrets removed from exchanges before they reach a cassette, however a stream or an encoding cuts them up.

What is a secret is decided by `assay.model.redaction`. This module knows where secrets are in requests and answers: in
headers and fields that are named like one, in strings within JSON, and in text that a stream delivers in small parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from assay.cassette.tape import RecordedExchange, parse_json
from assay.model.redaction import SHORTEST_SECRET, Redaction
from assay.model.secret import REDACTED, SECRET_FIELD, SECRET_IN_QUERY, is_secret

_PASSED_ON = frozenset(("headers", "http_headers", "env"))
"""Fields of a request, as of an MCP tool, that go to another server or program."""
_HARMLESS_HEADERS = frozenset(("accept", "accept-language", "content-type", "user-agent"))
_SCHEMA_TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_MOST_SENT = 32
_NEW_FOR_EVERY_REQUEST = frozenset(("idempotency-key", "x-idempotency-key", "sec-websocket-key"))


class ExchangeRedaction:
    """Removes the secrets that are `known`, those that have the shape of one, and those that a program sent of late.

    Only the most recent ones of the last kind are kept, because a program may sign each request anew.
    """

    def __init__(self, known: Redaction) -> None:
        self._known = known
        self._sent = Redaction()

    def learn_request(self, headers: Mapping[str, str], path: str, body: Any) -> Redaction | None:
        """Learn the keys that a program sends, because the server may repeat them; returns the new ones, if any."""
        sent = Redaction()
        # A value that is new in every request is no key, and 32 of them would push the keys out of the list.
        sent.learn_headers({k: v for k, v in headers.items() if k not in _NEW_FOR_EVERY_REQUEST})
        sent.learn_url(path)
        if isinstance(body, str) and _is_form(body):
            sent.learn_url(f"?{body}")
        for name, value, is_header in _fields(body):
            if is_secret(name, is_sent=True) if is_header else _is_named(name):
                for secret in value if isinstance(value, list) else [value]:
                    if isinstance(secret, str):
                        sent.learn(secret)
        return self._learn(sent.values)

    def _learn(self, secrets: Sequence[str]) -> Redaction | None:
        before = {*self._known.values, *self._sent.values}
        if not (new := [secret for secret in secrets if secret not in before]):
            return None
        recent = [secret for secret in self._sent.values if secret not in secrets]
        self._sent = Redaction([*recent, *secrets][-_MOST_SENT:])
        return Redaction(new)

    def redact(self, exchange: RecordedExchange) -> RecordedExchange:
        """The exchange as it may be stored; redacting it once more changes nothing."""
        return replace(
            exchange,
            path=self.redact_path(exchange.path),
            body=self.redact_body(exchange.body),
            headers=self._redact_data(dict(exchange.headers)),
            pieces=self._redact_binary(exchange.pieces)
            if exchange.is_binary
            else self._redact_pieces(exchange.pieces),
        )

    def redact_path(self, path: str) -> str:
        return SECRET_IN_QUERY.sub(rf"\1{REDACTED}", self._redact_text(path))

    def redact_body(self, body: Any) -> Any:
        if isinstance(body, str) and _is_form(body):
            return self.redact_path(f"?{body}")[1:]
        return self._redact_data(_redact_fields(body))

    def _redact_text(self, text: str) -> str:
        return self._known.redact_text(self._sent.redact_text(text))

    def _redact_data(self, value: Any) -> Any:
        return self._known.redact(self._sent.redact(value))

    def _redact_pieces(self, pieces: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
        """The pieces of an answer without secrets, even where a secret is cut by a piece or by the events of a stream.

        The answer is redacted as a whole, first string by string as parsed, then as text, and is cut again as it was.
        """
        texts = [text for _, text in pieces]
        whole = "".join(texts)
        changes = self._redact_answer(whole)
        cleaned = "".join(new for _, new in changes)
        final = self._redact_text(cleaned)
        spread = spread_changes(texts, changes if final == cleaned else [(whole, final)])
        return tuple((at, text) for (at, _), text in zip(pieces, spread, strict=True))

    def _redact_binary(self, pieces: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
        """Redact only known secrets from binary data.

        Whatever has the shape of a key may be part of a picture, so shapes are not looked for.
        """
        texts = [text for _, text in pieces]
        whole = "".join(texts)
        cleaned = self._known.redact_values(self._sent.redact_values(whole))
        spread = spread_changes(texts, [(whole, cleaned)])
        return tuple((at, text) for (at, _), text in zip(pieces, spread, strict=True))

    def _redact_answer(self, whole: str) -> list[tuple[str, str]]:
        """The parts of an answer in order, each as it came and as it may be stored: the whole, or the lines of a stream."""
        parts = _parts(whole)
        documents = [part.document for part in parts]
        issued = {value: None for document in documents for value in _find_issued_secrets(document)}
        texts = _join_strings(parts)
        if not issued and not self._known.may_be_in(texts) and not self._sent.may_be_in(texts):
            return [(whole, whole)]
        self._learn(Redaction(issued).values)
        documents = [_replace_strings(document, issued) for document in documents]
        for leaves in _find_streamed_strings(parts, documents):
            self._redact_streamed(leaves)
        return [
            (part.text, part.with_document(self._redact_data(document)))
            for part, document in zip(parts, documents, strict=True)
        ]

    def _redact_streamed(self, leaves: Sequence[_Leaf]) -> None:
        """Redact, in place, a text that a stream delivers in many small strings."""
        texts = [leaf.text for leaf in leaves]
        whole = "".join(texts)
        if len(texts) < 2 or (cleaned := self._redact_text(whole)) == whole:
            return
        for leaf, text in zip(leaves, spread_changes(texts, [(whole, cleaned)]), strict=True):
            if text != leaf.text:
                leaf.replace(text)


def searchable_text(exchange: RecordedExchange) -> str:
    """All text of an exchange, with the parts of a stream joined: where a secret has to be looked for."""
    whole = "".join(text for _, text in exchange.pieces)
    request = json.dumps(exchange.body, ensure_ascii=False)
    return "\n".join(
        [exchange.path, request, *exchange.headers.values(), whole, _join_strings(_parts(whole))]
    )


def _join_strings(parts: Sequence[_AnswerPart]) -> str:
    """All strings of an answer, those at one place of a stream put together."""
    documents = [part.document for part in parts]
    streamed = _find_streamed_strings(parts, documents)
    names = {name for document in documents for name in _names(document)}
    single = (document for document in documents if isinstance(document, str))
    return "\n".join([*names, *single, *("".join(leaf.text for leaf in leaves) for leaves in streamed)])


def _names(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from document
    for item in document.values() if isinstance(document, dict) else document:
        if isinstance(item, dict | list):
            yield from _names(item)


def _parts(answer: str) -> list[_AnswerPart]:
    document = _parse(answer)
    return [*_stream_lines(answer)] if document is None else [_AnswerPart("", document, "", answer)]


def _is_form(body: str) -> bool:
    """Whether it has parameters as a URL has them."""
    return "=" in body.partition("&")[0] and not any(sign.isspace() for sign in body)


def spread_changes(texts: Sequence[str], changes: Sequence[tuple[str, str]]) -> list[str]:
    """Cut changed text as it was cut before: what is new stands in the last of the pieces that held what it replaces.

    The old sides of the changes are all of the text.

    >>> spread_changes(["the key s", "ec", "ret is", " old"], [("the key secret is old", "the key [redacted] is old")])
    ['the key ', '', '[redacted] is', ' old']
    """
    ends = list(accumulate(map(len, texts)))
    spread = list(texts)
    at = sum(len(old) for old, _ in changes)
    # From the end, so that positions before a change stay what they are.
    for old, new in reversed(changes):
        at -= len(old)
        if old == new:
            continue
        before, after = _common_ends(old, new)
        start, stop = at + before, at + len(old) - after
        last = next(n for n, end in enumerate(ends) if end >= stop)
        # A secret may reach over many pieces: each loses its part, and the last one gets what stands in its place.
        for n in range(len(texts)):
            begin = ends[n] - len(texts[n])
            low, high = max(start, begin) - begin, min(stop, ends[n]) - begin
            put = new[before : len(new) - after] if n == last else ""
            if low < high or put:
                spread[n] = spread[n][:low] + put + spread[n][max(low, high) :]
    return spread


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts have in common at their beginnings and at their ends."""
    most = min(len(old), len(new))
    before = next((n for n in range(most) if old[n] != new[n]), most)
    most -= before
    after = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return before, after


@dataclass(slots=True)
class _AnswerPart:
    """A document in an answer, with the text around it."""

    before: str
    document: Any
    after: str
    text: str

    def with_document(self, document: Any) -> str:
        """The text with another document; the same text where the document is the same."""
        if isinstance(document, str):
            return f"{self.before}{document}{self.after}"
        if document == self.document:
            return self.text
        separators = (",", ":") if '": ' not in self.text else None
        return f"{self.before}{json.dumps(document, ensure_ascii=False, separators=separators)}{self.after}"


def _stream_lines(text: str) -> Iterator[_AnswerPart]:
    """The lines of server-sent events or of JSON lines; one that holds no JSON object is text."""
    for line in filter(None, _LINE_END.split(text)):
        content = line.rstrip("\r\n")
        before = "data: " if content.startswith("data: ") else "data:" if content.startswith("data:") else ""
        content = content.removeprefix(before)
        document = _parse(content)
        after = line[len(before) + len(content) :]
        yield _AnswerPart(before, content if document is None else document, after, line)


def _parse(text: str) -> Any:
    """An object or a list in JSON, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return parse_json(text)
    except ValueError:
        return None


@dataclass(slots=True)
class _Leaf:
    """A string somewhere in a document."""

    holder: Any
    key: Any

    @property
    def text(self) -> str:
        return str(self.holder[self.key])

    def replace(self, text: str) -> None:
        self.holder[self.key] = text
        if isinstance(self.holder, dict) and self.key == "token" and "bytes" in self.holder:
            # Log probabilities tell each token twice.
            self.holder["bytes"] = None


def _find_streamed_strings(parts: Sequence[_AnswerPart], documents: list[Any]) -> list[list[_Leaf]]:
    """Strings at the same place of successive documents, or of successive items of a list: parts of one text, maybe."""
    found: dict[tuple[Any, ...], list[_Leaf]] = {}
    for n, (part, document) in enumerate(zip(parts, documents, strict=True)):
        if not isinstance(document, str):
            _collect(document, (), found)
        elif part.before:
            found.setdefault((), []).append(_Leaf(documents, n))
    return list(found.values())


def _collect(value: Any, place: tuple[Any, ...], found: dict[tuple[Any, ...], list[_Leaf]]) -> None:
    if isinstance(value, dict):
        # Deltas of several choices or calls alternate in a stream; their index keeps their texts apart.
        place = (*place, value["index"]) if isinstance(value.get("index"), int) else place
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        here = (*place, key if isinstance(value, dict) else "*")
        if isinstance(item, str):
            found.setdefault(here, []).append(_Leaf(value, key))
        elif isinstance(item, dict | list):
            _collect(item, here, found)


def _fields(value: Any, is_passed_on: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Name and value of every field, and whether it is a header of a tool."""
    if isinstance(value, Mapping):
        if (name := _header_in_pair(value)) is not None:
            yield name, value["value"], True
        for name, item in value.items():
            if not isinstance(item, Mapping):
                yield str(name), item, is_passed_on
            yield from _fields(item, _is_passed_on(name, item))
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item)


def _is_named(name: str) -> bool:
    return bool(SECRET_FIELD.match(name))


def _is_passed_on(name: object, item: Any) -> bool:
    """Headers or variables for another server or program; not the schema of a parameter that is called so."""
    is_schema = isinstance(item, Mapping) and item.get("type") in _SCHEMA_TYPES
    return str(name).lower() in _PASSED_ON and not is_schema


def _header_in_pair(value: Mapping[Any, Any]) -> str | None:
    """The name of a header with a key that is written as {"name": …, "value": …}."""
    name = value.get("name", value.get("key"))
    is_pair = isinstance(name, str) and isinstance(value.get("value"), str)
    return str(name) if is_pair and is_secret(str(name), is_sent=True) else None


def _redact_fields(value: Any, is_passed_on: bool = False) -> Any:
    """A request without the values of fields that are named like a secret, and of headers for other servers.

    The schema of a tool's parameter that is called so stays.
    """
    if isinstance(value, Mapping):
        cleaned: dict[Any, Any] = {}
        for name, item in value.items():
            if isinstance(item, Mapping):
                cleaned[name] = _redact_fields(item, _is_passed_on(str(name), item))
                continue
            is_header = is_passed_on and isinstance(item, str) and str(name).lower() not in _HARMLESS_HEADERS
            cleaned[name] = REDACTED if is_header or _is_named(str(name)) else _redact_fields(item)
        return cleaned if _header_in_pair(value) is None else cleaned | {"value": REDACTED}
    if isinstance(value, list):
        return [_redact_fields(item) for item in value]
    return value


def _find_issued_secrets(document: Any) -> Iterator[str]:
    """Tokens and keys that a server hands out: values of fields that are named so, but not tokens of a language model."""
    if isinstance(document, Mapping):
        for name, item in document.items():
            if not isinstance(item, str):
                yield from _find_issued_secrets(item)
            elif _is_named(str(name)) and "logprob" not in document:
                # Short values and sentences are no keys, whatever their field is called.
                is_word = len(item) >= SHORTEST_SECRET and not any(sign.isspace() for sign in item)
                if is_word and item != REDACTED:
                    yield item
    elif isinstance(document, list):
        for item in document:
            yield from _find_issued_secrets(item)


def _replace_strings(value: Any, secrets: Mapping[str, None]) -> Any:
    """A copy without strings that are one of the secrets."""
    if isinstance(value, dict):
        return {name: _replace_strings(item, secrets) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace_strings(item, secrets) for item in value]
    return REDACTED if isinstance(value, str) and value in secrets else value
