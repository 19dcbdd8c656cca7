"""Values as both databases can hold them.

PostgreSQL refuses NUL characters, lone surrogates and JSON's NaN, and an agent may print any of them; what one database
would refuse is written in a readable form on both, so that a result does not depend on where it is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from assay.model.redaction import known_secrets


def text(value: str) -> str:
    """
    >>> text("a\\x00b\\udc80")
    'a�b?'
    """
    return value.replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")


def may_be_refused(written: str) -> bool:
    """Whether a text or JSON may have a NUL or, escaped, a lone surrogate."""
    return "\x00" in written or "\\u0000" in written or "\\ud" in written


def to_json(value: object) -> str:
    """JSON without NaN. A mapping of any kind becomes an object, and what JSON cannot express, such as a date, its text.

    >>> to_json({"loss": float("nan"), "ok": [1, "é"]})
    '{"loss": "nan", "ok": [1, "é"]}'
    """
    # Nearly every value is fine, so the plain way is tried first; the copy without what a database would refuse is made only
    # where it fails: NaN raises ValueError, a lone surrogate UnicodeEncodeError, which is one, and NUL shows as \u0000.
    try:
        written = _dumps(value)
        written.encode()
    except ValueError:
        return _dumps(_holdable(value))
    return written if "\\u0000" not in written else _dumps(_holdable(value))


def redact_json(value: object) -> str:
    """Redact secrets in the keys and values of JSON data."""
    return known_secrets().redact_json(to_json(value))


def redact_text(value: str) -> str:
    return known_secrets().redact_text(text(value))


def _dumps(value: object) -> str:
    return json.dumps(
        value,
        ensure_ascii=False,
        allow_nan=False,
        default=lambda other: dict(other) if isinstance(other, Mapping) else str(other),
    )


def _holdable(value: object) -> object:
    """Return a copy without values that databases reject."""
    match value:
        case str():
            return text(value)
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {text(str(key)): _holdable(item) for key, item in value.items()}
        case list() | tuple():
            return [_holdable(item) for item in value]
        case _:
            return value


def from_json(written: str) -> Any:
    return json.loads(written)


def instant(seconds: float) -> datetime:
    """Seconds since the epoch as a point in time."""
    return datetime.fromtimestamp(seconds, UTC)
