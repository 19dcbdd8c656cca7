"""How near a load came to breaking its objectives, as a number that reaches 1 where they break."""

from __future__ import annotations

from assay.model.load import QUANTILES, Distribution, LoadResult, ObjectiveResult

BROKEN = 20.0


def margin_of(result: LoadResult, broken_by: str | None) -> float:
    """Of the objective that is nearest to breaking.

    A percentile breaks where the share of requests beyond its limit reaches what it allows. That share is the same on
    average whether a load is short or long; whether a short load kept the percentile is not, as queues come and go.
    """
    if broken_by in ("errors", "saturation"):
        return BROKEN
    return max((_margin(held, result) for held in result.held), default=0.0)


def _margin(held: ObjectiveResult, result: LoadResult) -> float:
    objective = held.objective
    times = result.times.get(objective.metric)
    allowed = 1 - QUANTILES[objective.statistic] if objective.statistic in QUANTILES else None
    if times is None or allowed is None or not objective.is_upper:
        return BROKEN if held.is_met is False else 0.0
    return min(BROKEN, share_beyond(times, objective.limit) / allowed)


def share_beyond(times: Distribution, limit: float) -> float:
    """Of requests that took longer, read off between the known percentiles."""
    below, share = 0.0, 0.0
    for name, reached in (*QUANTILES.items(), ("max", 1.0)):
        value = times.at(name)
        if value > limit:
            return 1 - (share + (reached - share) * (limit - below) / (value - below))
        below, share = value, reached
    return 0.0
