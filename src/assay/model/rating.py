"""Ratings: five marks from 0 to 1 for a trial of a suite, and the overall rating that is their weighted mean.

Accuracy and reliability are shares. Speed, efficiency and cost are relative to a reference: a quantity equal to its reference is rated
0.5, half of it higher, twice as much lower. `analysis.ranking.ratings` computes them, and the store
keeps them with the run. docs/method.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from assay.model.dimension import WEIGHTS
from assay.model.execution import is_incomplete
from assay.model.suite import PASS_MARK

RATED_BY = {
    "accuracy": ("score",),
    "speed": ("seconds",),
    "efficiency": ("tokens", "cpu_seconds", "rss_max_bytes"),
    "cost": ("usd",),
    "reliability": (),
}
"""Dimension to the metrics of executions that it rests on; reliability rests on how they ended."""

QUANTITIES = {
    "seconds": "speed",
    "tokens": "efficiency",
    "usd": "cost",
    "cpu_seconds": "efficiency",
    "memory_mb": "efficiency",
}
"""What ratings compare with a reference, each with the dimension that it is part of."""

OF_SOLUTIONS = ("speed", "efficiency", "cost")
"""Dimensions that rate how cases are solved; they are 0 for an agent that solved none."""

_ROUNDING = 1e-9
"""A mean of scores such as 0.1 falls short by the last digit."""


def is_pass(score: float, pass_mark: float) -> bool:
    """The one rule for passing: the score of an execution, or the mean score of a case over its repetitions.

    >>> is_pass(0.8, 0.8), is_pass(0.79, 0.8), is_pass(sum([0.1] * 3) / 3, 0.1)
    (True, False, True)
    """
    return score >= lowest_pass(pass_mark)


def lowest_pass(pass_mark: float) -> float:
    """The pass mark less what rounding may take off a mean, for whole arrays of scores."""
    return pass_mark - _ROUNDING


@dataclass(frozen=True, slots=True)
class CaseTable:
    """The measured executions of a suite's trial, column by column: row i of every column is the same execution.

    It is what ratings are computed from. Columns are used because a trial may have a million executions.
    """

    cases: Sequence[str]
    repetitions: Sequence[int]
    statuses: Sequence[str]
    metrics: Mapping[str, Sequence[float | None]]
    """Metric to its value in each execution; None where it was not measured."""
    processes: Sequence[int] = ()
    is_judged: bool = True
    """Whether outputs are scored at all; code that is not can still fail."""
    has_cases: bool = True
    """Whether `cases` are cases; of code without any, processes stand there."""
    is_recorded: bool = False
    """Whether its times were recorded earlier rather than measured here."""


BILLED = ("input_tokens", "output_tokens", "cached_tokens", "api_calls")
"""Metrics of executions that prices are for."""

CASE_FIGURES = ("usd", "score", "solved")
"""What is kept of each case for cost analysis: mean cost, mean score, and the share of its repetitions that passed."""


@dataclass(frozen=True, slots=True)
class TrialUsage:
    """What the measured executions of a trial used up in all; harness errors and cancelled executions do not count."""

    executions: int
    unpriced: int
    """Executions whose cost is unknown."""
    usd: float
    """The cost of the others."""
    failed_usd: float
    """The part of it that was spent on executions that ended in an error or at a limit."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """Sum of each metric of `BILLED`; one that an ok execution lacks is missing."""


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
class CaseDifficulty:
    """A case over the latest results of all agents."""

    case: str
    agents: int
    """Agents with a result on it."""
    passed: int
    """Agents that passed it in every repetition."""
    flaky: int
    """Agents that passed it in some repetitions and failed it in others."""
    solved: Rating
    """Mean share of the repetitions that passed, with its interval over agents."""


def has_solved_nothing(accuracy: Rating, weights: Mapping[str, float]) -> bool:
    """Whether every score is 0. Then overall is 0, too: speed, price and consistency do not make up for it.

    The rule does not hold where accuracy has no weight in the rubric.
    """
    return accuracy.value == 0 and weights["accuracy"] > 0


@dataclass(frozen=True, slots=True)
class RatingScope:
    """Trials that share references: those of one definition of a benchmark, simulated agents apart from measured ones."""

    suite: str
    benchmark: str
    hash: str
    """Hash of the benchmark's definition."""
    simulated: bool


class ReferenceOrigin(StrEnum):
    """How a run became the reference."""

    FIRST = "first"
    """It was the first completed run that put all cases."""
    PARTIAL = "partial"
    """It put only some of the cases; the first completed run that puts all of them replaces it."""
    CHOSEN = "chosen"
    """Somebody chose it: `assay suite reference --set`."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A quantity of the run that ratings are relative to, stored with the definition of the benchmark."""

    scope: RatingScope
    quantity: str
    value: float
    run_id: str
    """Stays when the run is deleted."""
    ended: datetime
    origin: ReferenceOrigin


@dataclass(frozen=True, slots=True)
class ReferenceValue:
    """What a quantity was compared with in a rating: at this value the rating is 0.5."""

    value: float
    source: str
    """`rubric`, `run` or `limit` (half of it)."""
    run_id: str | None = None
    ended: datetime | None = None
    origin: str | None = None

    def __str__(self) -> str:
        """Where it comes from.

        >>> str(ReferenceValue(1.0, "limit")), str(ReferenceValue(1.0, "run", "3fa2", datetime(2026, 3, 1)))
        ('half the limit', 'run 3fa2, 2026-03-01')
        """
        if self.source == "run":
            date = "" if self.ended is None else f", {self.ended:%Y-%m-%d}"
            return f"run {self.run_id}{date}{', provisional' * (self.origin == ReferenceOrigin.PARTIAL)}"
        return "half the limit" if self.source == "limit" else self.source


@dataclass(frozen=True, slots=True)
class Ratings:
    """A trial's five ratings, their weighted mean, and the counts behind them.

    Fields with `compare=False` explain the ratings or allow to compare agents case by case; two ratings are equal without them.
    """

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
    """Weights of the dimensions in `overall`, before it is known which of them are rated."""
    yardstick: str = field(default="", compare=False)
    """References and pass mark, as text: ratings with different ones are not comparable."""
    references: Mapping[str, ReferenceValue] = field(default_factory=dict, compare=False)
    """Quantity to what it was compared with."""
    pass_mark: float = field(default=PASS_MARK, compare=False)
    """The score from which a case counts as passed."""
    attempted: int = field(default=0, compare=False)
    """Cases that were put to the agent, also those that count nowhere because the harness failed."""
    unpriced: int = field(default=0, compare=False)
    """Executions whose cost is unknown and not in `usd_per_solved`, which is a floor then."""
    completion: float | None = field(default=None, compare=False)
    """Share of the executions that ended without error, timeout, limit or invalid output; a part of reliability."""
    names: Sequence[str] = field(default=(), compare=False, repr=False)
    """Names of the cases that count, in the order of `marks`."""
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False, repr=False)
    """Dimension to what each case says of it: two agents are told apart by these, case by case."""
    baseline_overall: float | None = field(default=None, compare=False)
    """The overall rating that the suite's `baseline_scores` hold this trial against."""
    by_round: Mapping[str, Sequence[float | None]] = field(default_factory=dict, compare=False)
    """Dimensions that depend on the machine: by how much the rating of each round is off; None where a round has none.

    Empty lists where that was not kept, by an earlier version of Assay.
    """
    is_recorded: bool = field(default=False, compare=False)
    """Whether its times were recorded earlier: they have no rounds, and are not compared with times measured here."""
    expects_scores: bool = field(default=True, compare=False)
    """False for a benchmark without expected outputs and without a scorer of its own: there is nothing to score."""
    case_figures: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False, repr=False)
    """Each of `CASE_FIGURES` to its value in each case, in the order of `names`; NaN where it is unknown."""
    usage: TrialUsage | None = field(default=None, compare=False)
    """None where it was not kept, by an earlier version of Assay."""
    planned: int = field(default=0, compare=False)
    """Measured executions that were planned; 0 where that is not known."""
    nodes: Mapping[int, str] = field(default_factory=dict, compare=False)
    """Round to the node that carried it out; empty where the executor has no nodes."""

    @property
    def without_result(self) -> int:
        """Planned executions that say nothing about the agent: harness errors, and those that were never made."""
        executed = sum(self.outcomes.values()) + self.unscored
        return max(0, self.planned - executed) + self.outcomes.get("harness_error", 0)

    @property
    def is_incomplete(self) -> bool:
        """Whether too many executions have no result. Such a trial has no rank: what is missing might be its failures."""
        executed = sum(self.outcomes.values()) + self.unscored
        return is_incomplete(self.planned or executed, self.without_result)

    @property
    def scored(self) -> int:
        """Ok executions that every weighted scorer judged."""
        return self.outcomes.get("pass", 0) + self.outcomes.get("fail", 0)

    @property
    def is_unscored(self) -> bool:
        """Whether not one output could be scored because scoring failed; such a trial has no overall rating and no rank."""
        return self.overall.value is None and self.unscored > 0 and not self.scored

    @property
    def is_scoring_failed(self) -> bool:
        """Whether more than half of the ok executions are unscored although they should have a score."""
        return self.expects_scores and is_mostly_unscored(self.outcomes, self.unscored)


def is_mostly_unscored(outcomes: Mapping[str, int], unscored: int) -> bool:
    """Whether more than half of the ok executions have no score."""
    return unscored > outcomes.get("pass", 0) + outcomes.get("fail", 0)


@dataclass(frozen=True, slots=True)
class ScorerFailure:
    """A scorer that could not judge some outputs of a trial."""

    scorer: str
    failed: int
    """Ok measured executions that it could not judge."""
    of: int
    """Ok measured executions."""
    weight: float
    """0 is informational: its failures leave the execution scored."""
    reason: str
    """Reason of the first failure."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What judging a trial used up: spending of the harness, no part of the agent's cost."""

    calls: int
    """Questions put to judges."""
    tokens: float | None
    """None is unknown: some call did not report it."""
    usd: float | None


@dataclass(frozen=True, slots=True)
class ShownReference:
    """The reference of one quantity of a benchmark; None if there is none yet."""

    scope: RatingScope
    quantity: str
    reference: ReferenceValue | None

    @property
    def dimension(self) -> str:
        return QUANTITIES[self.quantity]


@dataclass(frozen=True, slots=True)
class ChangedReference:
    before: ReferenceValue | None
    after: ShownReference


@dataclass(frozen=True, slots=True)
class ChangedRating:
    """A trial's ratings before and after its reference was changed: the five dimensions and `overall`."""

    run_id: str
    agent: str
    benchmark: str
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ReferenceChange:
    """What `assay suite reference --set` did."""

    run_id: str
    references: tuple[ChangedReference, ...]
    ratings: tuple[ChangedRating, ...]
    """Only those that are different now."""
    rated: int
    """Trials that were rated again."""
    left_out: tuple[str, ...]
    """Benchmarks that the run did not run as the suite defines them now, or without an ok execution."""
