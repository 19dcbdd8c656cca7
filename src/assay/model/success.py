"""Success figures: how well benchmarking works where it is used, as the performance specification asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assay.model.figure import Share
from assay.model.regression import RegressionState

BENCHMARKED_GOAL = 1.0
DETECTION_GOAL = 0.9


@dataclass(frozen=True, slots=True)
class AgentActivity:
    """When an agent was benchmarked."""

    first: datetime
    is_active: tuple[bool, ...]
    """Whether it has results in each of the periods that were asked about."""


@dataclass(frozen=True, slots=True)
class FoundRegression:
    """A regression as success counts it."""

    agent: str
    suite: str
    benchmark: str
    metric: str
    after: str
    detected: datetime
    state: RegressionState
    judgement: RegressionState | None
    """`confirmed` or `false_positive`, whichever a person said last; None where no person judged it."""


@dataclass(frozen=True, slots=True)
class GateLoss:
    """What a gate failed on."""

    agent: str
    version: str
    suite: str
    benchmark: str
    metric: str = ""
    """Empty where no single metric was to blame, as with lost cases."""


@dataclass(frozen=True, slots=True)
class GateRecord:
    """What a gate said of a run."""

    run_id: str
    baseline: str
    at: datetime
    passed: bool
    losses: tuple[GateLoss, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundOpportunity:
    """What a profile found could be saved; `resolved` when a later profile of the same no longer found it."""

    agent: str
    place: str
    category: str
    location: str
    impact: float
    run_id: str
    found: datetime
    resolved: datetime | None = None


@dataclass(frozen=True, slots=True)
class SuccessFigures:
    """The figures of one period."""

    begins: datetime
    ends: datetime
    benchmarked: Share
    """Agents with a result in the period, of those known by its end."""
    regressions: int
    """Found in the period."""
    detection: Share
    """Confirmed ones, of those found in the period that a person judged."""
    caught: Share
    """Caught by a gate, of those found in the period that are no false positives."""
    gates: Share
    """Gates that failed, of those run in the period."""
    opportunities: int
    """Found in the period."""
    resolved: Share
    """Share of the opportunities found in the period that are resolved by now."""


@dataclass(frozen=True, slots=True)
class SuccessReport:
    """The last 30 days, and the calendar months, the current one first."""

    now: datetime
    last_30_days: SuccessFigures
    months: tuple[SuccessFigures, ...]
    never_benchmarked: tuple[str, ...]
    """Registered agents without any result."""
    not_benchmarked: tuple[str, ...]
    """Agents that count in the last 30 days and have no result in them."""
