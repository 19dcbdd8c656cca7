"""Labels: what people said of answers, and how far scorers agree with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from assay.model.figure import Share


class LabelVerdict(StrEnum):
    """What a person says of an answer."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Label:
    """A person's word on one execution."""

    trial_id: int
    seq: int
    """The number of the execution in its trial."""
    case: str
    author: str
    verdict: LabelVerdict
    note: str
    created: datetime
    id: int = 0


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """A label beside what one scorer gave the same execution."""

    suite: str
    benchmark: str
    scorer: str
    """Empty for the score of all scorers together."""
    trial_id: int
    case: str
    is_passed_by_person: bool
    is_passed_by_scorer: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a scorer agrees with people on a benchmark."""

    suite: str
    benchmark: str
    scorer: str
    labels: int
    cases: int
    both_pass: int
    both_fail: int
    only_person_passes: int
    only_scorer_passes: int
    share: Share
    """Share of the labels that the scorer agrees with; its interval counts repetitions of a case for what they are worth."""
    kappa: float | None
    """Cohen's kappa; None where person or scorer gave only one verdict, so that chance alone would agree."""
