"""Whether a budget can hold: what is known of the costs before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from assay.execute.agents import agent_key, make_agent
from assay.execute.judging import make_scorer
from assay.execute.price import Price
from assay.model import AgentUse, Budget, Plan
from assay.plan.suite import scorers_of


def budget_blind_spots(plan: Plan) -> list[str]:
    """Warnings about agents and judges whose cost or tokens the budget of a run cannot see before they report them."""
    if plan.budget.usd is None and plan.budget.tokens is None:
        return []
    agents = [trial.agent_use for trial in plan.trials if trial.agent_use is not None]
    asked = {agent_key(use): (use, "agent") for use in agents}
    asked |= {agent_key(use): (use, "judge") for use in _judges(plan) if agent_key(use) not in asked}
    return [warning for use, role in asked.values() for warning in _blind_spots(plan.budget, use, role)]


def _blind_spots(budget: Budget, use: AgentUse, role: str) -> Iterator[str]:
    price = Price(use, make_agent(use))
    if budget.usd is not None and price.is_unknown:
        yield (
            f"The budget in usd cannot see {role} '{use.name}': its cost is unknown unless its answers report it. Give its "
            "price in usd per million tokens (price: {input: X, output: Y}), or say that it costs nothing (price: free)."
        )
    if budget.tokens is not None and not price.sees_tokens:
        yield (
            f"The budget in tokens cannot see {role} '{use.name}' unless its answers report usage. If it calls no model, say "
            "so: price: free."
        )


def _judges(plan: Plan) -> Iterator[AgentUse]:
    for use in scorers_of(plan.suite) if plan.suite is not None else ():
        yield from getattr(make_scorer(use), "asks", ())
