"""Figures as every format writes them: an estimate reads the same in the terminal, in Markdown and in HTML.

Values come in seconds, bytes and usd; a unit that suits their size is chosen here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay.model import Comparison, Estimate
from assay.units import SIZES, TIMES, Steps, format_signed, show, significant, step_for

NOTHING = "–"
_Known = TypeVar("_Known")

_STEPS: Mapping[str, Steps] = {"s": TIMES, "bytes": SIZES, "share": ((0.01, "%"),)}
_LONG_TIMES: Steps = ((3600, "h"), (60, "min"))
_TURN = {"min": 600, "h": 3 * 3600}
"""Minutes and hours begin late, for 90 s is easier to read on an axis than 1.5 min."""


@dataclass(frozen=True, slots=True)
class UnitScale:
    """One shown unit for a whole chart or line: a value divided by `factor` is in `label`."""

    factor: float
    label: str

    def of(self, value: float) -> float:
        return value / self.factor


def scale_for(unit: str, magnitude: float) -> UnitScale:
    """
    >>> scale_for("s", 0.0123), scale_for("bytes", 5 * 2**20).label, scale_for("tokens", 7).label
    (UnitScale(factor=0.001, label='ms'), 'MiB', 'tokens')
    """
    steps = _STEPS.get(unit)
    if steps is None:
        return UnitScale(1.0, {"1/s": "per second", "usd": "USD"}.get(unit, unit))
    if not magnitude:
        return UnitScale(*next((step for step in steps if step[0] == 1), steps[-1]))
    long = [step for step in _LONG_TIMES if unit == "s" and abs(magnitude) >= _TURN[step[1]]]
    return UnitScale(*long[0]) if long else UnitScale(*step_for(magnitude, steps))


def format_known(value: _Known | None, text: Callable[[_Known], str]) -> str:
    """The text of a value that may be unknown.

    >>> format_known(0.25, str), format_known(None, str)
    ('0.25', '–')
    """
    return NOTHING if value is None else text(value)


def with_interval(estimate: Estimate) -> str:
    """The median and its interval in one unit: `12.3 ms [11.9, 12.8]`."""
    return interval_text(estimate.median, estimate.low, estimate.high, estimate.metric.unit)


_FAR = 100


def interval_text(middle: float, low: float | None, high: float | None, unit: str) -> str:
    """
    >>> interval_text(0.0123, 0.0119, 0.0128, "s"), interval_text(100.2, 100.14, 100.31, "tokens")
    ('12.3 ms [11.9, 12.8]', '100.2 tokens [100.1, 100.3]')
    >>> interval_text(0.5, None, None, ""), interval_text(0.000882, -0.0000027, 0.139, "s")
    ('0.5', '0.882 ms [-0.0027, 139]')
    >>> interval_text(0.5, 0.45, 0.55, "share")
    '50 % [45, 55]'
    """
    if low is None or high is None or not math.isfinite(middle):
        return show(middle, unit)
    if unit == "s" and abs(middle) >= 60:
        return f"{show(middle, unit)} [{show(low, unit)}, {show(high, unit)}]"
    # All three numbers share one unit, so that they can be compared at a glance: 0.9 s [850 ms, 1.1 s] cannot.
    # Three digits, or as many as it takes to tell the ends of a narrow interval apart.
    digits = next((n for n in range(3, 7) if significant(low, n) != significant(high, n)), 3)
    largest = max(abs(low), abs(high))
    # In the unit of a middle that is close to 0, the ends would have many digits.
    magnitude = largest if not middle or largest > _FAR * abs(middle) else middle
    scale = scale_for(unit, magnitude) if unit in _STEPS else UnitScale(1.0, unit)
    texts = [significant(scale.of(value), digits) for value in (middle, low, high)]
    label = "/s" if unit == "1/s" else scale.label
    first = f"${texts[0]}" if unit == "usd" else f"{texts[0]} {label}".strip()
    return f"{first} [{texts[1]}, {texts[2]}]"


def ratio_text(comparison: Comparison) -> str:
    """
    The ratio B ÷ A with its interval: `1.08 [1.05, 1.12]`.
    """
    if comparison.difference is not None:
        ends = ", ".join(
            format_signed(end or 0.0) for end in (comparison.difference_low, comparison.difference_high)
        )
        return f"{format_signed(comparison.difference)} [{ends}]"
    if comparison.ratio is None:
        return NOTHING
    return interval_text(comparison.ratio, comparison.low, comparison.high, "")


def cv_text(estimate: Estimate) -> str:
    return NOTHING if estimate.cv is None else f"{significant(estimate.cv * 100, 2)} %"


def size_text(estimate: Estimate) -> str:
    """How much is behind an estimate: `500 / 10` is 500 executions in 10 units."""
    return f"{estimate.n:,} / {estimate.units:,}"
