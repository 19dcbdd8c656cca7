"""What an experiment returned: numbers are measurements, the rest is output, and nonsense is found out.

The worker calls `split_result` after each execution. What comes out is plain, finite, bounded in size and can be written to
any database, whatever the experiment returned: nothing here raises for a strange value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

MAX_OUTPUT_CHARACTERS = 100_000
MAX_OUTPUT_DEPTH = 50
_LONGEST_SHOWN = 200


@dataclass(slots=True)
class Outcome:
    """What became of one execution of an experiment."""

    measurements: dict[str, float] = field(default_factory=dict)
    """Finite numbers by the name of their metric."""
    output: dict[str, Any] | None = None
    """What is kept beside the numbers, as plain data."""
    problem: str | None = None
    """What is wrong with the result itself: the execution counts as invalid."""
    failure: str | None = None
    """What went wrong with the thing under test, though there is something to keep."""
    seconds: float | None = None
    """Where the experiment keeps the time itself, because some of the call is none of the subject's."""
    detail: dict[str, Any] | None = None
    """Plain data for analyses and reports that know this experiment."""


def split_result(result: Any) -> Outcome:
    """Split a returned mapping into measurements and output; nested mappings get dotted names."""
    outcome = Outcome()
    if result is None:
        return outcome
    if not isinstance(result, Mapping):
        outcome.problem = (
            f"execute_once returned {format_value(result)}; it must return a mapping of metrics, or nothing."
        )
        return outcome
    try:
        _take(result, "", outcome)
    except Exception as error:
        # What was returned is the experiment's own code too: its items, its names, its numbers.
        outcome.problem = (
            f"What execute_once returned cannot be read: {type_name(error)}: {format_value(error)}"
        )
    return outcome


def _take(mapping: Mapping[Any, Any], prefix: str, outcome: Outcome) -> None:
    """Sort the items of a mapping into the outcome; those of an inner mapping get its name and a dot before theirs."""
    for key, value in mapping.items():
        name = writable(f"{prefix}{key}")
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
    return _number(value.item()) if is_scalar(value) else None


def is_scalar(value: Any) -> bool:
    """Whether it is a number of numpy or the like, which `item` gives as Python's own."""
    return hasattr(value, "dtype") and getattr(value, "ndim", None) == 0 and hasattr(value, "item")


def plain(value: Any, depth: int = MAX_OUTPUT_DEPTH) -> Any:
    """The value as JSON can hold it; what it cannot hold is described, what is too long is cut."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 2**63 else format_value(value)
    if isinstance(value, str):
        text = writable(value[: MAX_OUTPUT_CHARACTERS + 1])
        if len(text) <= MAX_OUTPUT_CHARACTERS:
            return text
        return mark_shortened(text[:MAX_OUTPUT_CHARACTERS], len(value))
    if not depth:
        return format_value(value)
    if isinstance(value, Mapping):
        return {writable(str(key)): plain(item, depth - 1) for key, item in islice(value.items(), 1000)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth - 1) for item in islice(value, 1000)]
    return plain(value.item(), depth - 1) if is_scalar(value) else format_value(value)


def mark_shortened(beginning: str, size: int) -> str:
    """Mark a text as shortened, with a remark that reports look for."""
    return f"{beginning}… (shortened: {len(beginning):,} of {size:,} characters)"


def writable(text: str) -> str:
    """Remove what cannot be stored: lone surrogates, which no encoding can write, and NUL, which some
    databases refuse.
    """
    text = text.replace("\0", "�")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def format_value(value: Any) -> str:
    """What a value looks like, in a line; never raises."""
    try:
        text = writable(repr(value)[: _LONGEST_SHOWN + 1])
    except BaseException as error:
        text = f"<{type_name(value)} whose repr raises {type_name(error)}>"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def type_name(value: Any) -> str:
    """Return the name of the value's type, without asking its metaclass, which may do anything."""
    name = type.__dict__["__name__"].__get__(type(value))
    return writable(name)[:_LONGEST_SHOWN]
