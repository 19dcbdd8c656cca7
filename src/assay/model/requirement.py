"""Requirements: limits that every trial of a run has to keep, and what came of checking them.

`spec.requirements` parses them and `analysis.comparison.requirements` checks them, for `assay gate`.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

_HOLDS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
SIGNS = tuple(_HOLDS)
"""The longer ones first, so that `>=` is not read as `>`."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A limit that every trial of a run has to keep, such as `accuracy>=0.9`."""

    name: str
    """What is limited: a rating, a figure of the whole trial, or a metric with a statistic (`p95_seconds`)."""
    sign: str
    limit: float
    benchmark: str = ""
    """Only trials of this benchmark; empty: of all."""

    def __str__(self) -> str:
        """As it is written.

        >>> str(Requirement("p95_seconds", "<", 2.0, "refunds"))
        'refunds:p95_seconds<2'
        >>> str(Requirement("tokens_per_solved", "<=", 1234567.0))
        'tokens_per_solved<=1234567'
        """
        return f"{self.benchmark}{':' * bool(self.benchmark)}{self.name}{self.sign}{self.limit:.15g}"

    def holds(self, value: float) -> bool:
        """A mean of 0.9 is not below 0.9 because its last bit is."""
        if math.isclose(value, self.limit, rel_tol=1e-9):
            return self.sign in (">=", "<=")
        return bool(_HOLDS[self.sign](value, self.limit))


@dataclass(frozen=True, slots=True)
class CheckedRequirement:
    """A requirement and one trial."""

    requirement: Requirement
    trial: str
    value: float | None = None
    """None where it is unknown; then the requirement is not met."""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    note: str = ""
    """Why there is no value, or why to read it with care."""

    @property
    def is_met(self) -> bool:
        return self.value is not None and self.requirement.holds(self.value)

    @property
    def is_close(self) -> bool:
        """Whether the interval includes the limit, so that another run may end differently."""
        low, high = self.low, self.high
        return low is not None and high is not None and low < high and low <= self.requirement.limit <= high
