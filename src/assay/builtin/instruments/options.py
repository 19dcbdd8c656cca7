"""Options that a spec gives to an instrument, checked before anything runs."""

from __future__ import annotations

from assay.errors import PlanError


def at_least(instrument: str, option: str, value: object, least: float) -> float:
    """The value, when it is a number of at least that size."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"Instrument '{instrument}': {option} must be a number, not {value!r}.")
    if not value >= least:
        raise PlanError(f"Instrument '{instrument}': {option} must be at least {least:g}, not {value}.")
    return value


def whole(instrument: str, option: str, value: object, least: int) -> int:
    """The value, when it is a whole number of at least that size."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"Instrument '{instrument}': {option} must be a whole number, not {value!r}.")
    return int(at_least(instrument, option, value, least))
