"""Rules that look for ways to spend less. Each finding has its evidence and the arithmetic of its saving.

A rule looks at one configuration at a time. What the data settle is certain; what they do not settle is offered only with what
to measure or to try first. Savings are in dollars a month at the volume, and none is promised twice: they do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from assay.analysis.cost.estimates import UNKNOWN_COST, CostSubject, estimate_mean
from assay.analysis.cost.front import Relations, pair_cases
from assay.model.cost import Amount, ConfigurationCost, SavingOpportunity
from assay.units import format_count, format_signed, percent, usd

WORTH_MEASURING = 0.2
"""A configuration that costs less by this share is worth a measurement where its quality is open."""
WORTH_MENTIONING = 0.05
"""Shares of the cost below this are no opportunity."""


@dataclass(frozen=True, slots=True)
class CostTable:
    """All configurations of an analysis, in one order, with what is certain between them."""

    subjects: Sequence[CostSubject]
    costs: Sequence[ConfigurationCost]
    relations: Relations
    volume: int

    def per_task(self, i: int) -> float:
        """Return the mean cost per task; 0 if it is unknown, which callers have excluded."""
        return self.costs[i].whole.cost_per_task.value or 0.0

    def find_cheaper(self, i: int) -> list[int]:
        """Configurations that cost less per task, the cheapest first."""
        own = self.costs[i].whole.cost_per_task.value
        known = [j for j in range(len(self.costs)) if self.costs[j].whole.cost_per_task.value is not None]
        cheaper = [j for j in known if own is not None and self.per_task(j) < own]
        return sorted(cheaper, key=self.per_task)

    def describe_costs(self, i: int, j: int) -> str:
        less = percent(1 - self.per_task(j) / self.per_task(i))
        return f"{usd(self.per_task(j))} instead of {usd(self.per_task(i))} per task ({less} less)"

    def count_shared(self, i: int, j: int) -> int:
        return int(pair_cases(self.subjects[i], self.subjects[j], "usd")[0].size)

    def monthly(self, per_task: Amount) -> str:
        """The saving of a month as an equation, with its interval where it has one."""
        month = per_task.scale(self.volume)
        assert per_task.value is not None
        assert month.value is not None
        ends = ""
        if month.low is not None and month.high is not None and month.low < month.high:
            ends = f" [{usd(month.low)}, {usd(month.high)}]"
        return f"{self.volume:,} tasks × {usd(per_task.value)} = {usd(month.value)} a month{ends}"


def find_opportunities(table: CostTable) -> tuple[SavingOpportunity, ...]:
    """All findings, the largest certain saving first. What should be replaced anyway gets no further advice."""
    found: list[SavingOpportunity] = []
    for i in range(len(table.costs)):
        certain = list(suggest_switch(table, i))
        found += certain or [opportunity for rule in IDEAS for opportunity in rule(table, i)]
    return tuple(
        sorted(
            found, key=lambda opportunity: (not opportunity.is_certain, -(opportunity.saving.value or 0.0))
        )
    )


def suggest_switch(table: CostTable, i: int) -> Iterator[SavingOpportunity]:
    """The cheapest configuration that costs significantly less and keeps the quality."""
    certain = table.relations
    for j in table.find_cheaper(i):
        if not (certain.cheaper[i, j] and certain.not_worse[i, j]):
            continue
        agent, other, saved = table.costs[i].name, table.costs[j].name, certain.saving(i, j)
        quality = "it is significantly better" if certain.better[i, j] else "it keeps the quality"
        yield SavingOpportunity(
            "switch",
            agent,
            f"Use '{other}' instead of '{agent}'",
            f"{table.describe_costs(i, j)}, and {quality}: {describe_points(certain.quality_gap(i, j))} "
            f"on {format_count(table.count_shared(i, j), 'shared case')}.",
            table.monthly(saved),
            saved.scale(table.volume),
            other,
            is_certain=True,
        )
        return


def suggest_measurement(table: CostTable, i: int) -> Iterator[SavingOpportunity]:
    """A configuration that would save much, if its quality turned out to be as good."""
    certain = table.relations
    for j in table.find_cheaper(i):
        gap, saved = certain.quality_gap(i, j), certain.saving(i, j)
        is_open = not certain.better[j, i] and not certain.not_worse[i, j]
        is_worth_it = table.per_task(j) <= (1 - WORTH_MEASURING) * table.per_task(i)
        if not (is_open and is_worth_it and saved.value and gap.low is not None):
            continue
        # What the policy says would settle it: the end of its reason.
        settled = certain.quality[min(i, j), max(i, j)].reason.rpartition("; ")[2]
        yield SavingOpportunity(
            "measure_quality",
            table.costs[i].name,
            f"Find out whether '{table.costs[j].name}' is as good as '{table.costs[i].name}'",
            f"{table.describe_costs(i, j)}; {describe_points(gap)}, which is undecided: {settled} "
            f"It counts as equal with --tolerance {math.ceil(-100 * gap.low)}%.",
            f"If it is: {table.monthly(saved)}",
            saved.scale(table.volume),
            table.costs[j].name,
        )
        return


def suggest_cascade(table: CostTable, i: int) -> Iterator[SavingOpportunity]:
    """Ask a cheaper configuration first, and this one only where that failed.

    Case by case, with c and s the costs of the cheap and this one, and p the solved share of the cheap one, a cascade costs
    c + (1 − p)·s and solves p + (1 − p)·q, which is never less than q alone.
    """
    best: tuple[float, int, Amount, float] | None = None
    for j in table.find_cheaper(i):
        if table.relations.not_worse[i, j]:
            continue
        strong, cheap = pair_cases(table.subjects[i], table.subjects[j], "usd")
        q, p = pair_cases(table.subjects[i], table.subjects[j], "solved")
        if not p.size or p.size != cheap.size or not p.any():
            continue
        saved = estimate_mean_difference(strong - (cheap + (1 - p) * strong))
        gained = float((p + (1 - p) * q - q).mean())
        if saved.value and (saved.low or 0.0) > 0 and (best is None or saved.value > best[0]):
            best = (saved.value, j, saved, gained)
    if best is None or best[0] < WORTH_MENTIONING * table.per_task(i):
        return
    _, j, saved, gained = best
    agent, other = table.costs[i].name, table.costs[j].name
    yield SavingOpportunity(
        "cascade",
        agent,
        f"Ask '{other}' first, and '{agent}' only where its answer is wrong",
        f"'{other}' solves {percent(compute_solved_share(table, j))} of the tasks for {usd(table.per_task(j))}; "
        f"both together solve {percent(compute_solved_share(table, i) + gained)}, '{agent}' alone {percent(compute_solved_share(table, i))}. "
        "This needs a check that recognises wrong answers.",
        f"Without the cost of the check: {table.monthly(saved)}",
        saved.scale(table.volume),
        other,
    )


def suggest_caching(table: CostTable, i: int) -> Iterator[SavingOpportunity]:
    """Cache more of the input, where cached tokens have a lower price."""
    cache, per_task = table.costs[i].cache, table.per_task(i)
    if cache is None or cache.at_most < WORTH_MENTIONING * per_task:
        return
    reached = cache.at_best_share > 0
    share, saved = (cache.best_share, cache.at_best_share) if reached else (1.0, cache.at_most)
    comparison = (
        f"another configuration here reaches {percent(share)}" if reached else "100 % is the upper bound"
    )
    yield SavingOpportunity(
        "prompt_cache",
        table.costs[i].name,
        f"Cache more of the prompts of '{table.costs[i].name}'",
        f"{percent(cache.cached_share)} of its input tokens are cached; {comparison}. "
        "Put what all prompts share first and keep it unchanged.",
        f"With {percent(share)} cached, {'' if reached else 'at most '}{table.monthly(Amount(saved))}",
        Amount(saved * table.volume, 0.0, cache.at_most * table.volume),
    )


def suggest_fixing_failures(table: CostTable, i: int) -> Iterator[SavingOpportunity]:
    """Money that was spent on executions that ended in an error or at a limit."""
    usages = [rated.usage for rated in table.subjects[i].trials.values() if rated.usage is not None]
    spent, lost = sum(usage.usd for usage in usages), sum(usage.failed_usd for usage in usages)
    if not spent or lost < WORTH_MENTIONING * spent:
        return
    per_task = Amount(table.per_task(i) * lost / spent)
    yield SavingOpportunity(
        "failures",
        table.costs[i].name,
        f"Find out why executions of '{table.costs[i].name}' end in errors or at limits",
        f"They gave no answer and took {percent(lost / spent)} of its cost ({usd(lost)} of {usd(spent)}).",
        f"At most {table.monthly(per_task)}",
        Amount(table.volume * (per_task.value or 0.0), 0.0, table.volume * (per_task.value or 0.0)),
    )


def suggest_price(table: CostTable, i: int) -> Iterator[SavingOpportunity]:
    """Suggest a price for configurations whose cost is unknown."""
    if table.costs[i].whole.cost_per_task.reason == UNKNOWN_COST:
        name = table.costs[i].name
        yield SavingOpportunity(
            "unknown_cost",
            name,
            f"Give '{name}' a price, or set price: free",
            f"The cost of none of its {format_count(table.costs[i].whole.cases, 'case')} is known, so it cannot be placed on the Pareto front.",
        )


IDEAS: tuple[Callable[[CostTable, int], Iterator[SavingOpportunity]], ...] = (
    suggest_measurement,
    suggest_cascade,
    suggest_caching,
    suggest_fixing_failures,
    suggest_price,
)


def estimate_mean_difference(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Amount:
    """The mean with Student's interval; unlike a cost it may be below 0."""
    shifted = estimate_mean(values - values.min(), "")
    ends = (shifted.value, shifted.low, shifted.high)
    value, low, high = (None if end is None else end + float(values.min()) for end in ends)
    return Amount(value, low, high)


def describe_points(gap: Amount) -> str:
    """A difference of mean scores in percentage points, with its interval."""
    if gap.value is None:
        return "mean score unknown"
    if gap.value == gap.low == gap.high == 0:
        return "identical scores"
    ends = (
        ""
        if gap.low is None or gap.high is None
        else f" [{format_signed(100 * gap.low)}, {format_signed(100 * gap.high)}]"
    )
    return f"mean score {format_signed(100 * gap.value)} points{ends}"


def compute_solved_share(table: CostTable, i: int) -> float:
    return float(np.nanmean(table.subjects[i].figures["solved"]))
