"""Which values are secrets, as their names, their places and their shapes say.

Three signs are combined, because each alone misses some: a name such as `api_key`, a place such as the
password of a URL, and a shape such as the prefix of a provider's keys. Nothing is stored, logged or shown
before it went through them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from assay.model.secret_shapes import REDACTED, has_secret_shape

__all__ = ["REDACTED"]

SECRET_NAME = re.compile(
    r"KEY(?!BOARD|RING|MAP)|TOKEN(?!IZ)|SECRET|PASSW|CREDENTIAL|AUTH(?!OR(?!I))", re.IGNORECASE
)
"""Names of variables and headers that hold secrets; an author, a keyboard and a tokenizer are no secrets."""
SECRET_FIELD = re.compile(
    r"(^|.*[_-])(api[_-]?key|authorization|(access|auth|refresh|session|bearer|security)[_-]?token"
    r"|password|passwd|credentials?|((client|app|shared)[_-]?)?secret|(secret|private|access|subscription)[_-]?(access[_-]?)?key"
    r")$|^(token|pwd)$",
    re.IGNORECASE,
)
SECRET_IN_QUERY = re.compile(
    r"([?&;](?:sig|code|[^=&;\s]{0,40}(?:key|token|secret|password|auth|signature|credential)[^=&;\s]{0,40})=)([^&]*)",
    re.IGNORECASE,
)
SHORTEST = 4
NAMED = re.compile(r"\$\{\w+\}")
"""A variable without a default, which would be stored."""

_OTHER_TOKEN = re.compile(r"(?!(.*[_-])?(stop|eos|bos|pad|unk|sep|cls|mask)[_-]).*[_-]token$", re.IGNORECASE)
_COOKIE = re.compile(r"(^|-)cookie$", re.IGNORECASE)
_WHERE_IT_IS = re.compile(r"[_-](FILE|PATH|DIR|URL|SOCK)$|^GOOGLE_APPLICATION_CREDENTIALS$", re.IGNORECASE)
PASSWORD_IN_URL = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")
_FILLED_IN = re.compile(r"\$\{\w+(?::-([^}]*))?\}")
# As texts, which `re` compiles when they are first used: most commands need neither.
_ADDRESS_OR_MODEL = r"(^|_)(URL|URI|HOST|HOSTNAME|PORT|ADDR|ADDRESS|ENDPOINT|BASE|PATH|DIR|FOLDER|FILE|HOME|MODEL|VERSION|REGION|USER)$"
_STAND_IN = (
    r"(sk-)?(test|fake|mock|dummy|sim|example|placeholder|empty|none|null|unused|not-?needed|no-?key|ollama|local|x+)"
    r"([_-]?(key|token|secret|\d+))*"
)
"""What people write for servers that want a key and look at none."""
SCHEMES = frozenset(("bearer", "basic", "token", "digest"))
"""Words that stand before a secret in a header."""

Place = tuple[str | int, ...]


def plain_secrets(options: Mapping[str, object]) -> list[Place]:
    """Places in an agent's options where a secret stands as it is, not as `${NAME}`: options are stored."""
    return list(_find_secrets(options, (), is_sent=False))


def _find_secrets(value: object, place: Place, *, is_sent: bool) -> Iterator[Place]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            here = (*place, str(name))
            if is_secret(str(name), is_sent=is_sent) and not isinstance(inner, Mapping):
                if _is_plain(inner, name):
                    yield here
            else:
                yield from _find_secrets(inner, here, is_sent=name in ("headers", "env"))
    elif isinstance(value, list | tuple):
        named = {index for index, _ in secrets_in_command(value)} if place[-1:] == ("command",) else set()
        for index, inner in enumerate(value):
            here = (*place, index)
            if index in named:
                yield here
            else:
                yield from _find_secrets(inner, here, is_sent=is_sent)
    elif isinstance(value, str):
        parts = in_query(value) + PASSWORD_IN_URL.findall(value) if "://" in value else []
        if any(_is_plain(part) for part in parts) or has_secret_shape(value):
            yield place


_ASSIGNMENT = re.compile(r"-{0,2}([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*):\s*(\S.*)")


def secrets_in_command(words: Sequence[object]) -> Iterator[tuple[int, str]]:
    """Secrets that are written out in a command, each with the index of its word.

    >>> list(secrets_in_command(["./agent", "--api-key", "k3y-in-clear", "DB_PASSWORD=hunter2", "--max-tokens=4096"]))
    [(2, 'k3y-in-clear'), (3, 'hunter2')]
    """
    option = ""
    for index, word in enumerate(map(str, words)):
        for name, value, is_sent in _find_named_values(option, word):
            if is_secret(name, is_sent=is_sent) and _is_plain(value, name):
                yield index, value
                break
        option = word.lstrip("-") if word.startswith("-") and "=" not in word else ""


def _find_named_values(option: str, word: str) -> Iterator[tuple[str, str, bool]]:
    """What a word of a command may be the value of, by the option before it or by the word itself."""
    if option and not word.startswith("-"):
        yield option, word, False
    if assignment := _ASSIGNMENT.fullmatch(word):
        yield assignment[1], assignment[2], assignment[1].isupper()
    if header := _HEADER.fullmatch(word):
        yield header[1], header[2], option in ("H", "header")


def in_query(url: str) -> list[str]:
    """Values of its parameters that are named like a secret, and long enough to be one.

    >>> in_query("http://host/v1?version=2024&api_key=sk-1234"), in_query("http://host/status?code=200")
    (['sk-1234'], [])
    """
    return [match[2] for match in SECRET_IN_QUERY.finditer(url) if len(match[2]) >= SHORTEST]


def is_secret(name: str, *, is_sent: bool) -> bool:
    """`is_sent`: among variables and headers, where a name that hints at a secret is enough.

    >>> is_secret("X-Api-Key", is_sent=True), is_secret("X-Author", is_sent=True), is_secret("Cookie", is_sent=True)
    (True, False, True)
    """
    name = name.rpartition(".")[2]
    if _WHERE_IT_IS.search(name):
        return False
    if is_sent and (SECRET_NAME.search(name) or _COOKIE.search(name)):
        return True
    return bool(SECRET_FIELD.match(name) or _OTHER_TOKEN.match(name))


def is_address_or_model(name: str) -> bool:
    """Whether a variable's name says that its value may be shown.

    >>> is_address_or_model("OPENAI_BASE_URL"), is_address_or_model("MODEL"), is_address_or_model("WEB_TOKEN")
    (True, True, False)
    """
    return bool(re.search(_ADDRESS_OR_MODEL, name, re.IGNORECASE))


def is_stand_in(value: str) -> bool:
    """Whether it is what people write for servers that ask for a key and ignore it."""
    return bool(re.fullmatch(_STAND_IN, value, re.IGNORECASE))


def _is_plain(value: object, name: object = "") -> bool:
    """Whether a value may be a secret in plain text, and not only a `${NAME}`, a scheme or a stand-in.

    Under a name such as `max_tokens`, a number is a number of tokens.
    """
    if isinstance(value, list | tuple):
        return any(_is_plain(item, name) for item in value)
    if value is None or isinstance(value, bool):
        return False
    words = _FILLED_IN.sub(lambda match: f" {match[1] or ''} ", str(value)).split()
    if "tokens" in str(name).lower():
        words = [word for word in words if not word.isdigit()]
    return any(may_be_secret(word) and not is_stand_in(word) for word in words)


def may_be_secret(word: str) -> bool:
    """
    >>> may_be_secret("Bearer"), may_be_secret("abc"), may_be_secret("sk-1234")
    (False, False, True)
    """
    return len(word) >= SHORTEST and word.lower() not in SCHEMES
