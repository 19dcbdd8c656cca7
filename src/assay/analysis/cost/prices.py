"""What a cost is made of, how it changes with prices, and what prompt caching saves.

The cost of a task is split by price × tokens, and the split is used only where its sum is what the executions were stored with: a
cost that an agent reported itself, or a price with tiers, has one part, `all`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.analysis.cost.estimates import CostSubject
from assay.model.cost import BreakEven, CacheEffect, ConfigurationCost, PricePart

MILLION = 1_000_000
CHANGE = 0.5
"""By how much each price is varied, as a share of it."""
_AGREEMENT = 0.01
"""By how much the sum of the parts may miss the stored cost, as a share of it."""
_WORTH_TELLING = 1e-3
"""Parts that are a smaller share of the cost decide nothing."""


def split_cost(subject: CostSubject, per_task: float | None) -> tuple[PricePart, ...]:
    """The parts of the mean cost of a task; empty where it is unknown or nothing."""
    if not per_task:
        return ()
    amounts = _price_tokens(subject)
    if abs(sum(amounts.values()) - per_task) > _AGREEMENT * per_task:
        return (_part("all", None, per_task, per_task),)
    return tuple(
        _part(name, subject.prices[name], amount, per_task) for name, amount in amounts.items() if amount
    )


def _part(name: str, price: float | None, amount: float, per_task: float) -> PricePart:
    return PricePart(
        name, price, amount, amount / per_task, per_task - CHANGE * amount, per_task + CHANGE * amount
    )


def _price_tokens(subject: CostSubject) -> dict[str, float]:
    """Component to dollars per task; empty where tokens that have a price were not counted."""
    prices = subject.prices
    given, output = subject.usage("input_tokens"), subject.usage("output_tokens")
    if not prices or (given is None and prices.get("input")) or (output is None and prices.get("output")):
        return {}
    cached = min(subject.usage("cached_tokens") or 0.0, given or 0.0) if "cached" in prices else 0.0
    tokens = {"input": (given or 0.0) - cached, "cached": cached, "output": output or 0.0}
    found = {name: prices.get(name, 0.0) * number / MILLION for name, number in tokens.items()}
    calls = subject.usage("api_calls")
    return found | {"request": prices.get("request", 0.0) * (1.0 if calls is None else calls)}


def find_cache_effect(subject: CostSubject, best_share: float) -> CacheEffect | None:
    """What cached input saved and could save; None without a lower price for it, or where it was not counted."""
    given, cached = subject.usage("input_tokens"), subject.usage("cached_tokens")
    full, reduced = subject.prices.get("input", 0.0), subject.prices.get("cached")
    if not given or reduced is None or reduced >= full:
        return None
    share = min((cached or 0.0) / given, 1.0)
    discount = given * (full - reduced) / MILLION
    return CacheEffect(
        share, discount * share, best_share, discount * max(0.0, best_share - share), discount * (1 - share)
    )


def compute_cached_share(subject: CostSubject) -> float:
    """The share of its input tokens that came from a cache; 0 where none were counted."""
    given, cached = subject.usage("input_tokens"), subject.usage("cached_tokens")
    return min((cached or 0.0) / given, 1.0) if given else 0.0


def find_break_even(configurations: Sequence[ConfigurationCost]) -> list[BreakEven]:
    """For the cheapest per solved task that is not free, and each other: by how much one price must change until both cost the same.

    With u the cost per solved task and c the part of it that the price makes up, that is at price × (1 + (u_other − u) ÷ c).
    A price that would have to fall below 0 changes nothing and is left out.
    """
    known = [configuration for configuration in configurations if configuration.whole.cost_per_success.value]
    known.sort(key=lambda configuration: configuration.whole.cost_per_success.value or 0.0)
    found = []
    for other in known[1:]:
        for configuration, against in ((known[0], other), (other, known[0])):
            found += _break_even_of(configuration, against)
    return found


def _break_even_of(configuration: ConfigurationCost, other: ConfigurationCost) -> list[BreakEven]:
    own_cost, other_cost = configuration.whole.cost_per_success.value, other.whole.cost_per_success.value
    assert own_cost is not None
    assert other_cost is not None
    found = []
    for part in configuration.prices:
        if part.share < _WORTH_TELLING:
            continue
        change = (other_cost - own_cost) / (own_cost * part.share)
        if change > -1:
            at = None if part.price is None else part.price * (1 + change)
            found.append(BreakEven(configuration.name, other.name, part.name, part.price, at, change))
    return found


def matches(prices: Mapping[str, float], subject: CostSubject, per_task: float) -> bool:
    """Whether these prices explain the stored cost of the subject."""
    amounts = _price_tokens(CostSubject(subject.name, subject.agent, subject.version, subject.trials, prices))
    return bool(amounts) and abs(sum(amounts.values()) - per_task) <= _AGREEMENT * per_task
