"""Variance components: how much variation comes from rounds, cases and repetitions.

`split` takes a table of cases by rounds apart into what cases, rounds and repetitions contribute, which gives the noise floor of
an A/A run. `compute_paired_variances` does so for the difference of two agents on the same cases, which tells how many cases
and repetitions a comparison needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.sample import Array, finite


@dataclass(frozen=True, slots=True)
class Split:
    """Variances of one observation; None where the table is too small to tell that part."""

    case: float | None
    round: float | None
    """What all cases of a round have in common: the process, the hour, the machine."""
    rest: float
    """From one repetition to the next, beside that."""

    def of_round(self, cases: int) -> float:
        """Variance of the mean of a round of so many cases, the cases being the same."""
        return (self.round or 0.0) + self.rest / cases


def split(table: Array) -> Split | None:
    """Rows are cases, columns are rounds, and every cell is there. None with fewer than two rounds.

    The usual estimates of a two-way layout without replication (Searle, Casella and McCulloch 1992), none below zero.
    """
    cases, rounds = table.shape
    if rounds < 2 or cases < 1:
        return None
    if cases == 1:
        return Split(None, None, float(table.var(ddof=1)))
    by_case, by_round, middle = table.mean(axis=1), table.mean(axis=0), table.mean()
    left = table - by_case[:, None] - by_round[None, :] + middle
    rest = float((left**2).sum()) / ((cases - 1) * (rounds - 1))
    case = max(0.0, float(by_case.var(ddof=1)) - rest / rounds)
    round_ = max(0.0, float(by_round.var(ddof=1)) - rest / cases)
    return Split(case, round_, rest)


@dataclass(frozen=True, slots=True)
class Variances:
    """What makes the difference of two agents on a case vary."""

    case: float
    """ω²: the true difference, from case to case."""
    repetition_a: float
    """σ²: A's score, from one repetition of a case to the next."""
    repetition_b: float

    def of_case(self, repetitions_a: int, repetitions_b: int) -> float:
        """Return the variance of the difference of the means of so many repetitions."""
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
