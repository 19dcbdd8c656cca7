"""Puts the cost analysis of a suite together from the stored results of its configurations, and forecasts costs from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.analysis.comparison.policy import Tolerances
from assay.analysis.comparison.verdict import tolerance_of
from assay.analysis.cost.estimates import CostSubject, Floats, estimate_costs
from assay.analysis.cost.front import Relations, find_places, relate
from assay.analysis.cost.opportunities import CostTable, find_opportunities
from assay.analysis.cost.prices import compute_cached_share, find_break_even, find_cache_effect, split_cost
from assay.model import metric_named
from assay.model.cost import Amount, BudgetForecast, ConfigurationCost, CostAnalysis, FrontStatus, Saving
from assay.stats.means import t_quantile
from assay.units import format_count

DAYS = 30
"""Days of a month."""
_ROUNDING = 1e-9
"""A budget for exactly a month may miss it by the last digit."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the user plans: tasks a month, a budget for them, and how far quality may fall and still count as equal."""

    volume: int
    budget: float | None = None
    tolerances: Tolerances = field(default_factory=Tolerances)


def analyse_costs(
    suite: str, category: str, is_simulated: bool, subjects: Sequence[CostSubject], workload: Workload
) -> CostAnalysis:
    """The analysis of configurations that may be compared: those of one suite, all measured or all simulated."""
    relations = relate(subjects, workload.tolerances)
    best_share = max((compute_cached_share(subject) for subject in subjects), default=0.0)
    costs = [_estimate(subject, best_share, workload) for subject in subjects]
    costs = _place_configurations(costs, relations)
    costs = [
        replace(_with_efficiency(costs, relations, i), saving=_find_saving(costs, relations, i, workload))
        for i in range(len(costs))
    ]
    opportunities = find_opportunities(CostTable(subjects, costs, relations, workload.volume))
    ordered = tuple(sorted(costs, key=_order))
    tolerance = workload.tolerances.find("score")
    return CostAnalysis(
        suite,
        category,
        is_simulated,
        workload.volume,
        tolerance_of(metric_named("score")) if tolerance is None else tolerance,
        ordered,
        opportunities,
        tuple(find_break_even(ordered)),
        tuple(_doubts(ordered)),
    )


def _estimate(subject: CostSubject, best_share: float, workload: Workload) -> ConfigurationCost:
    """What is known of one configuration by itself."""
    whole = estimate_costs(list(subject.trials.values()))
    usd = subject.figures["usd"]
    return ConfigurationCost(
        subject.name,
        subject.agent,
        subject.version,
        whole,
        {benchmark: estimate_costs([rated]) for (benchmark, _), rated in subject.trials.items()},
        forecast_month(usd, workload.volume),
        price_source=subject.price_source if whole.cost_per_task.value is not None else "",
        prices=split_cost(subject, whole.cost_per_task.value),
        cache=find_cache_effect(subject, best_share),
        budget=None if workload.budget is None else forecast_budget(usd, workload.budget, workload.volume),
        runs=subject.runs,
        doubts=(*subject.doubts, *_doubts_of_cost(subject)),
    )


def _doubts_of_cost(subject: CostSubject) -> Iterator[str]:
    usd = subject.figures["usd"]
    unknown = int(np.isnan(usd).sum())
    unpriced = sum(rated.usage.unpriced for rated in subject.trials.values() if rated.usage is not None)
    if unknown == usd.size or not np.nansum(usd):
        return
    if unknown:
        yield f"the cost of {format_count(unknown, 'case')} is unknown and not in the means"
    elif unpriced:
        yield (
            f"the cost of {format_count(unpriced, 'failed execution')} is unknown and not in the means: "
            "a task really costs more"
        )


def _place_configurations(
    costs: Sequence[ConfigurationCost], relations: Relations
) -> list[ConfigurationCost]:
    """The places on the front of those whose cost and quality are known."""
    known = [
        i
        for i, configuration in enumerate(costs)
        if configuration.whole.cost_per_task.value is not None
        and configuration.whole.accuracy.value is not None
    ]
    chosen = np.ix_(known, known)
    certain = replace(
        relations,
        cheaper=relations.cheaper[chosen],
        better=relations.better[chosen],
        not_dearer=relations.not_dearer[chosen],
        not_worse=relations.not_worse[chosen],
    )
    places = find_places(
        [costs[i].whole.cost_per_task.value or 0.0 for i in known],
        [costs[i].whole.accuracy.value or 0.0 for i in known],
        certain,
        [costs[i].name for i in known],
    )
    by_index = dict(zip(known, places, strict=True))
    return [replace(configuration, place=by_index.get(i)) for i, configuration in enumerate(costs)]


def _with_efficiency(costs: Sequence[ConfigurationCost], relations: Relations, i: int) -> ConfigurationCost:
    """Its efficiency: cheapest cost per solved task of those that keep its quality ÷ its own.

    Cheaper ones that may be worse do not count, and are named.
    """
    own = costs[i].whole.cost_per_success.value
    if own is None:
        return costs[i]
    cheaper = {
        j: price
        for j, configuration in enumerate(costs)
        if j != i and (price := configuration.whole.cost_per_success.value) is not None and price < own
    }
    equal = {j: price for j, price in cheaper.items() if relations.not_worse[i, j]}
    best = min(equal, key=equal.__getitem__, default=i)
    is_open = [j for j in cheaper if j not in equal and not relations.better[j, i]]
    return replace(
        costs[i],
        efficiency=equal.get(best, own) / own if own else 1.0,
        cheapest=costs[best].name,
        undecided=tuple(costs[j].name for j in is_open),
    )


def _find_saving(
    costs: Sequence[ConfigurationCost], relations: Relations, i: int, workload: Workload
) -> Saving | None:
    """What it saves in place of the dearest configuration whose quality it keeps; one of the same agent goes first."""
    replaced = [
        (costs[j].agent == costs[i].agent, saving.value, j, saving)
        for j in range(len(costs))
        if j != i and relations.not_worse[j, i] and relations.cheaper[j, i]
        if (saving := relations.saving(j, i)).value is not None
    ]
    if not replaced:
        return None
    _, _, j, saving = max(replaced, key=lambda candidate: candidate[:2])
    return Saving(costs[j].name, saving, saving.scale(workload.volume))


_PLACES = {FrontStatus.FRONT: 0, FrontStatus.TIED: 1, FrontStatus.DOMINATED: 2}


def _order(configuration: ConfigurationCost) -> tuple[int, float, str]:
    price = configuration.whole.cost_per_task.value
    return (
        3 if configuration.place is None else _PLACES[configuration.place.status],
        float("inf") if price is None else price,
        configuration.name,
    )


def _doubts(costs: Sequence[ConfigurationCost]) -> Iterator[str]:
    for configuration in costs:
        for doubt in configuration.doubts:
            yield f"{configuration.name}: {doubt}"
    if len({frozenset(configuration.benchmarks) for configuration in costs}) > 1:
        yield (
            "not all configurations ran the same benchmarks: their totals cover different tasks, "
            "and each pair is compared on the cases that both ran"
        )


def forecast_month(usd: Floats, volume: int) -> Amount:
    """The cost of so many tasks. The interval is one of prediction: for the mean, and for which tasks will come.

    With n cases of standard deviation s it is volume × mean ± t · s · √(volume + volume² ÷ n).
    """
    known = usd[~np.isnan(usd)]
    if not known.size:
        return Amount(None, reason="the cost is unknown")
    value = volume * float(known.mean())
    if known.size < 2:
        return Amount(value, reason="one case has no interval")
    spread = math.sqrt(volume + volume**2 / known.size) * float(known.std(ddof=1))
    half = t_quantile(0.975, known.size - 1) * spread
    return Amount(value, max(0.0, value - half), value + half)


def forecast_budget(usd: Floats, budget: float, volume: int) -> BudgetForecast | None:
    """How many tasks a budget pays for, and for how many days; None where the cost is unknown or nothing.

    The ends are the numbers of tasks m at which the budget is an end of the prediction interval of m tasks:
    (budget − m·c)² = t²s²(m + m² ÷ n), a quadratic equation in m.
    """
    known = usd[~np.isnan(usd)]
    mean = float(known.mean()) if known.size else 0.0
    if not mean:
        return None
    tasks = Amount(budget / mean, reason="one case has no interval")
    if known.size > 1:
        reach = (t_quantile(0.975, known.size - 1) * float(known.std(ddof=1))) ** 2
        square, linear = mean**2 - reach / known.size, 2 * budget * mean + reach
        root = math.sqrt(max(0.0, linear**2 - 4 * square * budget**2))
        low = 2 * budget**2 / (linear + root)
        high = (linear + root) / (2 * square) if square > 0 else None
        tasks = Amount(budget / mean, low, high)
    days = tasks.scale(DAYS / volume)
    lasts = None
    if days.low is not None and days.low >= DAYS * (1 - _ROUNDING):
        lasts = True
    elif days.high is not None and days.high < DAYS * (1 - _ROUNDING):
        lasts = False
    return BudgetForecast(budget, tasks, days, lasts)
