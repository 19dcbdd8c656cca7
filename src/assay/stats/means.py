"""Differences of means, as of case scores between 0 and 1: Student's t, and exact tests where there are too few for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats import rank_distributions
from assay.stats.effect import Effect, twice_above
from assay.stats.rank_distributions import sums_of_coins
from assay.stats.sample import Array, Scale, finite, quantile, two_sided
from assay.stats.verdicts import effective_n, wilson

FEW_INFORMATIVE = 30
FEW_EVENTS = 5
"""Right or wrong answers on a side below which a share is too near 0 or 1 for Student's t."""
FEWEST_HALVED = 6
FINEST_STEP = 64
ROUNDED_TO = 1024
MOST_STEPS = 50
FEW_CASES = 30
"""Cases on a side below which unpaired scores need an exact test."""
MOST_PERMUTED = 1000
PERMUTED_TO = 128
"""Steps that scores are rounded to where they are not shares of few repetitions; more would take seconds."""
_LARGEST_Z = 40.0
_ROUNDING = 1e-12
_LIKELY_ALIKE = 1e-7
"""Logarithms of chances that are closer than this are of equal chances."""


def mean_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Effect | None:
    """Mean of b[i] − a[i] for shares between 0 and 1; None without two pairs.

    With 30 pairs that differ, Student's t. With fewer, p comes from sign flips, and the t interval from one more pair
    that favours both sides by half: where nearly all pairs agree, the spread that was seen is too small too often, and
    two such pairs are what Bonett and Price (2012) add to single verdicts.
    """
    steps = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    steps = steps[np.isfinite(steps)]
    steps[np.abs(steps) < _ROUNDING] = 0.0
    if steps.size < 2:
        return None
    value, moved = float(steps.mean()), steps[steps != 0]
    dominance = float(np.sign(moved).sum()) / steps.size
    if moved.size < FEW_INFORMATIVE or steps.min() == steps.max():
        low, high = _few_moved_interval(steps, moved, level)
        p, method = sign_flip_p(moved), "sign flips of case means"
    else:
        half, p = _student(value, float(steps.std(ddof=1)) / math.sqrt(steps.size), steps.size - 1, level)
        low, high, method = value - half, value + half, "paired t of case means"
    return _build_bounded_effect(value, low, high, p, method, dominance)


def compute_unpaired_mean_difference(
    a: ArrayLike, b: ArrayLike, executions: tuple[int, int] = (0, 0), level: float = 0.95
) -> Effect | None:
    """Mean of b less mean of a, of case means of different cases; `executions` were made on either side in all.

    Welch's t over cases; where a side has fewer than five right or wrong answers, Newcombe's (1998) combination of both
    sides' Wilson intervals. Below 30 cases on a side, either may claim too much, so p is Fisher's (1935) where every case is
    all right or all wrong, and for other scores that of a permutation test where it is larger. None without two cases on each side.
    """
    first, second = finite(a), finite(b)
    if min(first.size, second.size) < 2:
        return None
    value = float(second.mean() - first.mean())
    dominance = twice_above(first, second) / (first.size * second.size) - 1
    if min(_events(first), _events(second)) < FEW_EVENTS or not first.var() + second.var():
        sides = (_Share.of(first, executions[0]), _Share.of(second, executions[1]))
        below, above = _newcombe(*sides, quantile((1 + level) / 2))
        low, high, p, method = (
            value - below,
            value + above,
            _newcombe_p(*sides),
            "Newcombe's interval over cases",
        )
    else:
        half, p = _student(value, *_welch(first, second), level)
        low, high, method = value - half, value + half, "Welch's t of case means"
    if min(first.size, second.size) < FEW_CASES:
        if all(bool(((side == 0) | (side == 1)).all()) for side in (first, second)):
            p, method = fisher_p(first, second), f"Fisher's exact test, {method}"
        else:
            p, method = max(p, permutation_p(first, second)), f"permutation of case means, {method}"
        if p > 1 - level:
            low, high = min(low, 0.0), max(high, 0.0)
    return _build_bounded_effect(value, low, high, p, method, dominance)


def fisher_p(a: Array, b: Array) -> float:
    """Two-sided: all tables with these margins that are at most as likely as the one that was seen.

    >>> round(fisher_p(np.array([1.0, 1.0]), np.array([0.0, 0.0])), 4)
    0.3333
    """
    right, total = int(a.sum() + b.sum()), a.size + b.size

    def log_chance(right_of_a: int) -> float:
        return (
            _log_choose(a.size, right_of_a)
            + _log_choose(b.size, right - right_of_a)
            - _log_choose(total, right)
        )

    seen = log_chance(int(a.sum()))
    possible = map(log_chance, range(max(0, right - b.size), min(a.size, right) + 1))
    return min(1.0, sum(math.exp(log_p) for log_p in possible if log_p <= seen + _LIKELY_ALIKE))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def permutation_p(a: Array, b: Array) -> float:
    """Chance of a difference as large if the cases had been dealt to both sides at random.

    A difference that is exactly as large counts half (mid-p) from six cases a side on, as in `sign_flip_p`. With many
    cases it is 0, which leaves the word to the tests that large samples allow.
    """
    pooled = np.concatenate((a, b))
    pooled -= pooled.min()
    moved = pooled > _ROUNDING
    if not moved.any():
        return 1.0
    if pooled.size > MOST_PERMUTED:
        return 0.0
    steps = np.zeros(pooled.size, dtype=np.int64)
    steps[moved] = _whole_steps(pooled[moved], PERMUTED_TO)
    dealt = steps[: a.size] if a.size <= b.size else steps[a.size :]
    chances = np.diff(rank_distributions.tied_rank_sum_cdf(steps.tolist(), dealt.size), prepend=0.0)
    distances = np.abs(np.arange(chances.size) * steps.size - dealt.size * steps.sum())
    seen = abs(int(dealt.sum()) * steps.size - dealt.size * int(steps.sum()))
    as_far = float(chances[distances == seen].sum())
    weight = 0.5 if dealt.size >= FEWEST_HALVED else 1.0
    return min(1.0, float(chances[distances > seen].sum()) + weight * as_far)


def _build_bounded_effect(
    value: float, low: float, high: float, p: float, method: str, dominance: float
) -> Effect:
    low, high = max(-1.0, min(low, value)), min(1.0, max(high, value))
    return Effect(Scale.DIFFERENCE, value, low, high, min(1.0, p), method, dominance)


def _student(value: float, error: float, freedom: int, level: float) -> tuple[float, float]:
    """Half the interval, and p."""
    return t_quantile((1 + level) / 2, freedom) * error, 2 * t_tail(abs(value) / error, freedom)


def _few_moved_interval(steps: Array, moved: Array, level: float) -> tuple[float, float]:
    """Where none moved, as many pairs as may differ though none of these does (the rule of three)."""
    if not moved.size:
        reach = 1 - (1 - level) ** (1 / steps.size)
        return -reach, reach
    squares, n = float((moved**2).sum()), steps.size + 1
    middle = float(moved.sum()) / n
    variance = (squares + squares / moved.size) / n - middle**2
    half = t_quantile((1 + level) / 2, steps.size - 1) * math.sqrt(max(0.0, variance) / n)
    return middle - half, middle + half


def sign_flip_p(moved: Array) -> float:
    """Chance of a mean as far from 0 if every difference could as well have had the other sign.

    A mean that is exactly as far counts half (mid-p): there are so few different means that counting it whole would make
    the test far more timid than it says (Lancaster 1961; Fagerland, Lydersen and Laake 2013). Of fewer than six
    differences it counts whole, so that five of a kind are no finding.
    """
    if not moved.size:
        return 1.0
    steps = _whole_steps(moved)
    weights, seen = np.abs(steps).tolist(), abs(int(steps.sum()))
    # Sums are spread evenly around half of the total, so the lower end tells all.
    below = (sum(weights) - seen) // 2
    chances = sums_of_coins(weights, below)
    sides = 2 if seen else 1
    weight = 0.5 if moved.size >= FEWEST_HALVED else 1.0
    return min(1.0, 2 * float(chances[:below].sum()) + sides * weight * float(chances[below]))


def _whole_steps(moved: Array, rounded_to: int = ROUNDED_TO) -> NDArray[np.int64]:
    """As multiples of 1/k for the smallest k that fits, as shares of few repetitions do; else rounded finely."""
    fitting = np.arange(1, FINEST_STEP + 1)
    # The first differences rule out most steps; of continuous values, all of them.
    for few in (moved[:2], moved):
        parts = few[:, None] * fitting
        whole = np.rint(parts)
        fitting = fitting[((np.abs(parts - whole) < 1e-9) & (whole != 0)).all(axis=0)]
        if not fitting.size:
            break
    chosen: Array = moved * fitting[0] if fitting.size else moved / np.abs(moved).max() * rounded_to
    return np.asarray(np.rint(chosen), dtype=np.int64)


def _events(means: Array) -> float:
    """Right or wrong answers, whichever are fewer."""
    right = float(means.sum())
    return min(right, means.size - right)


def _welch(a: Array, b: Array) -> tuple[float, int]:
    """Standard error of the difference, and degrees of freedom (Welch 1947)."""
    first, second = (float(side.var(ddof=1)) / side.size for side in (a, b))
    total = first + second
    freedom = total**2 / (first**2 / (a.size - 1) + second**2 / (b.size - 1))
    return math.sqrt(total), max(1, round(freedom))


@dataclass(frozen=True, slots=True)
class _Share:
    """A side's mean, and how many independent observations it is worth."""

    mean: float
    worth: float

    @classmethod
    def of(cls, means: Array, executions: int) -> _Share:
        return cls(float(means.mean()), effective_n(means, max(executions, means.size)))

    def reach(self, z: float) -> tuple[float, float]:
        """How far Wilson's interval goes below and above the mean."""
        low, high = wilson(self.mean, self.worth, z)
        return self.mean - low, high - self.mean


def _newcombe(a: _Share, b: _Share, z: float) -> tuple[float, float]:
    """How far the interval of the difference goes below and above it."""
    (below_a, above_a), (below_b, above_b) = a.reach(z), b.reach(z)
    return math.hypot(below_b, above_a), math.hypot(above_b, below_a)


def share_difference(a: tuple[float, float], b: tuple[float, float], z: float = 1.96) -> tuple[float, float]:
    """Newcombe's (1998) interval of b less a, each a share and how many observations it rests on.

    >>> [round(end, 3) for end in share_difference((0.0, 100), (0.1, 200))]
    [0.05, 0.149]
    """
    first, second = _Share(*a), _Share(*b)
    below, above = _newcombe(first, second, z)
    value = second.mean - first.mean
    return value - below, value + above


def _newcombe_p(a: _Share, b: _Share) -> float:
    """Return the p value of the interval that just touches zero, found by halving."""
    value = b.mean - a.mean
    if not value:
        return 1.0
    low, high = 0.0, _LARGEST_Z
    for _ in range(MOST_STEPS):
        z = (low + high) / 2
        below, above = _newcombe(a, b, z)
        low, high = (z, high) if (below if value > 0 else above) < abs(value) else (low, z)
    return two_sided(low)


def mean_half_width(values: ArrayLike, level: float = 0.95) -> float:
    """Half of Student's interval of the mean; 0 of fewer than two values, which do not tell.

    >>> round(mean_half_width([1.0, 2.0, 3.0, 4.0, 5.0]), 4)
    1.9632
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < 2:
        return 0.0
    error = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    return t_quantile((1 + level) / 2, sample.size - 1) * error


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: int) -> float:
    """Student's t quantile; closed forms for 1 and 2 degrees, else the Cornish–Fisher expansion and Newton's steps.

    >>> round(t_quantile(0.975, 10), 4), round(t_quantile(0.975, 4), 4)
    (2.2281, 2.7764)
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) * math.sqrt(2 / (4 * share * (1 - share)))
    z = NormalDist().inv_cdf(share)
    v = freedom
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    for _ in range(MOST_STEPS):
        log_scale = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
        density = math.exp(log_scale - (v + 1) / 2 * math.log1p(t * t / v))
        step = (t_tail(t, v) - (1 - share)) / density
        t += step
        if abs(step) < 1e-12 * t:
            break
    return t


def t_tail(t: float, freedom: int) -> float:
    """Chance of more than t (t ≥ 0), by the incomplete beta function."""
    return 0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised, by Lentz's continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1 / max(abs(1 - (a + b) * x / (a + 1)), tiny) * math.copysign(1, 1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return result


def average_by_case(scores: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    """The mean score of each case that has one; pairs are a case's number and a score, None where it could not be scored.

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
