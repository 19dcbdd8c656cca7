"""How fast the machine itself was: a fixed piece of work is timed before every run, so a slower machine shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
