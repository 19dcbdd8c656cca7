from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DIMENSIONS = ("accuracy", "speed", "efficiency", "cost", "reliability")
WEIGHTS = {"accuracy": 0.30, "speed": 0.20, "efficiency": 0.20, "cost": 0.15, "reliability": 0.15}


@dataclass(frozen=True, slots=True)
class CaseTable:
    """The measured executions of a suite's trial, column by column."""

    cases: Sequence[str]
    repetitions: Sequence[int]
    statuses: Sequence[str]
    metrics: Mapping[str, Sequence[float | None]]
    """Metric to its value in each execution; None where it was not measured."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A trial's mark on one dimension, 0 to 1; None is unrated, with the reason."""

    dimension: str
    value: float | None
    low: float | None = None
    high: float | None = None
    basis: str = ""
    """What it rests on: the quantity and the reference, or why there is no rating."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """A trial's five ratings, their weighted mean, and the counts behind them."""

    dimensions: Mapping[str, Rating]
    overall: Rating
    outcomes: Mapping[str, int]
    """pass, fail, agent_error, limit, harness_error: executions of each class."""
    unscored: int
    cases: int
    solved: float
    """Cases passed, counting a case by the share of its repetitions that passed."""
    pass_at: Mapping[int, float] = field(default_factory=dict)
    pass_hat: Mapping[int, float] = field(default_factory=dict)
    usd_per_solved: float | None = None
    tokens_per_solved: float | None = None
    doubts: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS), compare=False)
    """Of the dimensions in `overall`, before it is known which of them are rated."""
    yardstick: str = field(default="", compare=False)
    """References and pass mark: ratings by different ones are no measure for each other."""
    attempted: int = field(default=0, compare=False)
    """Cases that were put to the agent, also those that count nowhere because the harness failed."""
    unpriced: int = field(default=0, compare=False)
    """Executions whose cost is unknown and not in `usd_per_solved`, which is a floor then."""
    names: Sequence[str] = field(default=(), compare=False, repr=False)
    """Of the cases that count, in the order of `marks`."""
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False, repr=False)
    """Dimension to what each case says of it: two agents are told apart by these, case by case."""
    rounds: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False)
    """Of what the machine has a part in: dimension to the number of rounds, and by how much a round's rating varies."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What judging a trial used up: spending of the harness, no part of the agent's cost."""

    calls: int
    """Questions put to judges."""
    tokens: float | None
    """None is unknown: of some call nobody said."""
    usd: float | None
