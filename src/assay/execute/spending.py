"""What a run has used up so far, against its budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.model import Budget, Execution


@dataclass(slots=True)
class Spending:
    """Adds up the cost and tokens of every execution, warm-ups too: they are paid for as well."""

    budget: Budget
    usd: float = 0.0
    tokens: float = 0.0

    def add(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            self.usd += execution.measurements.get("usd", 0.0)
            self.tokens += execution.measurements.get("tokens", 0.0)

    @property
    def is_over(self) -> bool:
        return _beyond(self.usd, self.budget.usd) or _beyond(self.tokens, self.budget.tokens)


def _beyond(spent: float, ceiling: float | None) -> bool:
    return ceiling is not None and spent >= ceiling
