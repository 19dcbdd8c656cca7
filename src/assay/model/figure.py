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


def format_span(span: Figure) -> str:
    """
    >>> format_span(Figure(0.75, 0.5, 1.0)), format_span(Figure(0.5))
    ('0.750 [0.500, 1.000]', '0.500')
    """
    if span.low is None or span.high is None:
        return f"{span.value:.3f}"
    return f"{span.value:.3f} [{span.low:.3f}, {span.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of a total, with the share and its 95 % interval, which are None if the total is 0."""

    count: int
    of: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
