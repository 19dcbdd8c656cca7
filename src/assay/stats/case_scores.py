"""Scores of cases that were asked several times: every case counts once, however often it was asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from assay.stats.means import mean_half_width


def average_by_case(scores: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    """The mean score of each case that has one; pairs are a case's number and a score, None where nobody could score it.

    >>> average_by_case([(0, 1.0), (0, 0.5), (1, None), (2, 0.0)])
    {0: 0.75, 2: 0.0}
    """
    by_case: dict[int, list[float]] = defaultdict(list)
    for case, value in scores:
        if value is not None:
            by_case[case].append(value)
    return {case: float(np.mean(values)) for case, values in by_case.items()}


def compute_mean_score(means: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The mean over cases with the ends of Student's interval within 0 and 1; one case alone has no interval.

    >>> compute_mean_score([0.5])
    (0.5, None, None)
    """
    value = float(np.mean(means))
    if len(means) < 2:
        return value, None, None
    half = mean_half_width(means)
    return value, max(0.0, value - half), min(1.0, value + half)
