"""Cost per task, per solved task and per unit of performance, with intervals over cases.

The case is the unit: repetitions were averaged when the trial was rated (`analysis/estimates/case_costs.py`). Every case counts the same,
as every task of a workload like the suite costs money once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from assay.model.cost import Amount, TaskCost
from assay.model.rating import CASE_FIGURES, Rating, Ratings
from assay.stats.means import mean_half_width
from assay.stats.verdicts import effective_n, wilson

Floats = NDArray[np.float64]
Definition = tuple[str, str]
"""A benchmark and the hash of its definition: results compare only where both are the same."""

_LARGEST_LOG = 300.0
UNKNOWN_COST = "the cost is unknown: give the agent a price, or set price: free"
NO_ANSWER = "the cost is unknown: no execution was ok, and none of the failures has a cost"
NOTHING_SCORED = "nothing was scored"
NOTHING_SOLVED = "nothing was solved"


@dataclass(frozen=True)
class CostSubject:
    """A configuration with its stored results, as the pipeline reads them."""

    name: str
    agent: str
    version: str
    trials: Mapping[Definition, Ratings]
    prices: Mapping[str, float] = field(default_factory=dict)
    """Component to price; empty where only the cost of whole answers is known."""
    price_source: str = ""
    runs: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> Mapping[Definition, Mapping[str, Floats]]:
        """Cost, score and solved share of every case, by benchmark; NaN where unknown."""
        return {
            definition: {name: figure_of(rated, name) for name in CASE_FIGURES}
            for definition, rated in self.trials.items()
        }

    @cached_property
    def figures(self) -> Mapping[str, Floats]:
        """The case figures of all benchmarks, one benchmark after the other."""
        return pool_figures(self.trials.values())

    def usage(self, metric: str) -> float | None:
        """The mean of a billed metric per execution; None where a trial did not count it."""
        usages = [rated.usage for rated in self.trials.values() if rated.usage is not None]
        if not usages or any(metric not in usage.totals for usage in usages):
            return None
        return sum(u.totals[metric] for u in usages) / max(1, sum(u.executions for u in usages))


def pool_figures(rated: Iterable[Ratings]) -> dict[str, Floats]:
    """The figures of the cases of several trials, one trial after the other."""
    trials = list(rated)

    return {
        name: np.concatenate([np.empty(0), *(figure_of(ratings, name) for ratings in trials)])
        for name in CASE_FIGURES
    }


def figure_of(rated: Ratings, name: str) -> Floats:
    """A figure of each case, NaN where it is unknown; rounded to the seven digits of the stored 32-bit floats.

    Without the rounding, a price of $0.001 would read 0.0010000000475.
    """
    kept = rated.case_figures.get(name)
    if kept is None:
        return np.full(len(rated.names), np.nan)
    values = np.asarray(kept, dtype=np.float64)
    sizes = np.where((values == 0) | np.isnan(values), 1.0, np.abs(values))
    digits = 10.0 ** (6 - np.floor(np.log10(sizes)))
    return np.asarray(np.round(values * digits) / digits)


def estimate_costs(rated: Sequence[Ratings]) -> TaskCost:
    """The figures of one or several trials together."""
    figures = pool_figures(rated)
    accuracy = _estimate_accuracy(figures["score"], sum(ratings.scored for ratings in rated))
    speed = _mean_of_ratings([ratings.dimensions["speed"] for ratings in rated])
    has_answers = any(ratings.scored or ratings.unscored for ratings in rated)
    per_task = estimate_mean(figures["usd"], UNKNOWN_COST if has_answers else NO_ANSWER)
    return TaskCost(
        len(figures["usd"]),
        accuracy,
        speed,
        per_task,
        estimate_cost_per_success(figures["usd"], figures["solved"]),
        _estimate_performance(accuracy, speed, per_task),
    )


def estimate_mean(values: Floats, missing: str) -> Amount:
    """The mean of the values that are known, with Student's interval from two of them on."""
    known = values[~np.isnan(values)]
    if not known.size:
        return Amount(None, reason=missing)
    value = math.fsum(known) / known.size
    if known.size < 2:
        return Amount(value, reason="one case has no interval")
    half = mean_half_width(known)
    # A cost is not below 0, whatever a symmetric interval says.
    return Amount(value, max(value - half, min(0.0, value)), value + half)


def estimate_cost_per_success(usd: Floats, solved: Floats) -> Amount:
    """Mean cost ÷ share of solved tasks; no value where nothing was solved or scored.

    The interval is on the scale of logarithms and the wider of two: by the delta method, which knows how cost and success
    go together case by case, and by adding up the intervals of cost and of success (Wilson's), which stays wide where all
    cases turned out alike (Zou and Donner 2008).
    """
    has_both = ~np.isnan(usd) & ~np.isnan(solved)
    if not has_both.any():
        return Amount(None, reason=NOTHING_SCORED if np.isnan(solved).all() else UNKNOWN_COST)
    paid, passed = usd[has_both], solved[has_both]
    cost, share = math.fsum(paid) / paid.size, float(passed.mean())
    if not share:
        return Amount(None, reason=NOTHING_SOLVED)
    if not cost:
        return Amount(0.0, 0.0, 0.0)
    value = cost / share
    if paid.size < 2:
        return Amount(value, reason="one case has no interval")
    delta = mean_half_width(paid / cost - passed / share)
    low, high = wilson(share, effective_n(passed, passed.size))
    of_cost = mean_half_width(paid) / cost
    below = max(delta, math.hypot(of_cost, math.log(high / share)))
    above = max(delta, math.hypot(of_cost, math.log(share / low) if low else math.inf))
    return Amount(value, value * math.exp(-below), _grow(value, above))


def _grow(value: float, log: float) -> float | None:
    """The upper end of an interval on the scale of logarithms; None where it is without bound."""
    return value * math.exp(log) if log < _LARGEST_LOG else None


def _estimate_accuracy(scores: Floats, executions: int) -> Amount:
    known = scores[~np.isnan(scores)]
    if not known.size:
        return Amount(None, reason=NOTHING_SCORED)
    value = float(known.mean())
    low, high = wilson(value, effective_n(known, executions))
    return Amount(value, min(low, value), max(high, value))


def _mean_of_ratings(ratings: Sequence[Rating]) -> Amount:
    """The mean over benchmarks, whose errors are independent; unknown where one of them is unrated."""
    lacking = next((rating for rating in ratings if rating.value is None), None)
    if lacking is not None or not ratings:
        return Amount(None, reason=lacking.basis if lacking else "")
    value = sum(rating.value or 0.0 for rating in ratings) / len(ratings)
    if any(rating.low is None or rating.high is None for rating in ratings):
        return Amount(value, reason="fewer than three rounds: the variation of times is unknown")
    below = math.hypot(*((rating.value or 0.0) - (rating.low or 0.0) for rating in ratings)) / len(ratings)
    above = math.hypot(*((rating.high or 0.0) - (rating.value or 0.0) for rating in ratings)) / len(ratings)
    return Amount(value, value - below, value + above)


def _estimate_performance(accuracy: Amount, speed: Amount, cost: Amount) -> Amount:
    """Accuracy × speed rating ÷ cost per task, its interval by adding up those of the three on the scale of logarithms."""
    for name, part in (("accuracy", accuracy), ("speed", speed), ("cost", cost)):
        if part.value is None:
            return Amount(None, reason=f"{name} is unknown: {part.reason}")
    assert accuracy.value is not None
    assert speed.value is not None
    if not cost.value:
        return Amount(None, reason="it costs nothing, so performance per dollar has no limit")
    value = accuracy.value * speed.value / cost.value
    reaches = [_log_reach(accuracy), _log_reach(speed), _log_reach(cost)]
    if not value or any(reach is None for reach in reaches):
        return Amount(value, reason=next((p.reason for p in (accuracy, speed, cost) if p.low is None), ""))
    (a_below, a_above), (s_below, s_above), (c_below, c_above) = (reach or (0.0, 0.0) for reach in reaches)
    below, above = math.hypot(a_below, s_below, c_above), math.hypot(a_above, s_above, c_below)
    return Amount(value, value * math.exp(-below), _grow(value, above))


def _log_reach(amount: Amount) -> tuple[float, float] | None:
    """How far the interval goes below and above the value, as logarithms; None without an interval."""
    if not amount.value or amount.low is None or amount.high is None:
        return None
    below = math.log(amount.value / amount.low) if amount.low > 0 else math.inf
    return below, math.log(amount.high / amount.value)
