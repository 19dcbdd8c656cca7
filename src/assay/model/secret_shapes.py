"""What secrets look like: keys of well-known providers, tokens, private keys, passwords in URLs, authorization headers.

`redaction` uses this for secrets whose value is not known. Every text that is stored or shown passes through, so the patterns are
only tried on a text that has the characters each of them needs; most texts are searched for a few plain words and left alone.
Group 1 of each pattern is what stays, such as the name of a header.
"""

from __future__ import annotations

import re
from functools import cache

REDACTED = "[redacted]"
"""Stands where a secret was."""

_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""Not within a longer word; a line end may be escaped."""
_WORD = r"[A-Za-z0-9_-]"
_CREDENTIALS = (
    r"(?:(?=[^\s\"',;\\<>]{0,200}\d)[A-Za-z0-9._~+/=-]{8,}+(?![(\[])|[A-Za-z0-9+/=]{20,}+(?![(\[._-]))"
)
"""The value of an authorization: `Bearer authentication` is none, nor is `request.headers.authorization` in a program."""
_PARAMETER = (
    r"sig|(?:[^=&;?\s\"']{0,40}[_.-])?(?:api|app|access|account|auth|client|id|private|refresh|secret|session|shared|subscription)?"
    r"(?:keys?|token|secret|password|passwd|auth|signature|credentials?)"
)
"""Names of secrets in a query: `author`, `keyboard` and `token_type` are none."""
# Repetitions that may have to be tried again from the next place are bounded: an agent says whatever it likes, and a search
# must not take longer than its answer.
_SHAPES: dict[str, dict[str, str]] = {
    "-": {
        "sk-": rf"(){_START}sk-(?:(?:ant|proj|svcacct|admin|or)-(?={_WORD}{{0,200}}\d){_WORD}{{16,}}"
        r"|(?:[A-Za-z0-9_]{1,20}-){0,6}(?=[A-Za-z_]*\d)(?=[\d_]*[A-Za-z])[A-Za-z0-9_]{12,}[A-Za-z0-9_-]*)",
        "xox": rf"(){_START}xox[abeoprs]-[A-Za-z0-9-]{{10,}}",
        "glpat-": rf"(){_START}glpat-{_WORD}{{16,}}",
        "pypi-": rf"(){_START}pypi-(?:AgE{_WORD}{{10,}}|(?={_WORD}{{0,200}}\d){_WORD}{{30,}})",
        "PRIVATE KEY": r"()-----BEGIN [A-Z ]*PRIVATE KEY-----"
        r"(?:(?:[\w+/=\s\\:,.]|-(?!-))*-----END [A-Z ]*PRIVATE KEY-----|[A-Za-z0-9+/=\s\\]*)",
    },
    "_": {
        **{f"k_{kind}_": rf"(){_START}[sr]k_{kind}_[A-Za-z0-9]{{16,}}" for kind in ("live", "test")},
        "gsk_": rf"(){_START}gsk_[A-Za-z0-9]{{16,}}",
        **{f"gh{kind}_": rf"(){_START}gh{kind}_[A-Za-z0-9]{{20,}}" for kind in "pousr"},
        "github_pat_": rf"(){_START}github_pat_[A-Za-z0-9_]{{20,}}",
        "hf_": rf"(){_START}hf_[A-Za-z0-9]{{20,}}",
        "npm_": rf"(){_START}npm_[A-Za-z0-9]{{30,}}",
    },
    "A": {
        "IA": rf"(){_START}A[KS]IA(?![A-Z0-9]*EXAMPLE)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
        "AIza": rf"(){_START}AIza{_WORD}{{30,}}",
    },
    ".": {
        "ya29.": rf"(){_START}ya29\.{_WORD}{{20,}}",
        "eyJ": rf"(){_START}eyJ{_WORD}{{8,400}}\.eyJ{_WORD}{{8,}}\.{_WORD}*",
    },
    "@": {"://": r"(://[^/@:\s\"'\\]*:)(?!\$\{|\*+@|\[redacted\])[^/@\s\"'\\]+(?=@)"},
    **{
        sign: {"=": rf"([{sign}](?i:{_PARAMETER})=)" r"(?!\$\{|\[redacted\])[^&\s\"'#\\<>]{8,}"}
        for sign in "?&;"
    },
}
"""By a sign and a part that every such secret has: text without them needs no pattern."""
_HEADER_SHAPES: dict[str, str] = {
    "bearer": rf"(\bbearer\s+){_CREDENTIALS}",
    "uthorization": rf"(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:(?:basic|token|digest|bearer)\s+)?){_CREDENTIALS}",
    "api-key": rf"(\bapi-key[\"']?\s*[:=]\s*[\"']?){_CREDENTIALS}",
    "cookie": r"(\bcookie[\"']?\s*:\s*[\"']?[^=;\s\"']{1,100}=)(?!\[redacted\])[^;\s\"'\\]{8,}",
}
"""The same whatever the case of the letters: names of headers."""


def may_have_secret_shape(text: str) -> bool:
    """Fast, and true for every text that has one: to search for plain text is many times faster than for a pattern."""
    for sign, shapes in _SHAPES.items():
        if sign in text and any(part in text for part in shapes):
            return True
    lowered = text.lower()
    return any(part in lowered for part in _HEADER_SHAPES)


def has_secret_shape(text: str) -> bool:
    """
    >>> has_secret_shape("sk-ant-api03-4fJ7dK2mQ9xW1zR8"), has_secret_shape("sk-learn-based-classification")
    (True, False)
    """
    return may_have_secret_shape(text) and redact_shapes(text) != text


def redact_shapes(text: str) -> str:
    for sign, shapes in _SHAPES.items():
        if sign in text:
            for part, shape in shapes.items():
                if part in text:
                    text = _compile_shape(shape).sub(rf"\1{REDACTED}", text)
    lowered = text.lower()
    for part, shape in _HEADER_SHAPES.items():
        if part in lowered:
            text = _compile_shape(shape, re.IGNORECASE).sub(rf"\1{REDACTED}", text)
    return text


@cache
def _compile_shape(shape: str, flags: int = 0) -> re.Pattern[str]:
    """Made when it is first needed: a command that shows no secret need not wait for it."""
    return re.compile(shape, flags)
