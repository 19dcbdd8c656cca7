"""JSON by the C functions of the standard library, without `json` itself: its import takes longer than most tests."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dumps(value: Any) -> str:
    return "".join(_encode(value, 0))


def loads(text: str) -> Any:
    """ValueError for anything that is not one JSON value."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("this is not JSON") from None
    if text[end:].strip():
        raise ValueError("there is something after the JSON")
    return value


def _refuse(value: object) -> object:
    raise ValueError(f"{type(value).__name__} is not plain data")


class _Context:
    """What the scanner reads from a JSONDecoder: how to make each kind of value."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__
    memo: dict[str, str] = {}  # noqa: RUF012 - as the scanner wants it


_scan: Any
_encode: Any
try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    _scan = make_scanner(_Context())  # type: ignore[arg-type]
    _encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, True)
except (ImportError, TypeError, AttributeError):
    # Another implementation of Python.
    import json

    _scan, _encode = json.JSONDecoder().raw_decode, json.JSONEncoder().iterencode
