"""What a plan is expected to take before it is carried out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """Where an expected figure comes from."""

    HISTORY = "history"
    """The median of stored executions of the same agent and benchmark."""
    LIMIT = "limit"
    """Upper bound: the limit of one execution, times the executions."""
    FREE = "free"
    """The agent costs nothing."""
    MIXED = "mixed"
    """Of a sum: its parts have different bases."""
    UNKNOWN = "unknown"
    NONE = "none"
    """Costs of code, which has no price."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A figure that is None where it is unknown, and how it came about."""

    value: float | None
    basis: Basis
    reason: str

    @property
    def is_upper_bound(self) -> bool:
        return self.basis is Basis.LIMIT


@dataclass(frozen=True, slots=True)
class TrialForecast:
    trial: str
    executions: int
    """At the most, warm-ups included."""
    seconds: Expected
    usd: Expected


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of a whole plan."""

    executions: int
    seconds: Expected
    usd: Expected
    trials: tuple[TrialForecast, ...]
