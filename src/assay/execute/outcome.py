"""What an experiment returned: numbers are measurements, the rest is output, and nonsense is found out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_OUTPUT_CHARACTERS = 100_000


@dataclass(slots=True)
class Outcome:
    measurements: dict[str, float] = field(default_factory=dict)
    output: dict[str, Any] | None = None
    problem: str | None = None


def sorted_out(result: Any) -> Outcome:
    """Split a returned mapping into measurements and output; nested mappings get dotted names."""
    outcome = Outcome()
    if result is None:
        return outcome
    if not isinstance(result, Mapping):
        outcome.problem = (
            f"execute_once returned {_shown(result)}; it must return a mapping of metrics, or nothing."
        )
        return outcome
    _take(result, "", outcome)
    return outcome


def _take(mapping: Mapping[Any, Any], prefix: str, outcome: Outcome) -> None:
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _take(value, f"{name}.", outcome)
        elif (number := _number(value)) is None:
            outcome.output = {**(outcome.output or {}), name: plain(value)}
        elif math.isfinite(number):
            outcome.measurements[name] = number
        else:
            outcome.problem = f"Metric '{name}' is {number}; a metric must be a finite number."


def _number(value: Any) -> float | None:
    """A float for anything that is a number, numpy's scalars included."""
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return _number(value.item())
    return None


def plain(value: Any) -> Any:
    """The value as JSON can hold it; what it cannot hold is described, what is too long is cut."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode("utf-8")
        return text if len(text) <= MAX_OUTPUT_CHARACTERS else text[:MAX_OUTPUT_CHARACTERS] + "… (cut)"
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in list(value.items())[:1000]}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in list(value)[:1000]]
    return _shown(value)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= 200 else text[:199] + "…"
