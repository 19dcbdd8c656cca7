"""What a run has used up so far, against its budget; and what judges use up, which is no part of an agent's cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.execute.price import Price
from assay.model import Answer, Budget, Execution
from assay.model.metric import JUDGING
from assay.units import count, usd

_CALLS, _TOKENS, _USD = JUDGING


@dataclass(slots=True)
class Spending:
    """Adds up the cost and tokens of every execution, warm-ups too: they are paid for as well, and so are judges."""

    budget: Budget
    usd: float = 0.0
    tokens: float = 0.0

    def add(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            measured = execution.measurements
            self.usd += measured.get("usd", 0.0) + measured.get(_USD, 0.0)
            self.tokens += known_tokens(measured) + measured.get(_TOKENS, 0.0)

    def __str__(self) -> str:
        """What was used of each ceiling."""
        parts = [f"{usd(self.usd)} of {usd(self.budget.usd)}"] if self.budget.usd is not None else []
        if self.budget.tokens is not None:
            parts.append(f"{count(self.tokens)} of {count(self.budget.tokens)} tokens")
        return ", ".join(parts)

    @property
    def is_over(self) -> bool:
        return _beyond(self.usd, self.budget.usd) or _beyond(self.tokens, self.budget.tokens)


def known_tokens(measurements: Mapping[str, float]) -> float:
    """For ceilings, where half of the tokens may be too many already."""
    halves = measurements.get("input_tokens", 0.0) + measurements.get("output_tokens", 0.0)
    return measurements.get("tokens", halves)


def _beyond(spent: float, ceiling: float | None) -> bool:
    return ceiling is not None and spent >= ceiling


def spent_on(answers: Sequence[Answer], price: Price) -> dict[str, float]:
    """What the answers of a judge used up; empty where it was not asked."""
    costs = [price.of(answer) for answer in answers]
    tokens = [answer.usage.tokens for answer in answers]
    found = {_CALLS: float(len(answers))} if answers else {}
    if answers and None not in tokens:
        found[_TOKENS] = float(sum(filter(None, tokens)))
    if answers and None not in costs:
        found[_USD] = sum(cost.usd for cost in costs if cost is not None)
    return found


def together(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums of several; what is unknown of one is unknown of all."""
    told = [part for part in parts if part]
    known = [name for name in JUDGING if all(name in part for part in told)]
    return {name: sum(part[name] for part in told) for name in known} if told else {}


def judging_in(measurements: Mapping[str, float]) -> dict[str, float]:
    return {name: measurements[name] for name in JUDGING if name in measurements}
