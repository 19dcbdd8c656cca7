"""Sequential tests: look after every pair and stop once decided, with no more false alarms than a single look.

A confidence sequence holds the true ratio at all looks together with its level. This one is the normal mixture of
Robbins (1970) with an estimated variance (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024), on logarithms of the
ratios of pairs. Stragglers are pulled in to three robust deviations (Huber 1964), or a single one would hide a change for
dozens of pairs.

Scores lie between 0 and 1 and are often all or nothing, where an estimated variance is too often zero. Their differences
are bet on (Waudby-Smith and Ramdas 2024, section 4): that holds for whatever lies between bounds, after any number of pairs.

It is plain Python, so that the process that runs the pairs need not load numpy.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

BURN_IN = 10
"""Pairs before the first look: with fewer, the estimated variance is too often far too small."""
CAP = 60
REACH = 3.0
_SIGMA = 1.4826
_STAKES = (0.04, 0.08, 0.15, 0.25, 0.35, 0.45, 0.6, 0.75, 0.9)
"""Stakes of the strategies that bet on scores: small ones win where differences are small or noisy, large ones where they are clear."""
_HALVINGS = 40
_LARGEST_LOG = math.log(sys.float_info.max)


class Decision(StrEnum):
    """About B ÷ A, or of scores about B − A."""

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
    """For scores, this and its ends are a difference."""
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
        decision = self._decide(middle, radius)
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
        pulled, share = _clamp_outliers(self._steps)
        n, mixed = len(pulled), len(pulled) * self._mixing + 1
        middle = math.fsum(pulled) / n
        # A sample that was pulled in shows too small a spread, by the share that was left alone (Tukey and McLaughlin 1963).
        spread = math.sqrt(math.fsum((step - middle) ** 2 for step in pulled) / (n - 1)) / share
        surprise = math.log(math.sqrt(mixed) / self._alpha)
        return middle, spread * math.sqrt(2 * mixed * surprise / (n * n * self._mixing))

    def _decide(self, middle: float, radius: float) -> Decision:
        if abs(middle) + radius <= self._width:
            return Decision.SAME
        if abs(middle) <= max(radius, self._width):
            return Decision.OPEN
        return Decision.HIGHER if middle > 0 else Decision.LOWER


class ScoreSequence:
    """Pairs of scores from 0 to 1, one by one; decided by the difference B − A of their means.

    >>> sequence = ScoreSequence(cap=200)
    >>> looks = [sequence.add(0.0, float(i % 4 > 0)) for i in range(30)]
    >>> [look.decision.value for look in (looks[8], looks[-1])], looks[-1].is_over
    (['open', 'higher'], True)
    """

    def __init__(
        self, *, tolerance: float = 0.01, level: float = 0.95, burn_in: int = BURN_IN, cap: int = CAP
    ) -> None:
        self._tolerance = tolerance
        self._riches = math.log(2 / (1 - level))
        self._burn_in = max(2, burn_in)
        self._cap = cap
        self._left_out = 0
        self._differences: list[float] = []
        self._above, self._below = _Bets(0.0), _Bets(0.0)
        self._within = (_Bets(-tolerance), _Bets(-tolerance))

    def add(self, a: float, b: float) -> Look:
        """The interval is worked out once it is over: until then only what is to be decided is looked at."""
        if 0 <= a <= 1 and 0 <= b <= 1:
            difference = b - a
            self._differences.append(difference)
            self._above.take(difference)
            self._below.take(-difference)
            for bets, sign in zip(self._within, (1, -1), strict=True):
                bets.take(sign * difference)
        else:
            self._left_out += 1
        pairs = len(self._differences)
        is_full = pairs + self._left_out >= self._cap
        decision = self._decide() if pairs >= self._burn_in else Decision.OPEN
        if decision is Decision.OPEN and not is_full:
            return Look(pairs, decision, False, low=-1.0, high=1.0, left_out=self._left_out)
        low, middle, high = self._interval()
        return Look(pairs, decision, True, middle, low, high, self._left_out)

    def _decide(self) -> Decision:
        if all(bets.gain >= self._riches for bets in self._within):
            return Decision.SAME
        middle = math.fsum(self._differences) / len(self._differences)
        if self._above.gain >= self._riches and middle > self._tolerance:
            return Decision.HIGHER
        if self._below.gain >= self._riches and middle < -self._tolerance:
            return Decision.LOWER
        return Decision.OPEN

    def _interval(self) -> tuple[float, float, float]:
        if not self._differences:
            return -1.0, math.nan, 1.0
        middle = math.fsum(self._differences) / len(self._differences)
        low = self._lowest(self._differences, middle)
        high = -self._lowest([-difference for difference in self._differences], -middle)
        return low, middle, high

    def _lowest(self, differences: list[float], middle: float) -> float:
        """The smallest mean that bets against it have not become rich on, by halving."""
        low, high = -1.0, middle
        counted = Counter(differences).items()
        for _ in range(_HALVINGS):
            edge = low / 2 + high / 2
            low, high = (edge, high) if _gain(counted, edge) >= self._riches else (low, edge)
        return low


class _Bets:
    """Test martingale: each strategy bets a fixed share of its wealth on the mean difference exceeding `edge`.

    If it does not, the probability that their total wealth ever exceeds x times the initial one is at most 1/x.
    """

    def __init__(self, edge: float) -> None:
        self._edge = edge
        self._gains = [0.0] * len(_STAKES)

    def take(self, difference: float) -> None:
        step = _step(difference, self._edge)
        self._gains = [
            gain + math.log1p(stake * step) for gain, stake in zip(self._gains, _STAKES, strict=True)
        ]

    @property
    def gain(self) -> float:
        return _together(self._gains)


def _step(difference: float, edge: float) -> float:
    """What a stake wins: at the worst, where the difference is −1, all of it is lost."""
    return (difference - edge) / (1 + edge)


def _gain(counted: Iterable[tuple[float, int]], edge: float) -> float:
    """The same for all differences at once."""
    if edge <= -1:
        return math.inf
    steps = [(_step(difference, edge), number) for difference, number in counted]
    return _together(
        [math.fsum(number * math.log1p(stake * step) for step, number in steps) for stake in _STAKES]
    )


def _together(gains: list[float]) -> float:
    """Logarithm of the mean of what they own."""
    most = max(gains)
    return most + math.log(math.fsum(math.exp(gain - most) for gain in gains) / len(gains))


def _clamp_outliers(steps: list[float]) -> tuple[list[float], float]:
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
