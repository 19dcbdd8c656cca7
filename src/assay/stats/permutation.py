"""Two samples of repetitions within the same cases: did this change break anything here?

The cases are fixed, so the test conditions on them. If nothing changed, every way of dealing the repetitions of a case to
A and B is equally likely. The statistic is the sum of B's scores over all cases, and its distribution is the convolution
of one distribution a case: the hypergeometric one for pass and fail (the exact Mantel–Haenszel test), otherwise that of the
sum of as many scores as B has, drawn from all of them without replacement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats.effect import Effect
from assay.stats.rank_distributions import chances_of_draws
from assay.stats.sample import Array, Scale, order_by_group, quantile

FINEST_STEP = 20
"""Scores that are multiples of 1/k for some k up to this are tested exactly."""
MOST_DISTRIBUTIONS = 400
"""Different cases beyond which scores other than pass and fail are tested by the normal approximation."""
MOST_REPETITIONS = 200
"""Maximum repetitions of both sides together, in one case."""
DRAWS = 20_000
MOST_SHUFFLED = 600
"""Executions beyond which the normal approximation serves as well as random draws."""
SMALLEST_P = 1e-40
"""Chances below this are cut off, which keeps the convolution of 10,000 cases short."""
_SEED = 20_260_101
_ROUNDING = 1e-9
METHOD = "permutation of repetitions within cases"

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The scores of one side, and the number of the case that each belongs to."""

    scores: Array
    cases: Whole

    @classmethod
    def of(cls, scores: ArrayLike, cases: ArrayLike) -> Repetitions:
        return cls(np.asarray(scores, dtype=np.float64), np.asarray(cases, dtype=np.int64))

    def only(self, cases: Whole) -> Repetitions:
        """With the cases numbered from 0, in the order of `cases`."""
        places = np.minimum(np.searchsorted(cases, self.cases), cases.size - 1)
        kept = cases[places] == self.cases
        return Repetitions(self.scores[kept], places[kept])


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """How B's mean score differs from A's over the cases that both have."""

    difference: float
    """Mean over the cases of B's mean less A's."""
    p_worse: float
    """Chance of a result as low as B's, or lower, if nothing changed."""
    p_better: float
    error: float
    """Standard deviation of the difference if nothing changed."""
    dominance: float
    """Share of cases in which B is above A, less the share in which it is below."""
    method: str

    @property
    def p(self) -> float:
        """Two-sided: twice the tail on the side of the difference."""
        if not self.difference:
            return 1.0
        return min(1.0, 2 * (self.p_worse if self.difference < 0 else self.p_better))

    def effect(self, level: float = 0.95) -> Effect:
        """With the test-based interval (Miettinen 1976), which excludes 0 exactly when p is below 1 − level."""
        wide = quantile((1 + level) / 2)
        z = -NormalDist().inv_cdf(self.p / 2) if self.p < 1 else 0.0
        half = wide * abs(self.difference) / max(z, 1.0)
        if self.p >= 1 - level - _ROUNDING:
            # At the level itself the two are equal but for rounding, which must not exclude 0.
            half = max(half, wide * self.error, abs(self.difference))
        low, high = max(-1.0, self.difference - half), min(1.0, self.difference + half)
        return Effect(Scale.DIFFERENCE, self.difference, low, high, self.p, self.method, self.dominance)


def permutation_test(a: Repetitions, b: Repetitions) -> PermutationTest | None:
    """None where no case is on both sides."""
    cases = np.intersect1d(a.cases, b.cases)
    if not cases.size:
        return None
    first, second = a.only(cases), b.only(cases)
    counts = [np.bincount(side.cases, minlength=cases.size) for side in (first, second)]
    sums = [np.bincount(side.cases, side.scores, cases.size) for side in (first, second)]
    steps = sums[1] / counts[1] - sums[0] / counts[0]
    steps[np.abs(steps) < _ROUNDING] = 0.0
    strata = _Strata.of(first, second, counts[1])
    error = math.sqrt(float((strata.variances() * (1 / counts[0] + 1 / counts[1])).sum())) / cases.size
    tails = strata.tails()
    return PermutationTest(
        difference=float(steps.mean()),
        p_worse=min(1.0, tails.lower + SMALLEST_P),
        p_better=min(1.0, tails.upper + SMALLEST_P),
        error=error if error > _ROUNDING else 0.0,
        dominance=float(np.sign(steps).mean()),
        method=f"{tails.name} {METHOD}".strip() + tails.note,
    )


def repetitions_to_settle(lost: int, won: int, alpha: float, most: int = 20) -> int | None:
    """Repetitions a side with which so many lost and won cases are significant if all of them stay so; None if none are."""
    if lost == won:
        return None
    for number in range(1, most + 1):
        passed, failed = np.ones(number), np.zeros(number)
        before = np.concatenate([passed] * lost + [failed] * won)
        after = np.concatenate([failed] * lost + [passed] * won)
        cases = np.repeat(np.arange(lost + won), number)
        test = permutation_test(Repetitions.of(before, cases), Repetitions.of(after, cases))
        if test is not None and test.p < alpha:
            return number
    return None


@dataclass(frozen=True, slots=True)
class _Tails:
    lower: float
    upper: float
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class _CaseKind:
    """Cases with the same scores, of which B has `drawn`."""

    scores: tuple[int, ...]
    drawn: int
    count: int


@dataclass(frozen=True, slots=True)
class _Strata:
    """The repetitions of both sides together, by case.

    Under the null hypothesis it is chance which repetitions of a case are B's, so the distribution of B's
    sum follows from drawing `drawn` repetitions of each case without replacement. Cases are independent
    of each other, so their distributions are convolved.
    """

    scores: Array
    cases: Whole
    sizes: Whole
    drawn: Whole
    """Repetitions of B, by case."""
    observed: float
    """The sum of B's scores."""

    @classmethod
    def of(cls, a: Repetitions, b: Repetitions, drawn: Whole) -> _Strata:
        scores = np.concatenate((a.scores, b.scores))
        cases = np.concatenate((a.cases, b.cases))
        return cls(scores, cases, np.bincount(cases, minlength=drawn.size), drawn, float(b.scores.sum()))

    def variances(self) -> Array:
        """Return the variance of the scores of each case, of both sides together."""
        means = np.bincount(self.cases, self.scores) / self.sizes
        squares = np.bincount(self.cases, (self.scores - means[self.cases]) ** 2)
        return np.asarray(squares / np.maximum(1, self.sizes - 1))

    def tails(self) -> _Tails:
        """How likely a sum at most, and at least, as large as B's is if nothing changed.

        Exact where scores are multiples of 1/k and the cases are of few kinds; by random draws for the other small
        problems; by the normal approximation for the rest. The name and the note end up in the method of the test.
        """
        steps = _steps_of(self.scores)
        if steps is not None and self.sizes.max() <= MOST_REPETITIONS:
            kinds = list(self._pass_kinds() if steps == 1 else self._score_kinds(steps))
            if steps == 1 or len(kinds) <= MOST_DISTRIBUTIONS:
                return _exact_tails(kinds, round(self.observed * steps))
        if self.scores.size <= MOST_SHUFFLED:
            return self._draw_tails()
        spread = self.variances() * self.drawn * (self.sizes - self.drawn) / self.sizes
        means = np.bincount(self.cases, self.scores) / self.sizes
        z = (self.observed - float((means * self.drawn).sum())) / math.sqrt(float(spread.sum()) or 1.0)
        return _Tails(NormalDist().cdf(z), NormalDist().cdf(-z), "", " (normal approximation)")

    def _rows(self) -> Iterator[tuple[int, Array]]:
        """Cases of equal numbers of repetitions as rows of sorted scores, with how many of each row are B's."""
        scores = self.scores[order_by_group(self.scores, self.cases)]
        starts = np.concatenate(([0], np.cumsum(self.sizes)[:-1]))
        for size, drawn in sorted(set(zip(self.sizes.tolist(), self.drawn.tolist(), strict=True))):
            chosen = starts[(self.sizes == size) & (self.drawn == drawn)]
            yield drawn, scores[chosen[:, None] + np.arange(size)]

    def _pass_kinds(self) -> Iterator[_CaseKind]:
        """Passes and fails are known by their number."""
        passes = np.rint(np.bincount(self.cases, self.scores)).astype(np.int64)
        base = int(self.sizes.max()) + 1
        codes, counts = np.unique((self.sizes * base + self.drawn) * base + passes, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            rest, passed = divmod(code, base)
            size, drawn = divmod(rest, base)
            yield _CaseKind((0,) * (size - passed) + (1,) * passed, drawn, count)

    def _score_kinds(self, steps: int) -> Iterator[_CaseKind]:
        for drawn, rows in self._rows():
            distinct, counts = np.unique(np.rint(rows * steps).astype(np.int64), axis=0, return_counts=True)
            for row, count in zip(distinct.tolist(), counts.tolist(), strict=True):
                yield _CaseKind(tuple(row), drawn, count)

    def _draw_tails(self) -> _Tails:
        """Estimate the tails by Monte Carlo, with a fixed seed.

        The observed result counts as one of the draws, so that p is never 0 and the test stays valid
        (Davison and Hinkley 1997, 4.2). Sums that differ by rounding only count as equal.
        """
        chance = np.random.default_rng(_SEED)
        sums = np.zeros(DRAWS)
        for drawn, rows in self._rows():
            for row in rows[(rows[:, 0] != rows[:, -1])]:
                picked = np.argpartition(chance.random((DRAWS, row.size)), drawn - 1, axis=1)[:, :drawn]
                sums += row[picked].sum(axis=1)
            sums += drawn * rows[rows[:, 0] == rows[:, -1], 0].sum()
        near = _ROUNDING * max(1.0, abs(self.observed))
        lower = (1 + int((sums <= self.observed + near).sum())) / (1 + DRAWS)
        upper = (1 + int((sums >= self.observed - near).sum())) / (1 + DRAWS)
        return _Tails(lower, upper, "", f" (Monte Carlo, {DRAWS:,} draws)")


def _steps_of(scores: Array) -> int | None:
    """The smallest k with all scores multiples of 1/k."""
    distinct = np.unique(scores)
    if distinct.size > FINEST_STEP**2:
        return None
    for steps in range(1, FINEST_STEP + 1):
        if (np.abs(distinct * steps - np.rint(distinct * steps)) < _ROUNDING).all():
            return steps
    return None


@dataclass(frozen=True, slots=True)
class _Chances:
    """The distribution of a sum of whole numbers: the chances of the sums `start`, `start` + 1, …"""

    start: int
    chances: Array

    def plus(self, other: _Chances) -> _Chances:
        """The distribution of the sum of both."""
        return _trim_chances(self.start + other.start, np.convolve(self.chances, other.chances))

    def times(self, count: int) -> _Chances:
        """The distribution of the sum of so many of these, by repeated squaring."""
        total, square = None, self
        while True:
            if count & 1:
                total = square if total is None else total.plus(square)
            count >>= 1
            if not count:
                return total or self
            square = square.plus(square)


def _trim_chances(start: int, chances: Array) -> _Chances:
    kept = np.flatnonzero(chances > SMALLEST_P)
    return _Chances(start + int(kept[0]), chances[kept[0] : kept[-1] + 1])


@lru_cache(maxsize=4096)
def _chances_of(scores: tuple[int, ...], drawn: int) -> _Chances:
    return _trim_chances(0, chances_of_draws(scores, drawn))


def _exact_tails(kinds: Iterable[_CaseKind], observed: int) -> _Tails:
    sums = [_chances_of(kind.scores, kind.drawn).times(kind.count) for kind in kinds]
    total = _Chances(0, np.ones(1))
    # Short ones first: a convolution costs the product of both lengths.
    for part in sorted(sums, key=lambda part: part.chances.size):
        total = total.plus(part)
    place = observed - total.start
    lower = float(total.chances[: max(0, place + 1)].sum())
    upper = float(total.chances[max(0, place) :].sum())
    return _Tails(lower, upper, "exact")
