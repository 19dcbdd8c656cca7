"""What a name says about its value: whether nobody may read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

SECRET_NAME = re.compile(
    r"KEY(?!BOARD|RING|MAP)|TOKEN(?!IZ)|SECRET|PASSW|CREDENTIAL|AUTH(?!OR(?!I))", re.IGNORECASE
)
"""Of variables and headers; an author, a keyboard and a tokenizer are no secrets."""
SECRET_FIELD = re.compile(
    r"(^|.*[_-])(api[_-]?key|authorization|(access|auth|refresh|session|bearer|security)[_-]?token"
    r"|password|passwd|credentials?|((client|app|shared)[_-]?)?secret|(secret|private|access|subscription)[_-]?(access[_-]?)?key"
    r")$|^(token|pwd)$",
    re.IGNORECASE,
)
SECRET_IN_QUERY = re.compile(
    r"([?&;](?:sig|code|[^=&;\s]*(?:key|token|secret|password|auth|signature|credential)[^=&;\s]*)=)([^&]*)",
    re.IGNORECASE,
)
SHORTEST = 4
REDACTED = "[redacted]"
"""Stands where a secret was."""

NAMED = re.compile(r"\$\{\w+\}")
"""A variable without a default, which would be stored."""

_OTHER_TOKEN = re.compile(r"(?!(.*[_-])?(stop|eos|bos|pad|unk|sep|cls|mask)[_-]).*[_-]token$", re.IGNORECASE)
_COOKIE = re.compile(r"(^|-)cookie$", re.IGNORECASE)
_WHERE_IT_IS = re.compile(r"[_-](FILE|PATH|DIR|URL|SOCK)$|^GOOGLE_APPLICATION_CREDENTIALS$", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")
_FILLED_IN = re.compile(r"\$\{\w+(?::-([^}]*))?\}")
_STAND_IN = re.compile(
    r"(sk-)?(test|fake|mock|dummy|sim|example|placeholder|empty|none|null|unused|not-?needed|no-?key|ollama|local|x+)"
    r"([_-]?(key|token|secret|\d+))*",
    re.IGNORECASE,
)
"""What people write for servers that want a key and look at none."""
_SCHEMES = frozenset(("bearer", "basic", "token", "digest"))
"""Words that stand before a secret in a header."""

Place = tuple[str | int, ...]


def plain_secrets(options: Mapping[str, object]) -> list[Place]:
    """Places in an agent's options where a secret stands as it is, not as `${NAME}`: options are stored."""
    return list(_in(options, (), is_sent=False))


def _in(value: object, place: Place, *, is_sent: bool) -> Iterator[Place]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            here = (*place, str(name))
            if is_secret(str(name), is_sent=is_sent) and not isinstance(inner, Mapping):
                if _is_plain(inner, name):
                    yield here
            else:
                yield from _in(inner, here, is_sent=name in ("headers", "env"))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _in(inner, (*place, index), is_sent=is_sent)
    elif isinstance(value, str) and "://" in value:
        parts = in_query(value) + _IN_ADDRESS.findall(value)
        if any(_is_plain(part) for part in parts):
            yield place


def in_query(url: str) -> list[str]:
    """Values of its parameters that are named like a secret, and long enough to be one.

    >>> in_query("http://host/v1?version=2024&api_key=sk-1234"), in_query("http://host/status?code=200")
    (['sk-1234'], [])
    """
    return [found[2] for found in SECRET_IN_QUERY.finditer(url) if len(found[2]) >= SHORTEST]


def is_secret(name: str, *, is_sent: bool) -> bool:
    """`is_sent`: among variables and headers, where a name that hints at a secret is enough.

    >>> is_secret("X-Api-Key", is_sent=True), is_secret("X-Author", is_sent=True), is_secret("Cookie", is_sent=True)
    (True, False, True)
    """
    if _WHERE_IT_IS.search(name):
        return False
    if is_sent and (SECRET_NAME.search(name) or _COOKIE.search(name)):
        return True
    return bool(SECRET_FIELD.match(name) or _OTHER_TOKEN.match(name))


def _is_plain(value: object, name: object = "") -> bool:
    if isinstance(value, list | tuple):
        return any(_is_plain(one, name) for one in value)
    if value is None or isinstance(value, bool):
        return False
    words = _FILLED_IN.sub(lambda found: f" {found[1] or ''} ", str(value)).split()
    if "tokens" in str(name).lower():
        words = [word for word in words if not word.isdigit()]
    return any(may_be_secret(word) and not _STAND_IN.fullmatch(word) for word in words)


def may_be_secret(word: str) -> bool:
    """
    >>> may_be_secret("Bearer"), may_be_secret("abc"), may_be_secret("sk-1234")
    (False, False, True)
    """
    return len(word) >= SHORTEST and word.lower() not in _SCHEMES
