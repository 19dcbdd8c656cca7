"""Scorers for texts that are right by degrees."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from assay.builtin.scorers import options
from assay.builtin.scorers.distance import common_length, edit_distance, ends_in_common
from assay.builtin.scorers.text_normalization import (
    best_likeness,
    first_alternative,
    normalise_text,
    squad_words,
)
from assay.model import Case
from assay.plugin.scorer import Judged, Judgement

_MOST_CHARACTERS = 20_000
_MOST_WORDS = 10_000


class F1:
    """F1 over words, as the SQuAD evaluation computes it.

    Args:
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: f1, threshold: 0.8}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(self, *, threshold: float | None = None) -> None:
        self._threshold = options.threshold("f1", threshold)

    def score(self, judged: Judged) -> Judgement:
        return best_likeness(judged, _f1, self._threshold)

    def example(self, expected: object, case: Case) -> object:
        return first_alternative(expected)


class RougeL:
    """ROUGE-L: F-measure of the longest common subsequence of words.

    Args:
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: rouge_l, threshold: 0.8}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(self, *, threshold: float | None = None) -> None:
        self._threshold = options.threshold("rouge_l", threshold)

    def score(self, judged: Judged) -> Judgement:
        return best_likeness(judged, _rouge_l, self._threshold)

    def example(self, expected: object, case: Case) -> object:
        return first_alternative(expected)


class Edit:
    """Edit similarity: 1 − Levenshtein distance ÷ length of the longer text.

    Args:
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: edit, threshold: 0.8}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(self, *, threshold: float | None = None) -> None:
        self._threshold = options.threshold("edit", threshold)

    def score(self, judged: Judged) -> Judgement:
        return best_likeness(judged, _edit, self._threshold)

    def example(self, expected: object, case: Case) -> object:
        return first_alternative(expected)


def _f1(a: str, b: str) -> float:
    left, right = squad_words(a), squad_words(b)
    return _harmonic((Counter(left) & Counter(right)).total(), len(left), len(right))


def _rouge_l(a: str, b: str) -> float:
    left, right = normalise_text(a, False).split(), normalise_text(b, False).split()
    start, end = ends_in_common(left, right)
    between = common_length(
        left[start : len(left) - end][:_MOST_WORDS], right[start : len(right) - end][:_MOST_WORDS]
    )
    return _harmonic(start + between + end, len(left), len(right))


def _harmonic(common: int, left: int, right: int) -> float:
    return 2 * common / (left + right) if left + right else 1.0


def _edit(a: str, b: str) -> float:
    longest = max(len(a), len(b))
    if not longest:
        return 1.0
    start, end = ends_in_common(a, b)
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    # What is beyond the bound counts as edited: an endless output is not worth endless work.
    beyond = max(0, len(left) - _MOST_CHARACTERS, len(right) - _MOST_CHARACTERS)
    edits = edit_distance(left[:_MOST_CHARACTERS], right[:_MOST_CHARACTERS]) + beyond
    return max(0.0, 1 - edits / longest)
