"""Finds the recorded answer to a request.

Requests are compared by a key: a text of what is asked, with secrets redacted on both sides. A cassette that was recorded with
another API key, or before a value was known to be a secret, therefore still matches.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from assay.cassette.redaction import ExchangeRedaction
from assay.cassette.tape import RecordedExchange, prompt_of
from assay.dialects.openai import LIMIT, NEW_LIMIT
from assay.model.redaction import Redaction, known_secrets
from assay.model.secret import REDACTED, SHORTEST


class Player:
    """Finds the answer to a request.

    Strict: everything must be equal but the running number of a request and the name of its limit of tokens, which has
    an old and a new one; and the n-th time gets the n-th recording. Lenient: the words decide, and the last recording
    may be used again.
    """

    def __init__(
        self, exchanges: Sequence[RecordedExchange], is_lenient: bool = False, known: Redaction | None = None
    ) -> None:
        self._exchanges = exchanges
        self._is_lenient = is_lenient
        self._redaction = ExchangeRedaction(known_secrets() if known is None else known)
        self._sent = ExchangeRedaction(Redaction())
        """Removes the API keys that this program sends."""
        self._by_key: dict[str, list[RecordedExchange]] = {}
        for exchange in exchanges:
            # Redacted again: what is a secret today may be in a cassette of before.
            path, body = (
                self._redaction.redact_path(exchange.path),
                self._redaction.redact_body(exchange.body),
            )
            self._by_key.setdefault(self._key(exchange.method, path, body), []).append(exchange)
        # A replay may well have another secret than the recording: any word may stand in the place of each.
        any_word = rf'(?:[^\s"\\]|\\.){{{SHORTEST},}}'
        self._redacted = {
            key: re.compile(any_word.join(map(re.escape, key.split(REDACTED))))
            for key in self._by_key
            if REDACTED in key
        }
        self._used: Counter[str] = Counter()
        self.misses: list[str] = []

    def learn_from(self, headers: Mapping[str, str], path: str, body: Any) -> None:
        """Learn the secrets of a request, so that what the recording removed is removed from this request, too."""
        self._sent.learn_request(headers, path, body)

    def find(self, method: str, path: str, body: Any) -> RecordedExchange | None:
        """The recording to answer with; None where there is none, and then `misses` says why."""
        path, body = self._redaction.redact_path(path), self._redaction.redact_body(body)
        key = self._find_recorded_key(method, path, body)
        exchanges = self._by_key.get(key, [])
        # Counted also where nothing is left: each further time is a miss of its own, and the message says how many there were.
        turn = self._used[key]
        self._used[key] += 1
        if turn < len(exchanges):
            return exchanges[turn]
        if exchanges and self._is_lenient:
            return exchanges[-1]
        self.misses.append(self._describe_miss(method, path, body, len(exchanges), turn + 1))
        return None

    def _find_recorded_key(self, method: str, path: str, body: Any) -> str:
        """The key of equal recordings, or else of those that differ only in secrets that were removed from them."""
        whole = self._key(method, path, body)
        cleaned = self._key(method, self._sent.redact_path(path), self._sent.redact_body(body))
        for key in (cleaned, whole):
            if key in self._by_key:
                return key
        # The slow way, a pattern for every recording with a removed secret, only where neither key is known.
        similar = [key for key, pattern in self._redacted.items() if pattern.fullmatch(whole)]
        unused = (key for key in similar if self._used[key] < len(self._by_key[key]))
        return next(unused, similar[0] if similar else whole)

    def _key(self, method: str, path: str, body: Any) -> str:
        if self._is_lenient:
            return json.dumps([path.rsplit("/", 1)[-1], " ".join(prompt_of(body).split()).casefold()])
        return json.dumps([method, path, _essence(body)], sort_keys=True)

    def _describe_miss(self, method: str, path: str, body: Any, recorded: int, requested: int) -> str:
        if recorded:
            times = "once" if recorded == 1 else f"{recorded} times"
            return f"{method} {path} was requested {requested} times but recorded only {times}: {_short(prompt_of(body))}"

        def likeness(exchange: RecordedExchange) -> float:
            is_same_path = exchange.path == path
            return (
                is_same_path + SequenceMatcher(None, exchange.prompt[:2000], prompt_of(body)[:2000]).ratio()
            )

        nearest = max(self._exchanges, key=likeness)
        return (
            f"There is no recording of {method} {path}: {_short(prompt_of(body))}. "
            f"The most similar one is {nearest.method} {nearest.path}: {_short(nearest.prompt)}. "
            f"{_difference(nearest.body, body)}"
        ).strip()


def _essence(body: Any) -> Any:
    """The request body without `id`, and with max_completion_tokens renamed to max_tokens."""
    if not isinstance(body, Mapping):
        return body
    kept = {name: value for name, value in body.items() if name != "id"}
    # Which of the two a program sends depends on the server that it thinks it talks to.
    if NEW_LIMIT in kept and LIMIT not in kept:
        kept[LIMIT] = kept.pop(NEW_LIMIT)
    return kept


def _difference(recorded: Any, request: Any) -> str:
    """Which keys differ, where both are mappings."""
    if not (isinstance(recorded, Mapping) and isinstance(request, Mapping)):
        return ""
    recorded, request = _essence(recorded), _essence(request)
    keys = sorted(k for k in {*recorded, *request} if recorded.get(k) != request.get(k))
    return f"They differ in: {', '.join(map(str, keys))}." if keys else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 120 else text[:117] + "…")
