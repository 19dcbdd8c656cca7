from __future__ import annotations

import json


def same_value(value: object) -> str:
    """Equal text for equal values, also of lists and mappings.

    >>> same_value({"b": 1, "a": [2]}) == same_value({"a": [2], "b": 1})
    True
    """
    return json.dumps(value, sort_keys=True, default=str)
