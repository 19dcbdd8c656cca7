"""Finds out how fast the machine itself was.

A fixed workload is timed before and during every run and stored among the facts of its environment (`noise` and
`noise_during`). If the same work took longer in one run than in another, the machine was slower, and a slower agent may be
none. All shifts are differences of natural logarithms: 0.1 is about 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from assay.model.regression import Pace

_LEAST = 0.05
"""A pace that differs by less than 5 % is the same: the probe before a run lasts only a twentieth of a second."""


def pace_of(facts: Mapping[str, object]) -> Pace | None:
    """The pace before a run, from the facts of its environment, without the time in which the probe had no processor.

    None where the facts have no probe, and where nodes made the executions, which this machine says nothing about.
    """
    noise = facts.get("noise")
    if not isinstance(noise, Mapping) or "nodes" in facts:
        return None
    try:
        seconds = noise["seconds"] / noise["chunks"] * (1 - noise["lost"])
        return Pace(float(seconds), float(noise["spread"])) if seconds > 0 else None
    except (KeyError, TypeError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True)
class MachineShift:
    """The slowdown of the machine itself between two runs, as a logarithm."""

    value: float
    error: float = 0.0

    def explains(self, slower: float) -> float:
        """How much of a change of time the machine may explain, in that direction, as a logarithm of at least 0.

        `slower` is the change as a logarithm, below 0 if it became faster.
        """
        toward = self.value if slower > 0 else -self.value
        return max(0.0, toward + self.spread)

    @property
    def spread(self) -> float:
        return _ERRORS * self.error


_ERRORS = 2.0
"""A shift counts only beyond this many standard errors."""
_FEWEST_SAMPLES = 3
_LARGEST_ERROR = 0.2
"""The largest error of a shift that is used: a machine that is busy in both runs must not excuse a doubled time."""


def shift_between(before: Mapping[str, object], after: Mapping[str, object]) -> MachineShift | None:
    """The shift between two runs: by the probes during both runs, else by the probes before them.

    A shift within twice its error counts as 0. None where there are no probes, and where those before the runs do not differ
    by more than they vary within themselves.
    """
    seen = [_read_pace_during(facts) for facts in (before, after)]
    if seen[0] is not None and seen[1] is not None:
        (first, error), (second, other) = seen[0], seen[1]
        shift, spread = second - first, math.hypot(error, other)
        is_established = abs(shift) > _ERRORS * spread
        return MachineShift(shift if is_established else 0.0, min(spread, _LARGEST_ERROR))
    factor = compute_slowdown([pace_of(before)], [pace_of(after)])
    return None if factor is None else MachineShift(math.log(factor))


def _read_pace_during(facts: Mapping[str, object]) -> tuple[float, float] | None:
    """The mean logarithm of the pace during a run and its standard error; None with too few samples."""
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


def compute_slowdown(before: Sequence[Pace | None], after: Sequence[Pace | None]) -> float | None:
    """The factor by which the machine takes longer; None if that is no more than its probes vary within themselves."""
    first = [pace for pace in before if pace is not None]
    second = [pace for pace in after if pace is not None]
    if not first or not second:
        return None
    factor = median(pace.seconds for pace in second) / median(pace.seconds for pace in first)
    spreads = (median(pace.spread for pace in side) / math.sqrt(len(side)) for side in (first, second))
    return factor if abs(math.log(factor)) > math.log1p(max(_LEAST, *spreads)) else None
