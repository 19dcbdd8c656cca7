from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval; the ends are None where there is too little to tell them from."""

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    pairs: int = 0
    """Observations that it rests on, where they come in pairs."""
    method: str = ""
