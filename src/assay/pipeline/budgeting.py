"""Whether a budget can hold: what is known of the costs before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from assay.execute.agents import agent_key, make_agent
from assay.execute.judging import make_scorer
from assay.execute.price import Price
from assay.model import AgentUse, Plan
from assay.plan.suite import scorers_of


def unpriced(plan: Plan) -> list[str]:
    """Agents and judges whose cost nobody knows, told where the run has a budget in usd that they may overrun."""
    if plan.budget.usd is None:
        return []
    agents = [trial.agent_use for trial in plan.trials if trial.agent_use is not None]
    asked = {agent_key(use): (use, "agent") for use in agents}
    asked |= {agent_key(use): (use, "judge") for use in _judges(plan) if agent_key(use) not in asked}
    return [
        f"The cost of {role} '{use.name}' is unknown unless its answers tell it, and counts for nothing until then: the "
        f"budget may not hold. Give it a price, in usd per million tokens: price: {{input: X, output: Y}}"
        for use, role in asked.values()
        if Price(use, make_agent(use)).is_unknown
    ]


def _judges(plan: Plan) -> Iterator[AgentUse]:
    for use in scorers_of(plan.suite) if plan.suite is not None else ():
        yield from getattr(make_scorer(use), "asks", ())
