"""What agents cost and what that buys: the findings of `assay cost`.

A *configuration* is an agent, or a point of a sweep over its options. A *task* is one case, done once. Amounts of money are in US
dollars. Measured and simulated configurations are never in one analysis. `analysis.cost` computes these; docs/cost.md has the
formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Amount:
    """An estimate with its 95 % interval. Without a value, `reason` says why; without ends, too little is known for them."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    def scale(self, factor: float) -> Amount:
        """Return the amount times `factor`, which must not be negative."""
        value, low, high = (
            None if end is None else end * factor for end in (self.value, self.low, self.high)
        )
        return Amount(value, low, high, self.reason)


class FrontStatus(StrEnum):
    """The position of a configuration relative to the Pareto front of cost and quality."""

    FRONT = "front"
    """By the figures, no other agent is as good for as little."""
    TIED = "tied"
    """By the figures somebody is, but the difference may be chance."""
    DOMINATED = "dominated"
    """Another one is significantly better or cheaper: off the front."""


@dataclass(frozen=True, slots=True)
class FrontPlace:
    """A configuration's place on or off the front."""

    status: FrontStatus
    dominated_by: tuple[str, ...] = ()
    """Configurations that are significantly cheaper and not worse, or significantly better and not more expensive."""
    ties: tuple[str, ...] = ()
    """Configurations without a certain difference in either cost or quality."""


@dataclass(frozen=True, slots=True)
class PricePart:
    """One component of a price, and what the cost of a task becomes if that price alone changes by half."""

    name: str
    """input, cached, output, request; or `all` where only the whole cost is known."""
    price: float | None
    """For a million tokens, of `request` for one call; None for `all`."""
    per_task: float
    """Dollars of this component in the mean task."""
    share: float
    at_half_less: float
    """The cost of a task at 50 % less."""
    at_half_more: float


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The price at which the cheaper of two configurations, by cost per solved task, changes."""

    configuration: str
    """Whose price would change."""
    other: str
    part: str
    price: float | None
    """Now; None for `all`."""
    break_even: float | None
    """At which both cost the same."""
    change: float
    """From now to then, as a share: −0.2 is 20 % less."""


@dataclass(frozen=True, slots=True)
class CacheEffect:
    """What prompt caching saved in the mean task, and what it could save."""

    cached_share: float
    """Share of the input tokens."""
    saved: float
    """Dollars per task, against all input at the full price."""
    best_share: float
    """The highest share among the configurations of the suite."""
    at_best_share: float
    """Further dollars per task with that share."""
    at_most: float
    """Further dollars per task if all input were cached: an upper bound."""


@dataclass(frozen=True, slots=True)
class BudgetForecast:
    """What a monthly budget pays for."""

    usd: float
    tasks: Amount
    """Tasks until it is used up."""
    days: Amount
    """Until it is used up at the volume; a month has 30."""
    lasts: bool | None
    """Whether it lasts the month, beyond the interval; None where that is open."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What one configuration saves in place of another, whose quality it keeps."""

    instead_of: str
    per_task: Amount
    per_month: Amount


@dataclass(frozen=True, slots=True)
class TaskCost:
    """Cost and quality on one benchmark, or on all of them together, where every case counts the same."""

    cases: int
    accuracy: Amount
    """Mean score over cases."""
    speed: Amount
    """The rating; the mean over benchmarks."""
    cost_per_task: Amount
    cost_per_success: Amount
    performance_per_dollar: Amount
    """Accuracy × speed rating ÷ cost per task."""


@dataclass(frozen=True, slots=True)
class ConfigurationCost:
    """All that is known of one configuration's cost."""

    name: str
    agent: str
    version: str
    whole: TaskCost
    benchmarks: Mapping[str, TaskCost]
    per_month: Amount
    """At the volume."""
    place: FrontPlace | None = None
    """None where cost or quality is unknown."""
    efficiency: float | None = None
    """Cheapest cost per solved task of those that are at least as good ÷ its own."""
    cheapest: str = ""
    """The configuration that the efficiency compares with."""
    undecided: tuple[str, ...] = ()
    """Configurations that cost less, but may be worse: not counted in the efficiency."""
    saving: Saving | None = None
    price_source: str = ""
    """price, list, reported or free; empty where the cost is unknown."""
    prices: tuple[PricePart, ...] = ()
    cache: CacheEffect | None = None
    budget: BudgetForecast | None = None
    runs: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def is_optimal(self) -> bool:
        return self.efficiency is not None and self.efficiency > OPTIMAL


OPTIMAL = 0.8
"""A configuration whose efficiency is above this is called optimal."""


@dataclass(frozen=True, slots=True)
class SavingOpportunity:
    """A way to spend less that a rule found in the data."""

    code: str
    """Code of the rule; stable."""
    configuration: str
    message: str
    """What to do, in a line."""
    evidence: str
    """The figures that the rule rests on."""
    arithmetic: str = ""
    """How the saving was computed."""
    saving: Amount = field(default_factory=lambda: Amount(None))
    """Dollars per month at the volume."""
    alternative: str = ""
    """The configuration to use or to ask first instead."""
    is_certain: bool = False
    """Whether the evidence settles it; else it says what to measure or to try first."""


@dataclass(frozen=True, slots=True)
class CostAnalysis:
    """The configurations of one suite; all of them measured, or all simulated."""

    suite: str
    category: str
    is_simulated: bool
    volume: int
    """Tasks a month."""
    tolerance: float
    """How far mean scores may differ and still count as equal quality."""
    configurations: tuple[ConfigurationCost, ...]
    """The best on the front first, then by cost per solved task; unknown costs last."""
    opportunities: tuple[SavingOpportunity, ...] = ()
    break_even: tuple[BreakEven, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def optimal(self) -> tuple[ConfigurationCost, ...]:
        """Best efficiency first."""
        found = [configuration for configuration in self.configurations if configuration.is_optimal]
        return tuple(sorted(found, key=lambda configuration: -(configuration.efficiency or 0.0)))
