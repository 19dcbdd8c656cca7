"""Secrets are replaced by `[redacted]` wherever something is stored, logged or shown.

A secret is found in two ways. By value: the values of environment variables that are named like secrets, of `${NAME}` in
specs, and of keys in headers and on the command line, also where they are quoted or encoded. By shape: keys of well-known
providers, JSON web tokens, private keys, passwords in URLs and authorization headers.

Results are redacted when they are kept or shown, never before they are scored.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

from assay.model.secret import (
    PASSWORD_IN_URL,
    REDACTED,
    SCHEMES,
    in_query,
    is_address_or_model,
    is_secret,
    is_stand_in,
    secrets_in_command,
)
from assay.model.secret_shapes import may_have_secret_shape, redact_shapes
from assay.text import make_visible

SHORTEST_SECRET = 8
"""Values shorter than this are not treated as secrets: `true` or `1234` would be found in every answer."""
_SHORTEST_WORD = 16
"""Values shorter than this must mix letters with digits or signs: `disabled` is no key."""
_SHORTEST_PART = 4
"""A part of a secret of this length, where an excerpt ends or begins, is removed as well."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::-[^}]*)?\}")
_MOST_PASSES = 8
_SHORT_TEXT, _MOST_CLEAN = 100, 20_000
_CUT = re.compile(r"(…|\[[^\[\]\n]{0,100} left out\])")
"""Where something was left out of a text."""
_MOST_CUTS = 200


class CleanJson(dict[str, Any]):
    """An object of a JSON document that was redacted when it was read: nothing has to walk through it again.

    Lists show some, such as the facts of a machine, in every row; rows that have the same may share one.
    """


class Redaction:
    """The secrets that are known by value, and how to remove them and everything that has the shape of one.

    Secrets are added and never forgotten: a value that was a key a minute ago still must not be stored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._origins: dict[str, str] = {}
        """Each secret with the name of the variable or header that it comes from, or an empty name."""
        self._forms: dict[str, str] = {}
        """Each secret in every encoding, and the secret."""
        self._patterns: _ValuePatterns | None = None
        self._clean: set[str] = set()
        """Texts without any secret: lists show the same words again and again, as names of agents, packages and metrics."""
        for secret in secrets:
            self.learn(secret)

    def learn(self, value: str, origin: str = "") -> None:
        """Treat this value as a secret from now on, unless it is too short or too plain to be one."""
        for secret in _parts(value):
            if secret not in self._origins and _can_be_secret(secret):
                self._origins[secret] = origin
                self._forms |= dict.fromkeys(_encodings(secret), secret)
                self._patterns, self._clean = None, set()

    @property
    def values(self) -> Sequence[str]:
        """The secrets that are known by value, the first one learned first."""
        return tuple(self._origins)

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Learn the values of variables that are named like secrets, and passwords in URLs."""
        for name, value in environment.items():
            if name in _WORKING_FOLDERS:
                continue
            if is_secret(name, is_sent=True):
                self.learn(value, name)
            for password in PASSWORD_IN_URL.findall(value):
                self.learn(password, name)

    def learn_variables(self, options: object, environment: Mapping[str, str]) -> None:
        """Learn the values of `${NAME}` in a definition, but not of names that say that they are an address or a model."""
        for text in _strings(options):
            for name in _VARIABLE.findall(text) if "${" in text else ():
                value = environment.get(name, "")
                if not is_address_or_model(name) and "://" not in value and not value.startswith(("/", "./")):
                    self.learn(value, name)

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Learn the values of headers that authenticate."""
        for name, value in headers.items():
            if name.lower() in ("cookie", "set-cookie"):
                for pair in value.split(";"):
                    self.learn(pair.partition("=")[2].strip(), name)
            elif is_secret(name, is_sent=True):
                self.learn(value, name)

    def learn_url(self, url: str) -> None:
        """Learn the password and the query parameters of a URL that are named like secrets."""
        for secret in (*PASSWORD_IN_URL.findall(url), *in_query(url)):
            self.learn(secret, "URL")
            self.learn(unquote_plus(secret), "URL")

    def learn_command(self, words: Sequence[str]) -> None:
        """Learn the secrets among the words of a command line, such as the one after `--api-key`."""
        for secret in (word for _, word in secrets_in_command(words)):
            self.learn(secret, "command line")

    def origin_of_secret_in(self, text: str) -> str | None:
        """The name of the variable or header whose value is in the text; None where no known value is."""
        match = self._values.whole.search(text) if self._forms else None
        if match is None:
            return None
        secret = self._forms.get(match[0]) or next(
            secret for secret in self._origins if re.fullmatch(_build_escape_pattern(secret), match[0])
        )
        return self._origins[secret]

    def may_be_in(self, text: str) -> bool:
        """Whether it is worth looking closer; fast, and true for everything that `redact_text` would change."""
        if self._forms and self._values.part.search(text):
            return True
        return may_have_secret_shape(text) or (bool(self._forms) and _is_excerpt(text))

    def redact_text(self, text: str) -> str:
        # Looked up before the search: a secret that another thread learns meanwhile begins a new set.
        clean = self._clean
        if text in clean:
            return text
        if not self.may_be_in(text):
            if len(text) <= _SHORT_TEXT and len(clean) < _MOST_CLEAN:
                clean.add(text)
            return text
        # What follows a removed secret may have the shape of one only now; usually the second pass finds nothing.
        for _ in range(_MOST_PASSES):
            cleaned = redact_shapes(self.redact_values(text))
            if cleaned == text:
                break
            text = cleaned
        return text

    def redact_values(self, text: str) -> str:
        """Remove only the secrets that are known by value: for text in which shapes may occur by chance, such as a script."""
        if not self._forms:
            return text
        if self._values.part.search(text):
            text = self._values.whole.sub(REDACTED, text)
        return self._redact_parts(text) if _is_excerpt(text) else text

    def redact(self, value: Any) -> Any:
        """Redact secrets in plain data, in the keys of mappings as well; data without secrets is returned as the same object."""
        match value:
            case str():
                return self.redact_text(value)
            case CleanJson():
                return value
            case Mapping():
                return self._redact_mapping(value)
            case list() | tuple() | set() | frozenset():
                cleaned = [self.redact(item) for item in value]
                is_same = all(new is old for new, old in zip(cleaned, value, strict=True))
                if is_same or isinstance(value, list):
                    return value if is_same else cleaned
                return tuple(cleaned) if isinstance(value, tuple) else set(cleaned)
            case bytes():
                return self.redact_bytes(value)
            case int() if value not in (True, False) and str(value) in self._origins:
                return REDACTED
            case _:
                return value

    def redact_bytes(self, content: bytes) -> bytes:
        """The content of a file, of any encoding that holds ASCII as it is."""
        try:
            text, encoding = content.decode(), "utf-8"
        except UnicodeDecodeError:
            text, encoding = content.decode("latin-1"), "latin-1"
        cleaned = self.redact_text(text)
        return content if cleaned is text else cleaned.encode(encoding)

    def redact_json(self, written: str) -> str:
        """A JSON document without secrets; the same text where there are none, which is found out without reading it."""
        if not self.may_be_in(written):
            return written
        try:
            value = json.loads(written)
            cleaned = self.redact(value)
        except RecursionError:  # Nested too deeply to be walked through: then as text.
            return self.redact_text(written)
        return written if cleaned is value else json.dumps(cleaned, ensure_ascii=False)

    def _redact_mapping(self, mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
        cleaned: dict[Any, Any] = {}
        is_same = True
        for key, item in mapping.items():
            new_item = REDACTED if _is_header_with_key(key, item) else self.redact(item)
            new_key = self.redact(key) if isinstance(key, str) else key
            is_same = is_same and new_key is key and new_item is item
            cleaned[_not_among(new_key, mapping, cleaned) if new_key is not key else key] = new_item
        return mapping if is_same else cleaned

    @property
    def _values(self) -> _ValuePatterns:
        if self._patterns is None:
            self._patterns = _ValuePatterns(self._origins, self._forms)
        return self._patterns

    def _redact_parts(self, text: str) -> str:
        """An excerpt may end or begin within a secret, and half of one is still too much."""
        pieces = _CUT.split(text, maxsplit=_MOST_CUTS)
        for cut in range(1, len(pieces), 2):
            pieces[cut - 1] = self._without_end(pieces[cut - 1])
            pieces[cut + 1] = self._without_beginning(pieces[cut + 1])
        return "".join(pieces)

    def _without_end(self, text: str) -> str:
        body = text.rstrip()
        for secret in self._forms:
            for size in range(min(len(secret) - 1, len(body)), _SHORTEST_PART - 1, -1):
                if body.endswith(secret[:size]):
                    return body[:-size] + REDACTED + text[len(body) :]
        return text

    def _without_beginning(self, text: str) -> str:
        body = text.lstrip()
        for secret in self._forms:
            for size in range(min(len(secret) - 1, len(body)), _SHORTEST_PART - 1, -1):
                if body.startswith(secret[-size:]):
                    return text[: len(text) - len(body)] + REDACTED + body[size:]
        return text


class _ValuePatterns:
    """Two patterns that find all known secrets at once: `whole` to replace them, `part` to see quickly whether there are any.

    They are rebuilt when a secret is learned, which happens seldom, and used for every text that is stored or shown.
    """

    def __init__(self, secrets: Iterable[str], forms: Iterable[str]) -> None:
        # The longest first: a shorter one may be a part of it.
        escaped = {_build_escape_pattern(secret): len(secret) for secret in secrets}
        lengths = {**escaped, **{re.escape(form): len(form) for form in forms}}
        self.whole = re.compile("|".join(sorted(lengths, key=lambda shape: (-lengths[shape], shape))))
        parts = {_rare_part(form) for form in forms}
        # Where everything is escaped there is no such part, and only a search for the whole tells.
        self.part = re.compile("|".join(map(re.escape, sorted(parts)))) if "" not in parts else self.whole
        """A few characters of each, beginning with one that is rare in prose: found several times faster."""


def _rare_part(form: str) -> str:
    """Characters that no encoding changes; empty where there are too few.

    >>> _rare_part("sk-proj-a1B2c3D4e5"), _rare_part("correct horse battery staple"), _rare_part("a/b")
    ('1B2c3D', 'correc', '')
    """
    runs = [run for run in re.findall(r"[A-Za-z0-9_.-]+", form) if len(run) >= _SHORTEST_PART]
    run = max(runs, key=len, default="")
    start = next((at for at, sign in enumerate(run[:-5]) if sign.isdigit() or sign.isupper()), 0)
    return run[start : start + 6]


_WORKING_FOLDERS = ("PWD", "OLDPWD")
"""What a shell calls its working folders: elsewhere `pwd` is a password."""


@cache
def known_secrets() -> Redaction:
    """The redaction of this process, which knows the secrets of its environment and its command line."""
    known = Redaction()
    known.learn_environment(os.environ)
    known.learn_command(sys.argv)
    return known


def redact(value: Any) -> Any:
    """Plain data without the secrets that this process knows, and without what has the shape of one."""
    return known_secrets().redact(value)


def make_showable(text: str) -> str:
    """Redact secrets and make control characters visible, for everything that a console, log or progress
    line shows.
    """
    return make_visible(redact(text))


def _parts(value: str) -> Iterator[str]:
    """The value, the token after `Bearer`, and the secrets within a JSON document such as a service account's."""
    value = value.strip()
    yield value
    scheme, _, token = value.partition(" ")
    if scheme.lower() in SCHEMES:
        yield token.strip()
    if value.startswith("{"):
        try:
            document = json.loads(value)
        except ValueError:
            return
        for name, item in document.items():
            if isinstance(item, str) and is_secret(str(name), is_sent=False):
                yield item.strip()


def _can_be_secret(value: str) -> bool:
    """
    >>> [_can_be_secret(value) for value in ("true", "disabled", "12345678", "hunter2-2", "a-long-passphrase")]
    [False, False, False, True, True]
    """
    if len(value) < SHORTEST_SECRET or value in REDACTED or REDACTED in value or is_stand_in(value):
        return False
    return len(value) >= _SHORTEST_WORD or not (value.isalpha() or value.isdigit())


def _encodings(secret: str) -> set[str]:
    """How a secret may be written: as it is, quoted or encoded; escapes are found by `_build_escape_pattern`."""
    import html

    raw = secret.encode("utf-8", "surrogatepass")
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    return {
        secret,
        html.escape(secret),
        *quoted,
        *(re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), text) for text in quoted),
        *_in_base64(raw),
        raw.hex(),
        raw.hex().upper(),
    }


_ESCAPED = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}


def _build_escape_pattern(secret: str) -> str:
    """A pattern for the secret as JSON, repr() and the like write it, however often one is put into the other.

    >>> bool(re.fullmatch(_build_escape_pattern('a"é'), json.dumps(json.dumps('a"é'))[3:-3]))
    True
    """
    return "".join(map(_build_character_pattern, secret))


def _build_character_pattern(character: str) -> str:
    """Any sign may be escaped: JSON of .NET holds `\\u002B` for a plus, pages `&#43;`, a URL in a URL `%252B`."""
    if character.isascii() and (character.isalnum() or character in "_.-"):
        return re.escape(character)
    code, units = ord(character), character.encode("utf-16-be", "surrogatepass").hex()
    raw = character.encode("utf-8", "surrogatepass")
    written = [
        r"\\{1,16}" if character == "\\" else r"\\{0,16}" + re.escape(character),
        "".join(rf"\\{{1,16}}u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        rf"\\{{1,16}}(?:x{code:02x}|U{code:08x})",
        "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in raw),
        f"&(?:amp;){{0,3}}#(?:x{code:x}|{code});",
    ]
    if len(raw) > 1:
        written.append("".join(rf"\\{{1,16}}x{byte:02x}" for byte in raw))
    if character in _ESCAPED:
        written.append(rf"\\{{1,16}}{_ESCAPED[character]}")
    return f"(?i:{'|'.join(written)})"


def _in_base64(secret: bytes) -> Iterator[str]:
    """Base64 of any text that holds the secret: the characters that do not depend on what stands around it."""
    import base64

    for before, first in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(before) + secret).decode()
        inner = encoded[first : (before + len(secret)) * 8 // 6]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _is_excerpt(text: str) -> bool:
    return "…" in text or " left out]" in text


def _not_among(key: str, mapping: Mapping[Any, Any], taken: Mapping[Any, Any]) -> str:
    """Two keys that were secrets must not become one: the second is numbered."""
    number, numbered = 1, key
    while numbered in taken or numbered in mapping:
        number += 1
        numbered = f"{key} ({number})"
    return numbered


def _is_header_with_key(name: object, value: object) -> bool:
    """Among the headers of a request; `${NAME}` and a value that was removed already stay."""
    return (
        isinstance(name, str)
        and isinstance(value, str)
        and name.lower() in _KEY_HEADERS
        and bool(value)
        and "${" not in value
        and REDACTED not in value
        and not all(word.lower() in SCHEMES or is_stand_in(word) for word in value.split())
    )


_KEY_HEADERS = frozenset(
    ("authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "set-cookie")
)
