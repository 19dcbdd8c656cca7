"""How far scorers agree with people who labelled the same answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from assay.analysis.review.shares import compute_share
from assay.model.label import Agreement, LabelledScore
from assay.stats.verdicts import effective_n


def compute_agreements(labelled: Iterable[LabelledScore]) -> list[Agreement]:
    """One for each scorer on each benchmark, by name; the score of all scorers together comes first."""
    grouped: defaultdict[tuple[str, str, str], list[LabelledScore]] = defaultdict(list)
    for score in labelled:
        grouped[score.suite, score.benchmark, score.scorer].append(score)
    return [_compute_agreement(*key, scores) for key, scores in sorted(grouped.items())]


def _compute_agreement(suite: str, benchmark: str, scorer: str, scores: Sequence[LabelledScore]) -> Agreement:
    table = Counter((score.is_passed_by_person, score.is_passed_by_scorer) for score in scores)
    by_case: defaultdict[str, list[bool]] = defaultdict(list)
    for score in scores:
        by_case[score.case].append(score.is_passed_by_person is score.is_passed_by_scorer)
    # Answers to one case are much alike: ten labels of it say less than ten labels of ten cases.
    worth = effective_n(np.array([np.mean(agreed) for agreed in by_case.values()]), len(scores))
    agreed = table[True, True] + table[False, False]
    return Agreement(
        suite=suite,
        benchmark=benchmark,
        scorer=scorer,
        labels=len(scores),
        cases=len(by_case),
        both_pass=table[True, True],
        both_fail=table[False, False],
        only_person_passes=table[True, False],
        only_scorer_passes=table[False, True],
        share=compute_share(agreed, len(scores), worth),
        kappa=compute_kappa(table[True, True], table[False, False], table[True, False], table[False, True]),
    )


def compute_kappa(both_pass: int, both_fail: int, only_first: int, only_second: int) -> float | None:
    """Cohen's kappa (1960) of two raters: agreement beyond that of chance, given how often each says pass.

    None where chance alone would always agree.

    >>> round(compute_kappa(20, 15, 5, 10), 2), compute_kappa(10, 0, 0, 0)
    (0.4, None)
    """
    n = both_pass + both_fail + only_first + only_second
    if not n:
        return None
    first, second = (both_pass + only_first) / n, (both_pass + only_second) / n
    by_chance = first * second + (1 - first) * (1 - second)
    return None if by_chance >= 1 else ((both_pass + both_fail) / n - by_chance) / (1 - by_chance)
