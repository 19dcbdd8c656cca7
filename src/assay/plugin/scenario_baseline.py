"""The calm that a scenario compares with: a load at the base rate, and when an agent is back to what it was then."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.bottleneck import MOST_ERRORS
from assay.model.load import Arrivals, Distribution, Load, Moment
from assay.model.stress import CalmErrors
from assay.stats.resilience import is_as_in_calm

SLACK = 5.0
"""Times the calm P95: the objective where none is given."""
NEAR = 1.1
"""Latency within a tenth of what it was counts as recovered."""
NOISE_SECONDS = 0.01
"""A difference that this machine itself may make."""
NO_ERRORS = CalmErrors()
_MOMENTARY = 0.5
"""Seconds: what is over sooner is a hiccup and no recovery."""
_FEWEST = 20
"""Answers below which a latency in calm says too little."""


def calm_load(rate: float, length: float, cases: int = 0, wanted: int = 0) -> Load:
    """Long enough for a handful of answers, and for each case of a suite, however slow the agent; ten times as long at most.

    For as many answers as are `wanted` beyond that it lasts three times as long at most.
    """
    whole = min(length * 10, max(length, max(_FEWEST, cases) / rate))
    whole = max(whole, min(length * 3, wanted / rate))
    return Load(Arrivals.CONSTANT, stages=((whole, rate, rate),), seconds=whole)


def longest_in_calm(calm: Distribution) -> float:
    """Seconds of latency that are still near that in calm."""
    middle = calm.intervals.get("p50", (calm.p50, calm.p50))[1]
    return max(NEAR * middle, calm.p95, calm.p50 + NOISE_SECONDS)


def find_recovery_time(
    moments: Sequence[Moment], since: float, calm: Distribution, errors: CalmErrors = NO_ERRORS
) -> tuple[float, bool]:
    """Seconds from `since` until latency is near the calm one and stays there with hardly an error; False where it was not seen.

    Near is within a tenth of the median, within what 95 of 100 answers took at the base rate, or within ten milliseconds. All fine after
    half a second means that there was nothing to recover from: 0.
    """
    limit = longest_in_calm(calm)
    # What only came to its end then was due before: it says nothing about then.
    later = [moment for moment in moments if moment.begin >= since - 1e-9 and moment.sent]
    fine = [_is_fine(moment, limit, errors) for moment in later]
    for place, moment in enumerate(later):
        if all(fine[place : place + 2]):
            recovery_seconds = max(0.0, moment.begin - since)
            return (recovery_seconds if recovery_seconds > _MOMENTARY else 0.0), True
    # Where all is so late that nothing of what is due then is even sent, there is nothing to look at, for as long as was watched.
    last = max((moment.begin + moment.seconds for moment in moments), default=since)
    return max(0.0, last - since), False


def _is_fine(moment: Moment, limit: float, calm: CalmErrors) -> bool:
    """Whether a moment is as in calm: its median latency is within the limit, and no more of it failed than usual."""
    if moment.latency_p50 is None or moment.latency_p50 > limit:
        return False
    ended = moment.completed + moment.failed
    is_rare = not ended or moment.failed / ended <= MOST_ERRORS
    return is_rare or is_as_in_calm(moment.failed, ended, calm.failed, calm.ended)
