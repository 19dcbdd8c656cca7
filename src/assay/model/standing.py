"""Leaderboards: agents ranked by their ratings on the benchmarks of a suite, or over several suites.

A rank is a range wherever the evidence does not separate two agents. Agents are compared on the dimensions that all of them are rated
on, simulated agents are ranked apart from measured ones, and results of different definitions of a benchmark are never compared.
`analysis.ranking` makes these from what `store.standings` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from assay.model.rating import Rating, Ratings


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent's latest ratings on the benchmarks of a suite.

    Each point of a sweep over its options is a contender of its own. Benchmarks that the agent was never put through are missing
    from the mappings; those whose results have a flaw are named in `stale`, `partial` or `outdated`.
    """

    agent: str
    version: str
    ratings: Mapping[str, Ratings]
    """Benchmark to ratings."""
    is_simulated: bool
    latest: datetime | None
    seconds: float | None = None
    """Median over all executions, for the Pareto front."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Benchmark to the hash of its definition: results compare only where that is the same."""
    stale: Mapping[str, str] = field(default_factory=dict)
    """Benchmark to why its result may no longer hold."""
    partial: Mapping[str, str] = field(default_factory=dict)
    """Benchmark to how many of its cases were done, where not all of them were."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """Benchmark to the run that its result is of: times of different runs do not tell agents apart."""
    outdated: frozenset[str] = frozenset()
    """Benchmarks that were done in an older definition than the suite has now."""

    @property
    def is_recorded(self) -> bool:
        """Whether any of its times were recorded earlier rather than measured here."""
        return any(ratings.is_recorded for ratings in self.ratings.values())

    @property
    def unscored(self) -> list[str]:
        """Benchmarks of which not one output could be scored; an agent that has any is not ranked overall."""
        return [benchmark for benchmark, ratings in self.ratings.items() if ratings.is_unscored]

    @property
    def incomplete(self) -> list[str]:
        """Benchmarks of which too many executions have no result; an agent that has any leads nothing."""
        return [benchmark for benchmark, ratings in self.ratings.items() if ratings.is_incomplete]

    @property
    def completed(self) -> int:
        """Benchmarks that were done in full, as the suite has them now."""
        return len(set(self.ratings) - set(self.partial) - self.outdated)


@dataclass(frozen=True, slots=True)
class RankRange:
    """A rank is a range: 1 + number significantly better … n − number significantly worse."""

    best: int
    worst: int


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
    """Agents that are no worse in quality, cost and latency, and significantly better in one."""
    is_pareto: bool = False
    """Whether no other agent has better figures in one of quality, cost and latency without worse ones in another."""


@dataclass(frozen=True, slots=True)
class Unranked:
    """A result that has no rank because the trial is incomplete."""

    agent: str
    version: str
    benchmark: str
    run: str
    overall: Rating
    """Rating of what was executed, so it may be too high."""
    reason: str


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
    category: str = ""
    benchmarks: tuple[str, ...] = ()
    pareto: tuple[str, ...] = ()
    """Dimensions of quality, cost and latency that the Pareto marks are about; empty where there are no two."""
    unranked: tuple[Unranked, ...] = ()
    """Incomplete results of agents that have no other."""


@dataclass(frozen=True, slots=True)
class Overview:
    """One agent over all benchmarks of several suites."""

    agent: str
    score: Rating
    """The interquartile mean over benchmarks, with its interval over cases."""
    mean: float
    place: RankRange


@dataclass(frozen=True, slots=True)
class Across:
    """Agents over all benchmarks of the suites that a leaderboard shows; simulated ones apart."""

    suites: tuple[str, ...]
    benchmarks: int
    metric: str
    rows: tuple[Overview, ...]
    simulated: tuple[Overview, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Duel:
    """Two agents head to head: the dimensions in which one is significantly better, and those in which that is open."""

    a: str
    b: str
    won: tuple[str, ...]
    """By A."""
    lost: tuple[str, ...]
    undecided: tuple[str, ...]
    p_corrected: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Dimension to the p of the difference, corrected over all pairs and dimensions."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """An agent's means over benchmarks on every dimension and overall, with its place on each."""

    contender: Contender
    ratings: Mapping[str, Rating]
    """The five dimensions and `overall`."""
    places: Mapping[str, RankRange]
    """Only of what it is rated on."""
    coverage: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every agent × five dimensions and overall; simulated ones apart."""

    suite: str
    rows: tuple[MatrixRow, ...]
    simulated: tuple[MatrixRow, ...]
    dimensions: tuple[str, ...]
    """Those that all agents have: `overall` rests on no others."""
    duels: tuple[Duel, ...]
    """Every pair of measured agents, then every pair of simulated ones."""
    doubts: tuple[str, ...] = ()
    category: str = ""
    benchmarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lead:
    """Who leads on a benchmark or on a whole suite: one agent where the evidence says so, else those that tie."""

    benchmark: str
    """Empty for the suite as a whole."""
    is_simulated: bool
    dimensions: tuple[str, ...]
    """What the scores are made of: the dimensions that all of the agents are rated on."""
    scores: Mapping[str, float]
    """Agent to its overall rating on these dimensions, best first."""
    leaders: tuple[str, ...]
    """Agents that no other is significantly better than; several of them tie."""
    margin: float | None = None
    """How far the first agent is above the second, on the cases that both did."""
    low: float | None = None
    high: float | None = None
    ahead_in: tuple[str, ...] = ()
    """Dimensions in which the first agent is significantly better than the second."""
    behind_in: tuple[str, ...] = ()
    """Dimensions in which it is significantly worse."""

    @property
    def is_tie(self) -> bool:
        return len(self.leaders) > 1


@dataclass(frozen=True)
class Boards:
    """A leaderboard for each suite with results, the suite that ran last first, and one across all their benchmarks."""

    each: list[Leaderboard]
    contenders: Mapping[str, Sequence[Contender]]
    """By suite."""
    metric: str
    rank_across: Callable[[Mapping[str, Sequence[Contender]], str], Across | None] = field(repr=False)

    @cached_property
    def across(self) -> Across | None:
        """Rank the agents across suites; None with fewer than three benchmarks.

        This is computed on demand: it takes longer than the leaderboards themselves.
        """
        return self.rank_across(self.contenders, self.metric)


@dataclass(frozen=True, slots=True)
class RankedSuite:
    """A board with the same agents by dimension, without their duels."""

    board: Leaderboard
    matrix: Matrix
    expires: datetime
    """When the first of its results becomes stale, or a day older than the board says."""
