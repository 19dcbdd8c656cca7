from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from assay.model.rating import Rating, Ratings


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent's latest ratings on the benchmarks of a suite."""

    agent: str
    version: str
    ratings: Mapping[str, Ratings]
    """Benchmark to ratings."""
    is_simulated: bool
    latest: datetime | None
    seconds: float | None = None
    """Median over all executions, for the Pareto front."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One row of a leaderboard: a place is a range, because some are not really apart."""

    contender: Contender
    dimensions: Mapping[str, Rating]
    """Means over the benchmarks."""
    score: Rating
    """What the board is ordered by."""
    best_rank: int
    worst_rank: int
    tier: int
    coverage: str
    """Benchmarks completed of those there are."""
    dominated_by: tuple[str, ...] = ()
    """Agents that are no worse in quality, cost and latency, and better in one."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Agents ranked within a suite; simulated ones on a board of their own."""

    suite: str
    metric: str
    standings: tuple[Standing, ...]
    simulated: tuple[Standing, ...]
    dimensions: tuple[str, ...]
    """Those that all agents have: they are ranked on no others."""
    doubts: tuple[str, ...] = ()
