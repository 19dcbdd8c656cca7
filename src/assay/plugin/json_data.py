"""JSON of any value, for documents that findings and reporters write."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from assay.model.redaction import CleanJson


def format_strict_json(value: object, indent: int | None = None) -> str:
    """JSON text without NaN and infinity, which are no JSON: `to_json_data` makes them null."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def to_json_data(value: object) -> Any:
    """Anything as JSON can hold it: what is not a finite number becomes null, what is unknown its text.

    Unlike the codec of the model it never fails, since it also gets what experiments and agents returned. NumPy's numbers are
    known by their method `item`, so that NumPy need not be imported.
    """
    # By its own type first, which is all there is to most values of a document of a megabyte.
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bool or kind is CleanJson:
        return value
    if kind is dict:
        return {key if type(key) is str else str(key): to_json_data(item) for key, item in value.items()}  # type: ignore[attr-defined]
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_json_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_data(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    number = getattr(value, "item", None)
    return to_json_data(number()) if callable(number) else str(value)
