"""Looking after every pair, and stopping when it is decided, without more false alarms than one look would have.

A confidence sequence holds the true ratio at all looks together with its level. This one is the normal mixture of
Robbins (1970) with an estimated variance (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024), on logarithms of the
ratios of pairs. Stragglers are pulled in to three robust deviations (Huber 1964), or a single one would hide a change for
dozens of pairs. It is plain Python: whoever runs the pairs can ask without loading numpy.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from enum import StrEnum

BURN_IN = 10
"""Pairs before the first look: with fewer, the estimated variance is too often far too small."""
CAP = 60
REACH = 3.0
_SIGMA = 1.4826
_LARGEST_LOG = math.log(sys.float_info.max)


class Decision(StrEnum):
    """About B ÷ A."""

    HIGHER = "higher"
    LOWER = "lower"
    SAME = "same"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Look:
    """What is known after so many pairs; the interval is unbounded before the first look."""

    pairs: int
    decision: Decision
    is_over: bool
    """Decided, or as many pairs as there may be."""
    ratio: float = math.nan
    low: float = 0.0
    high: float = math.inf
    left_out: int = 0
    """Pairs without two positive finite values: they tell nothing, but count towards the cap."""


class PairSequence:
    """Pairs of B against A, one by one.

    >>> sequence = PairSequence()
    >>> looks = [sequence.add(1.0 + i % 3 / 100, 1.2 + i % 4 / 100) for i in range(10)]
    >>> looks[8].decision.value, looks[9].decision.value, looks[9].is_over
    ('open', 'higher', True)
    """

    def __init__(
        self, *, tolerance: float = 0.03, level: float = 0.95, burn_in: int = BURN_IN, cap: int = CAP
    ) -> None:
        self._width = math.log1p(tolerance)
        self._alpha = 1 - level
        self._burn_in = max(2, burn_in)
        self._cap = cap
        self._steps: list[float] = []
        self._left_out = 0
        # The interval is then about as narrow as it can be at the cap (Waudby-Smith et al., equation 9).
        surprise = -2 * math.log(self._alpha)
        self._mixing = (surprise + math.log1p(surprise)) / cap

    def add(self, a: float, b: float) -> Look:
        if a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b):
            self._steps.append(math.log(b) - math.log(a))
        else:
            self._left_out += 1
        is_full = len(self._steps) + self._left_out >= self._cap
        if len(self._steps) < self._burn_in:
            return Look(len(self._steps), Decision.OPEN, is_full, left_out=self._left_out)
        middle, radius = self._interval()
        decision = self._decided(middle, radius)
        return Look(
            len(self._steps),
            decision,
            is_full or decision is not Decision.OPEN,
            _ratio(middle),
            _ratio(middle - radius),
            _ratio(middle + radius),
            self._left_out,
        )

    def _interval(self) -> tuple[float, float]:
        pulled, share = _pulled_in(self._steps)
        n, mixed = len(pulled), len(pulled) * self._mixing + 1
        middle = math.fsum(pulled) / n
        # A sample that was pulled in shows too small a spread, by the share that was left alone (Tukey and McLaughlin 1963).
        spread = math.sqrt(math.fsum((step - middle) ** 2 for step in pulled) / (n - 1)) / share
        surprise = math.log(math.sqrt(mixed) / self._alpha)
        return middle, spread * math.sqrt(2 * mixed * surprise / (n * n * self._mixing))

    def _decided(self, middle: float, radius: float) -> Decision:
        if abs(middle) + radius <= self._width:
            return Decision.SAME
        if abs(middle) <= max(radius, self._width):
            return Decision.OPEN
        return Decision.HIGHER if middle > 0 else Decision.LOWER


def _pulled_in(steps: list[float]) -> tuple[list[float], float]:
    """The steps with stragglers moved to the border, and the share of the others, at least one half."""
    middle = _median(steps)
    reach = REACH * _SIGMA * _median([abs(step - middle) for step in steps])
    if not reach:
        return steps, 1.0
    low, high = middle - reach, middle + reach
    inside = sum(low <= step <= high for step in steps)
    return [low if step < low else min(step, high) for step in steps], max(0.5, inside / len(steps))


def _median(values: list[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else ordered[half - 1] / 2 + ordered[half] / 2


def _ratio(step: float) -> float:
    return math.exp(min(step, _LARGEST_LOG))
