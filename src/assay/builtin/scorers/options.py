"""Options that a suite gives to a scorer, checked before anything runs.

Each function takes the name of the scorer and of the option for the message, and returns the value with its type. A wrong
value raises PlanError, which the user sees before anything is measured.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from assay.errors import PlanError, did_you_mean


def option_error(scorer: str, option: str, problem: str) -> PlanError:
    return PlanError(f"Scorer '{scorer}': option '{option}' {problem}")


def flag(scorer: str, option: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise option_error(scorer, option, f"must be true or false, not {value!r}.")
    return value


def one_of(scorer: str, option: str, value: object, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        hint = did_you_mean(str(value), allowed)
        raise option_error(
            scorer, option, f"must be one of {', '.join(allowed)}, not {value!r}. {hint}".strip()
        )
    return value


def number(scorer: str, option: str, value: object, least: float = 0.0, most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise option_error(scorer, option, f"must be a number, not {value!r}.")
    if not least <= value <= most:
        bounds = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise option_error(scorer, option, f"must be {bounds}, not {value:g}.")
    return float(value)


def whole(scorer: str, option: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise option_error(scorer, option, f"must be a whole number, not {value!r}.")
    return int(number(scorer, option, value, least, most))


def threshold(scorer: str, value: object) -> float | None:
    """Check the similarity from which an output counts as right; None leaves the similarity as the score."""
    return None if value is None else number(scorer, "threshold", value, 0, 1)


def texts(scorer: str, option: str, value: object) -> tuple[str, ...]:
    """One text or several, none of them empty."""
    items: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    if not items or not all(isinstance(item, str) and item for item in items):
        raise option_error(
            scorer, option, f"must be a text or a list of texts, none of them empty, not {value!r}."
        )
    return tuple(items)
