"""How fast the machine itself was: a fixed piece of work is timed before and during every run, so a slower machine shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from assay.model.regression import Pace

_LEAST = 0.05
"""Below this a pace is the same: the probe lasts a twentieth of a second."""


def pace_of(facts: Mapping[str, object]) -> Pace | None:
    """From the facts of a run's environment; time in which the probe had no processor does not count."""
    noise = facts.get("noise")
    if not isinstance(noise, Mapping):
        return None
    try:
        seconds = noise["seconds"] / noise["chunks"] * (1 - noise["lost"])
        return Pace(float(seconds), float(noise["spread"])) if seconds > 0 else None
    except (KeyError, TypeError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True)
class MachineShift:
    """By how much the machine itself was slower in one run than in another, as a logarithm."""

    value: float
    error: float = 0.0

    def explains(self, slower: float) -> float:
        """How much of a time that is `slower` (a logarithm; below 0: faster) may be the machine's, in that direction."""
        toward = self.value if slower > 0 else -self.value
        return max(0.0, toward + self.spread)

    @property
    def spread(self) -> float:
        return _ERRORS * self.error


_ERRORS = 2.0
_FEWEST_SAMPLES = 3
_LARGEST_ERROR = 0.2
"""Of the shift, as far as it excuses anything: a machine that is busy in both runs must not excuse a doubled time."""


def shift_between(before: Mapping[str, object], after: Mapping[str, object]) -> MachineShift | None:
    """From the facts of two runs: by what was seen while they went on, else by the probes before them.

    A shift within twice its error is none. None where nobody looked, and where the probes alone do not differ by more than
    they vary within themselves.
    """
    seen = [_seen_during(facts) for facts in (before, after)]
    if seen[0] is not None and seen[1] is not None:
        (first, error), (second, other) = seen[0], seen[1]
        shift, spread = second - first, math.hypot(error, other)
        is_established = abs(shift) > _ERRORS * spread
        return MachineShift(shift if is_established else 0.0, min(spread, _LARGEST_ERROR))
    factor = moved_by([pace_of(before)], [pace_of(after)])
    return None if factor is None else MachineShift(math.log(factor))


def _seen_during(facts: Mapping[str, object]) -> tuple[float, float] | None:
    """Mean logarithm of the pace and its standard error."""
    seen = facts.get("noise_during")
    if not isinstance(seen, Mapping):
        return None
    try:
        samples, spread = int(seen["samples"]), float(seen["spread"])
        if samples < _FEWEST_SAMPLES:
            return None
        return math.log(seen["chunk_seconds"]), spread / math.sqrt(samples)
    except (KeyError, TypeError, ValueError):
        return None


def moved_by(before: Sequence[Pace | None], after: Sequence[Pace | None]) -> float | None:
    """Factor by which the machine takes longer, where that is more than its probes vary within themselves."""
    first = [one for one in before if one is not None]
    second = [one for one in after if one is not None]
    if not first or not second:
        return None
    factor = median(one.seconds for one in second) / median(one.seconds for one in first)
    return factor if abs(math.log(factor)) > math.log1p(_doubt(first, second)) else None


def _doubt(first: Sequence[Pace], second: Sequence[Pace]) -> float:
    return max(
        _LEAST, *(median(one.spread for one in side) / math.sqrt(len(side)) for side in (first, second))
    )
