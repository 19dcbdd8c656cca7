"""What a plan is expected to take before it is run: executions, time and cost.

`assay run --dry-run` shows it. `pipeline.forecast` fills it in from the stored history, and from the limits where there is
none. An unknown cost stays unknown: a sum over trials is only given where every part is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from assay.units import count


class Basis(StrEnum):
    """The source of an expected figure."""

    HISTORY = "history"
    """The median of stored executions of the same agent and benchmark."""
    LIMIT = "limit"
    """Upper bound: the limit of one execution, times the executions."""
    FREE = "free"
    """The agent costs nothing."""
    RECORDED = "recorded"
    """Recorded answers take no time to wait for."""
    MIXED = "mixed"
    """The basis of a sum whose parts have different bases."""
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
    """One trial: seconds and usd over all of its executions."""

    trial: str
    executions: int
    """At the most, warm-ups included."""
    seconds: Expected
    usd: Expected


@dataclass(frozen=True, slots=True)
class Forecast:
    """The whole plan; its seconds and usd are the sums over the trials (`add_up`)."""

    executions: int
    seconds: Expected
    usd: Expected
    trials: tuple[TrialForecast, ...]


_REASONS = {
    Basis.HISTORY: "medians of stored executions",
    Basis.LIMIT: "limits of the benchmarks",
    Basis.FREE: "the agents are free",
    Basis.MIXED: "stored executions, else limits",
}


def add_up(trials: Sequence[tuple[str, Expected]]) -> Expected:
    """The sum over trials, given by name; unknown as soon as one is, because a sum with gaps would be too low."""
    counting = [(name, part) for name, part in trials if part.basis is not Basis.NONE]
    if not counting:
        return Expected(None, Basis.NONE, "code has no price")
    unknown = [(name, part.reason) for name, part in counting if part.value is None]
    if unknown:
        name, reason = unknown[0]
        others = f" and {count(len(unknown) - 1)} more" if len(unknown) > 1 else ""
        return Expected(None, Basis.UNKNOWN, f"{reason} for {name}{others}")
    bases = {part.basis for _, part in counting}
    basis = bases.pop() if len(bases) == 1 else Basis.MIXED
    reasons = {part.reason for _, part in counting}
    return Expected(
        sum(part.value or 0.0 for _, part in counting),
        basis,
        reasons.pop() if len(reasons) == 1 else _REASONS[basis],
    )
