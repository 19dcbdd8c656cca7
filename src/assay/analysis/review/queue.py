"""Decides which answers a person should label first: those with the most doubtful scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from assay.model.rating import is_pass
from assay.model.scored_answer import Uncertainty

_BORDER = 0.15
"""A score this close to the pass mark is borderline. Scores of 0 and 1 never are: those scorers know only right and wrong."""
_ORDER = list(Uncertainty)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer by its scores alone."""

    trial_id: int
    seq: int
    case: str
    scores: Mapping[str, float]
    pass_mark: float

    @property
    def is_passed(self) -> bool:
        return is_pass(self.scores.get("score", 0.0), self.pass_mark)


def rank_answers(judged: Iterable[JudgedAnswer]) -> list[tuple[JudgedAnswer, Uncertainty]]:
    """All answers with why to look at them, the most doubtful first, and those without doubt in a random order.

    The order is the same each time, so that a person who comes back continues where they left.
    """
    answers = list(judged)
    verdicts: defaultdict[tuple[int, str], set[bool]] = defaultdict(set)
    for answer in answers:
        verdicts[answer.trial_id, answer.case].add(answer.is_passed)
    found = [(answer, _find_reason(answer, verdicts[answer.trial_id, answer.case])) for answer in answers]
    return sorted(found, key=lambda entry: (_ORDER.index(entry[1]), _shuffle(entry[0])))


def _find_reason(answer: JudgedAnswer, verdicts: set[bool]) -> Uncertainty:
    parts = [score for name, score in answer.scores.items() if name != "score"]
    if len({is_pass(score, answer.pass_mark) for score in parts}) > 1:
        return Uncertainty.DISAGREE
    if len(verdicts) > 1:
        return Uncertainty.FLIP
    score = answer.scores.get("score", 0.0)
    if 0.0 < score < 1.0 and abs(score - answer.pass_mark) <= _BORDER:
        return Uncertainty.BORDERLINE
    return Uncertainty.SAMPLE


def _shuffle(answer: JudgedAnswer) -> str:
    return sha256(f"{answer.trial_id} {answer.seq}".encode()).hexdigest()
