"""Warns, before anything runs, about costs that the budget of a run cannot see.

A budget ends a run when the costs that answers report reach it. Where an agent or a judge reports none and has no price,
the run could spend any amount unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.model import AgentUse, Budget, Plan
from assay.plan.suite import scorers_of
from assay.plugin.agent_pool import agent_key, make_agent
from assay.plugin.prices import Price
from assay.plugin.scorers import make_scorer


def budget_blind_spots(plan: Plan) -> list[str]:
    """Warnings about agents and judges whose cost or tokens the budget of a run cannot see before they report them."""
    if plan.budget.usd is None and plan.budget.tokens is None:
        return []
    agents = [trial.agent_use for trial in plan.trials if trial.agent_use is not None]
    roles = {agent_key(use): (use, "agent") for use in agents}
    for scorer in scorers_of(plan.suite) if plan.suite is not None else ():
        for judge in getattr(make_scorer(scorer), "asks", ()):
            roles.setdefault(agent_key(judge), (judge, "judge"))
    return [warning for use, role in roles.values() for warning in _blind_spots(plan.budget, use, role)]


def _blind_spots(budget: Budget, use: AgentUse, role: str) -> Iterator[str]:
    """Why the budget cannot see one agent or judge: an unknown price hides its cost, and missing usage hides its tokens."""
    price = Price(use, make_agent(use))
    if budget.usd is not None and price.is_unknown:
        yield (
            f"The budget in usd does not cover {role} '{use.name}', whose cost is unknown unless its answers report it. Give its "
            "price in usd per million tokens (price: {input: X, output: Y}), or declare that it costs nothing (price: free)."
        )
    if budget.tokens is not None and not price.sees_tokens:
        yield (
            f"The budget in tokens does not cover {role} '{use.name}' unless its answers report usage. If it calls no model, say "
            "so: price: free."
        )
