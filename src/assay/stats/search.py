"""Finds the smallest sample size with enough power, when only simulation can estimate the power.

`assay power` asks how many cases or rounds a comparison needs to find a change with a given power. For most tests there
is no formula, so the comparison is simulated at a size, and the size is searched: doubled or halved until one size is
enough and the next smaller is not, then narrowed between the two, then confirmed with more simulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.stats.sample import quantile
from assay.stats.verdicts import wilson

FIRST = 20
"""Simulations at a size before anything is concluded from them."""
MOST = 200
"""Simulations at a size while the search continues."""
FINAL = 400
"""Simulations at the size that was found."""
PRECISION = 0.03
"""Sizes that differ by less than this share are not told apart."""
SLACK = 0.02
"""How much less than the power the final simulations may show."""
_Z99 = 2.5758293035489


@dataclass(slots=True)
class Successes:
    """How often simulations at each size succeed; simulation number n uses the same random numbers at every size."""

    succeeds: Callable[[int, int], bool]
    """Whether the simulation of this size and number succeeds."""
    counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Size to successes and simulations."""

    def share(self, size: int) -> float:
        successful, simulations = self.counts[size]
        return successful / simulations

    @property
    def largest_share(self) -> float:
        """At the largest size that was tried."""
        return self.share(max(self.counts))

    def simulate(self, size: int, simulations: int) -> None:
        """Simulate until there are so many at this size; those already made count."""
        successful, simulated = self.counts.get(size, (0, 0))
        successful += sum(self.succeeds(size, number) for number in range(simulated, simulations))
        self.counts[size] = successful, max(simulated, simulations)

    def is_enough(self, size: int, power: float) -> bool:
        """Simulates on until the share is clearly above or below."""
        simulated = FIRST
        while True:
            self.simulate(size, simulated)
            share = self.share(size)
            low, high = wilson(share, simulated, _Z99)
            if not low <= power <= high or simulated >= MOST:
                return share >= power
            simulated = min(MOST, 2 * simulated)


def smallest_size(successes: Successes, start: int, smallest: int, largest: int, power: float) -> int | None:
    """The smallest size at which `power` of the simulations succeed; None where the largest is not enough."""
    low, enough = _bracket(successes, min(max(start, smallest), largest), smallest, largest, power)
    if enough is None:
        return None
    high = enough
    while high - low > max(1, PRECISION * high):
        middle = _between(successes, low, high, power)
        low, high = (low, middle) if successes.is_enough(middle, power) else (middle, high)
    while high <= largest:
        successes.simulate(high, FINAL)
        if successes.share(high) >= power - SLACK:
            return high
        high = math.ceil(high * (1 + PRECISION))
    return None


def _bracket(
    successes: Successes, start: int, smallest: int, largest: int, power: float
) -> tuple[int, int | None]:
    """A size that is not enough, or one below the smallest, and one that is; a factor of two apart or less."""
    if successes.is_enough(start, power):
        high = start
        while high > smallest:
            low = max(smallest, high // 2)
            if not successes.is_enough(low, power):
                return low, high
            high = low
        return smallest - 1, smallest
    low = start
    while low < largest:
        high = min(largest, (4 if successes.share(low) < power / 4 else 2) * low)
        if successes.is_enough(high, power):
            return low, high
        low = high
    return low, None


def _between(successes: Successes, low: int, high: int, power: float) -> int:
    """Where a line between both shares, on the scale on which power grows with √n, meets the power; inside of both."""
    if low not in successes.counts:
        return (low + high) // 2
    # Half a success more keeps shares of 0 and 1 finite on the normal scale.
    left, right = (
        quantile((successful + 0.5) / (simulations + 1))
        for successful, simulations in (successes.counts[size] for size in (low, high))
    )
    place = (quantile(power) - left) / (right - left) if right > left else 0.5
    root = math.sqrt(low) + min(max(place, 0.1), 0.9) * (math.sqrt(high) - math.sqrt(low))
    return min(max(round(root**2), low + 1), high - 1)
