"""Compares values of params and settings, which may be lists and mappings."""

from __future__ import annotations

import json


def same_value(value: object) -> str:
    """A text that is equal for equal values, so that it can be a key; the order of mappings does not matter.

    >>> same_value({"b": 1, "a": [2]}) == same_value({"a": [2], "b": 1})
    True
    """
    return json.dumps(value, sort_keys=True, default=str)
