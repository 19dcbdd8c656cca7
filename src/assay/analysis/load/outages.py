"""Stretches of a load in which the server answered nothing: what an error rate over all of it hides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from assay.model.load import LoadResult, Moment, Outage

SUSTAINED_SECONDS = 3.0
"""A breaking point lasts at least as long."""
_SHARE_OF_A_SHORT_LOAD = 0.25
UNAVAILABLE_SHARE = 0.1
UNAVAILABLE_ERROR_RATE = 0.5
_FEWEST = 3
_CHANCE = 0.001


def find_outages(moments: Sequence[Moment], seconds: float) -> tuple[Outage, ...]:
    """Stretches of at least 3 s, or a quarter of a load shorter than 12 s, in which every request that was due failed.

    Judged by when requests were due, so that answers that take long do not look like a pause. Where errors are frequent all the
    time, some follow each other by chance: a stretch counts if that has a probability below 0.1 %.
    """
    shortest = min(SUSTAINED_SECONDS, _SHARE_OF_A_SHORT_LOAD * seconds)
    due = sum(moment.answered + moment.unanswered for moment in moments)
    failed = sum(moment.unanswered for moment in moments)
    # Neighbouring moments whose requests all failed; moments without any request belong to what is around them.
    busy = [moment for moment in moments if moment.answered or moment.unanswered]
    found = []
    for is_dead, stretch in groupby(busy, key=lambda moment: not moment.answered):
        if not is_dead:
            continue
        outage = _outage(list(stretch), moments, seconds)
        elsewhere = (failed - outage.failed + 1) / (due - outage.failed + 2)
        is_chance = due * elsewhere**outage.failed > _CHANCE
        if outage.failed >= _FEWEST and outage.seconds >= shortest and not is_chance:
            found.append(outage)
    return tuple(found)


def _outage(stretch: Sequence[Moment], moments: Sequence[Moment], seconds: float) -> Outage:
    """It lasts until the last of its requests has failed, or the next that is answered was due, within the load."""
    begin, last = stretch[0].begin, stretch[-1]
    after = next((one.begin for one in moments if one.begin > last.begin and one.answered), math.inf)
    ends = [one.begin + one.seconds for one in moments if last.begin <= one.begin < after and one.failed]
    end = min(max([last.begin + last.seconds, *ends]), after, max(seconds, last.begin + last.seconds))
    return Outage(begin, end - begin, sum(moment.unanswered for moment in stretch))


def is_unavailable(result: LoadResult, outages: Sequence[Outage], seconds: float) -> bool:
    """Whether more than half of the requests failed, or none was answered for a tenth of the load."""
    if result.error_rate.value > UNAVAILABLE_ERROR_RATE:
        return True
    return seconds > 0 and sum(outage.seconds for outage in outages) >= UNAVAILABLE_SHARE * seconds
