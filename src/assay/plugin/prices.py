"""What an answer cost: as the provider says, by the agent's own price, or by the public price list; else unknown.

An unknown cost is None and never 0, so that sums and ratings can tell "free" from "unknown". Every cost is stored with
its source. Prices are in US dollars for a million tokens, and `request` is in dollars for one call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any

from assay.model import AgentUse, Answer, Usage
from assay.plugin.agent import Agent

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount, and how it is known."""

    usd: float
    source: Mapping[str, str] = field(default_factory=dict)
    """Kept with the execution: `source` is reported, price or list, the last with its `list` and `date`."""


FREE = Cost(0.0)
REPORTED = {"source": "reported"}
OWN_PRICE = {"source": "price"}


class Price:
    """The price of one agent's answers.

    It comes from the answer itself, from the agent's definition, or from a list of public prices, in this
    order. Without any of them the cost is unknown, which is not 0.
    """

    def __init__(self, use: AgentUse, agent: Agent) -> None:
        self._own = use.price
        self._model = use.options.get("model")
        self._is_free = agent.is_free
        self._may_call_models = bool(getattr(agent, "may_call_models", False))
        self._tells_cost = bool(getattr(agent, "tells_cost", False))
        self._provider: str | None = getattr(agent, "provider", None)
        self._is_chat = hasattr(agent, "provider")

    def of(self, answer: Answer) -> Cost | None:
        """Compute the cost of an answer; None means unknown, which is not 0.

        What the answer reports comes first, then the price given with the agent, then the price list.
        """
        if answer.usd is not None:
            return Cost(answer.usd, REPORTED)
        if self._own is not None:
            if self.is_free:
                return FREE
            usd = _by_own_price(dict(self._own), answer.usage)
            return None if usd is None else Cost(usd, OWN_PRICE)
        names_a_model = self._may_call_models and answer.model is not None
        if self._is_free and not names_a_model:
            return FREE
        is_listed = self._provider is not None or names_a_model
        counted = answer.usage.input_tokens, answer.usage.output_tokens
        if answer.model is None or None in counted or not is_listed:
            return None
        usd = by_list(answer.model, self._provider, answer.usage)
        return None if usd is None else Cost(usd, list_source())

    @property
    def is_free(self) -> bool:
        """Whether answers cost nothing unless they report a cost: `price: free`, or a type that calls no paid model."""
        return self._is_free if self._own is None else not any(self._own.values())

    @property
    def sees_tokens(self) -> bool:
        """Whether answers count their tokens, or need none because no paid model is called."""
        return self.is_free or self._is_chat or self._tells_cost

    @property
    def is_priced(self) -> bool:
        """Whether it is clear before anything is asked that answers cost something, by its own price or a public list.

        A model on the list counts behind any address but a free agent's: a gateway on this machine may pass it on.
        """
        if self._own is not None:
            return any(dict(self._own).values())
        return self._is_chat and not self._is_free and _is_listed(str(self._model), self._provider)

    @property
    def is_unknown(self) -> bool:
        """Whether it is clear before anything is asked that nothing but the answers themselves can tell the cost."""
        if self._own is not None or self._is_free or self._tells_cost:
            return False
        return self._provider is None or not _is_listed(str(self._model), self._provider)


def _by_own_price(price: dict[str, float], usage: Usage) -> float | None:
    """By the price in the agent's definition; None where tokens that have a price were not counted.

    Cached tokens are part of the input tokens and cost as much as these unless they have a price of their own.
    """
    counted = {"input": usage.input_tokens, "output": usage.output_tokens}
    if any(number is None and price.get(name) for name, number in counted.items()):
        return None
    cached = usage.cached_tokens or 0
    plain_input = max(0, (usage.input_tokens or 0) - cached)
    per_million = (
        plain_input * price.get("input", 0.0)
        + cached * price.get("cached", price.get("input", 0.0))
        + (usage.output_tokens or 0) * price.get("output", 0.0)
    )
    return per_million / MILLION + price.get("request", 0.0) * (usage.api_calls or 1)


def by_list(model: str, provider: str | None, usage: Usage) -> float | None:
    """Compute the cost with genai-prices, which knows the list prices of public models offline."""
    if not _is_listed(model, provider):
        return None
    from genai_prices import Usage as ListUsage
    from genai_prices import calc_price

    counted = ListUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    try:
        return float(calc_price(counted, model_ref=model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def list_prices(model: str, provider: str | None) -> dict[str, float] | None:
    """The list price of a million tokens of each kind; None where the model is not on the list."""
    tokens = {
        "input": Usage(MILLION, 0),
        "cached": Usage(MILLION, 0, cached_tokens=MILLION),
        "output": Usage(0, MILLION),
    }
    found = {name: by_list(model, provider, usage) for name, usage in tokens.items()}
    return None if None in found.values() else {name: price or 0.0 for name, price in found.items()}


@lru_cache(maxsize=1000)
def _is_listed(model: str, provider: str | None) -> bool:
    try:
        from genai_prices import Usage as ListUsage
        from genai_prices import calc_price
    except ImportError:
        return False
    try:
        calc_price(ListUsage(input_tokens=1, output_tokens=1), model_ref=model, provider_id=provider)
    except (LookupError, ValueError):
        return False
    return True


@cache
def list_source() -> Mapping[str, str]:
    """Which price list it is, and of when: it bears no date itself, so that is the day of its newest price in force."""
    from genai_prices import __version__
    from genai_prices.data_snapshot import get_snapshot

    today = datetime.now(UTC).date()
    models: Any = (model for provider in get_snapshot().providers for model in provider.models)
    prices = (price for model in models if isinstance(model.prices, list) for price in model.prices)
    starts = (getattr(getattr(price, "constraint", None), "start_date", None) for price in prices)
    newest = max((day for day in starts if isinstance(day, date) and day <= today), default=None)
    dated = {"date": newest.isoformat()} if newest else {}
    return {"source": "list", "list": f"genai-prices {__version__}", **dated}
