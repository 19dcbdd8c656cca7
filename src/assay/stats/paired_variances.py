"""What makes the difference of two agents vary, from stored repetitions of the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.sample import finite


@dataclass(frozen=True, slots=True)
class Variances:
    """What makes the difference of two agents on a case vary."""

    case: float
    """ω²: the true difference, from case to case."""
    repetition_a: float
    """σ²: A's score, from one repetition of a case to the next."""
    repetition_b: float

    def of_case(self, repetitions_a: int, repetitions_b: int) -> float:
        """Of the difference of the means of so many repetitions."""
        return self.case + self.repetition_a / repetitions_a + self.repetition_b / repetitions_b


def repetition_variance(cases: Sequence[ArrayLike]) -> float:
    """σ², pooled over the repetitions of each case; 0 where no case has two."""
    samples = [sample for sample in map(finite, cases) if sample.size > 1]
    freedom = sum(sample.size - 1 for sample in samples)
    squares = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    return squares / freedom if freedom else 0.0


def compute_paired_variances(a: Sequence[ArrayLike], b: Sequence[ArrayLike]) -> Variances | None:
    """From the repetitions of the same cases by two agents: what their means vary beyond chance is the cases' own.

    None with fewer than two cases that both have.
    """
    pairs = [(x, y) for x, y in zip(map(finite, a), map(finite, b), strict=True) if x.size and y.size]
    if len(pairs) < 2:
        return None
    within_a, within_b = (
        repetition_variance([x for x, _ in pairs]),
        repetition_variance([y for _, y in pairs]),
    )
    steps = np.array([y.mean() - x.mean() for x, y in pairs])
    by_chance = float(np.mean([within_a / x.size + within_b / y.size for x, y in pairs]))
    return Variances(max(0.0, float(steps.var(ddof=1)) - by_chance), within_a, within_b)
