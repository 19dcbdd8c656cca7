"""What a run has spent so far, compared with its budget.

The runner adds every execution to a `Spending`; the run stops asking for jobs once it is over. A resumed run starts from
what the stored executions cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.model import Budget, Execution
from assay.model.metric import JUDGING
from assay.units import count, usd

_, _TOKENS, _USD = JUDGING


@dataclass(slots=True)
class Spending:
    """The sum of the cost and the tokens of all executions: warm-ups and judges are paid for, so they count, too."""

    budget: Budget
    usd: float = 0.0
    tokens: float = 0.0

    def add(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            measured = execution.measurements
            self.usd += measured.get("usd", 0.0) + measured.get(_USD, 0.0)
            self.tokens += known_tokens(measured) + measured.get(_TOKENS, 0.0)

    def __str__(self) -> str:
        """What was spent of each limit that the budget sets."""
        parts = [f"{usd(self.usd)} of {usd(self.budget.usd)}"] if self.budget.usd is not None else []
        if self.budget.tokens is not None:
            parts.append(f"{count(self.tokens)} of {count(self.budget.tokens)} tokens")
        return ", ".join(parts)

    @property
    def is_over(self) -> bool:
        return _is_used_up(self.usd, self.budget.usd) or _is_used_up(self.tokens, self.budget.tokens)


def known_tokens(measurements: Mapping[str, float]) -> float:
    """All tokens, or as many of them as are known: for limits, where the input alone may already be too much."""
    halves = measurements.get("input_tokens", 0.0) + measurements.get("output_tokens", 0.0)
    return measurements.get("tokens", halves)


def _is_used_up(spent: float, ceiling: float | None) -> bool:
    return ceiling is not None and spent >= ceiling
