"""Answers of agents to cases, as people look at them: side by side, and one after the other to be labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from assay.model.case import Case
from assay.model.execution import Status


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """What an agent answered to a case once, and what scorers gave for it."""

    trial_id: int
    seq: int
    """The number of the execution in its trial."""
    case: str
    repetition: int
    status: Status
    output: object
    error: str | None
    detail: Mapping[str, object] | None
    scores: Mapping[str, float]
    """`score` and, where there are several scorers, `score.NAME` of each."""
    seconds: float | None = None

    @property
    def score(self) -> float | None:
        return self.scores.get("score")


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """The trial that answers come from."""

    trial_id: int
    run_id: str
    suite: str
    benchmark: str
    agent: str
    version: str
    pass_mark: float


@dataclass(frozen=True, slots=True)
class CaseScore:
    """How a trial did on a case over its repetitions; None where nothing was judged."""

    score: float | None = None
    solved: float | None = None
    """Share of the repetitions that passed."""


class ScoreDifference(StrEnum):
    """How side B of a comparison did on a case, seen from side A."""

    HIGHER = "higher"
    LOWER = "lower"
    EQUAL = "equal"
    MISSING = "missing"
    """One of the sides has no score."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """A case with the answers of two sides."""

    case: str
    definition: Case | None
    """None where the suite no longer has it."""
    scores: tuple[CaseScore, CaseScore]
    answers: tuple[Sequence[ScoredAnswer], Sequence[ScoredAnswer]]
    difference: ScoreDifference


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """A part of the cases of two trials of the same benchmark."""

    sides: tuple[AnswerSource, AnswerSource]
    counts: Mapping[ScoreDifference, int]
    """Over all cases."""
    chosen: int
    """Cases that were asked for."""
    pairs: Sequence[AnswerPair]


class Uncertainty(StrEnum):
    """Why a person should look at an answer; the most telling reason comes first."""

    DISAGREE = "scorers disagree"
    FLIP = "repetitions differ"
    BORDERLINE = "close to the pass mark"
    SAMPLE = "random sample"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An answer to be labelled, with why it was chosen."""

    answer: ScoredAnswer
    source: AnswerSource
    definition: Case | None
    reason: Uncertainty


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """What is still to be labelled among the latest results of a suite."""

    suite: str
    waiting: Mapping[Uncertainty, int] = field(default_factory=dict)
    labelled: int = 0
    """Answers among those that were looked at which have a label."""
    current: ReviewItem | None = None
    """The one to label next; None where nothing is left."""
