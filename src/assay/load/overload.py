"""Whether a load was too much, and for whom: the server, or the machine that put it on."""

from __future__ import annotations

import math

from assay.load.saturation import is_piling_up
from assay.model.bottleneck import (
    FOR_STEPS,
    KEPT_UP,
    MOST_ERRORS,
    OWN_LIMITS,
    falls_behind,
    is_generator_limit,
)
from assay.model.load import UNFINISHED, Arrivals, Load, LoadResult, ObjectiveResult


def breach(result: LoadResult, load: Load, spread: float = 1.0) -> tuple[str | None, str]:
    """What broke first: the cause, and in words with its number.

    `spread` is the standard deviation of service times ÷ their mean, which says how far a queue may grow by chance.
    """
    failed = {kind: number for kind, number in result.errors.items() if kind not in UNFINISHED}
    own = sum(failed.get(kind, 0) for kind in OWN_LIMITS)
    servers = result.error_rate.value * (1 - own / max(1, sum(failed.values())))
    broken = next((held for held in result.held if held.is_met is False), None)
    has_own_limit = any(_is_about_errors(held) for held in result.held)
    if (servers > MOST_ERRORS and not has_own_limit) or (
        _is_about_errors(broken) and servers > result.error_rate.value / 2
    ):
        kind = max((one for one in failed if one not in OWN_LIMITS), key=lambda one: failed[one], default="")
        return "errors", f"{servers:.1%} of the requests failed, most of them as {kind}"
    is_short = _is_short(result, load, spread)
    if own and (broken or is_short or result.error_rate.value > MOST_ERRORS):
        return "generator", f"this machine had no more descriptors or ports for {own} requests"
    if (is_short or broken) and _is_own_limit(result, load):
        return "generator", "this machine could not send or read more"
    if broken and broken.figure:
        return "latency", f"{broken.objective.text} was not met"
    if is_short:
        return "saturation", f"work piled up at {load.offered or 0:.4g} requests/s"
    if not result.requests_completed:
        return "errors", "nothing was answered"
    return None, ""


def _is_about_errors(held: ObjectiveResult | None) -> bool:
    return held is not None and held.objective.metric == "error_rate"


def _is_short(result: LoadResult, load: Load, spread: float) -> bool:
    """Whether the server fell behind what was offered, beyond what chance explains."""
    if load.offered is None:
        return False
    if (grows := is_piling_up(result, load.seconds, spread)) is not None and result.error_rate.value < 1:
        return grows or _was_sent_late(result, load)
    return falls_behind(result, load.offered)


def _is_own_limit(result: LoadResult, load: Load) -> bool:
    """Whether requests were not sent, or answers not read, as they should have been."""
    return is_generator_limit(result, FOR_STEPS) or _was_sent_late(result, load)


def _was_sent_late(result: LoadResult, load: Load) -> bool:
    """Whether fewer requests were sent in time than were due; by chance the timetable itself may have had a few less."""
    if load.offered is None:
        return False
    due = load.offered * load.seconds
    chance = 3 * math.sqrt(due) if load.arrivals is Arrivals.POISSON else 0.0
    return result.achieved_rate * load.seconds < KEPT_UP * due - chance
