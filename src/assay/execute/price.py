"""What an answer cost: as the provider says, by the agent's own price, or by the public price list; else unknown."""

from __future__ import annotations

from functools import lru_cache

from assay.model import AgentUse, Answer, Usage
from assay.plugin.agent import Agent

MILLION = 1_000_000


class Price:
    """The price of one agent's answers in usd."""

    def __init__(self, use: AgentUse, agent: Agent) -> None:
        self._own = use.price
        self._is_free = agent.is_free
        self._may_call_models = bool(getattr(agent, "may_call_models", False))
        self._provider: str | None = getattr(agent, "provider", None)

    def of(self, answer: Answer) -> float | None:
        """None is unknown, which is not 0."""
        if answer.usd is not None:
            return answer.usd
        if self._own is not None:
            return _by_own_price(dict(self._own), answer.usage)
        names_a_model = self._may_call_models and answer.model is not None
        if self._is_free and not names_a_model:
            return 0.0
        is_listed = self._provider is not None or names_a_model
        if answer.model is None or answer.usage.tokens is None or not is_listed:
            return None
        return by_list(answer.model, self._provider, answer.usage)


def _by_own_price(price: dict[str, float], usage: Usage) -> float | None:
    if usage.tokens is None and (price.get("input") or price.get("output")):
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
    """By genai-prices, which knows the list prices of public models offline."""
    try:
        from genai_prices import Usage as ListUsage
        from genai_prices import calc_price
    except ImportError:
        return None
    counted = ListUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    if not _is_listed(model, provider):
        return None
    try:
        return float(calc_price(counted, model_ref=model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


@lru_cache(maxsize=1000)
def _is_listed(model: str, provider: str | None) -> bool:
    from genai_prices import Usage as ListUsage
    from genai_prices import calc_price

    try:
        calc_price(ListUsage(input_tokens=1, output_tokens=1), model_ref=model, provider_id=provider)
    except (LookupError, ValueError):
        return False
    return True
