"""How much must be measured before an effect of a given size is found: of means by formula, of ranks by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.stats import nulls
from assay.stats.sample import Array, finite, quantile

ALPHA = 0.05
POWER = 0.8
DRAWS = 4000
SIMULATED_UP_TO = 200
"""Units; beyond, the effect that so many find is scaled: what is found depends on its size times √n."""
MOST = 10_000_000


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


def cases_needed(
    effect: float,
    variances: Variances,
    repetitions: tuple[int, int] = (1, 1),
    *,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int:
    """Cases, asked of both agents, that find a difference of means of this size (Miller 2024, section 5).

    >>> cases_needed(0.03, Variances(1 / 9, 0.0, 0.0))
    969
    """
    if not effect:
        return MOST
    reach = quantile(1 - alpha / 2) + quantile(power)
    needed = reach**2 * variances.of_case(*repetitions) / effect**2
    return max(2, math.ceil(min(needed, MOST)))


def smallest_effect(
    cases: int,
    variances: Variances,
    repetitions: tuple[int, int] = (1, 1),
    *,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float:
    """The difference of means that so many cases find."""
    reach = quantile(1 - alpha / 2) + quantile(power)
    return reach * math.sqrt(variances.of_case(*repetitions) / max(cases, 1))


def repetition_variance(cases: Sequence[ArrayLike]) -> float:
    """σ², pooled over the repetitions of each case; 0 where no case has two."""
    samples = [sample for sample in map(finite, cases) if sample.size > 1]
    freedom = sum(sample.size - 1 for sample in samples)
    squares = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    return squares / freedom if freedom else 0.0


def paired_variances(a: Sequence[ArrayLike], b: Sequence[ArrayLike]) -> Variances | None:
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


def case_variance(cases: Sequence[ArrayLike]) -> float:
    """Of the true mean of a case, from case to case, of one agent: what its means vary beyond chance."""
    samples = [sample for sample in map(finite, cases) if sample.size]
    if len(samples) < 2:
        return 0.0
    within = repetition_variance(samples)
    means = np.array([sample.mean() for sample in samples])
    return max(0.0, float(means.var(ddof=1)) - within * float(np.mean([1 / s.size for s in samples])))


def units_needed(
    ratio: float,
    noise: float | ArrayLike,
    *,
    is_paired: bool,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int:
    """Units a side, or pairs, at which the rank test finds B ÷ A of this size.

    `noise` is the standard deviation on the logarithmic scale, of units or of paired ratios, and then normal; or the
    logarithms that were seen, which are drawn from: stragglers cost a rank test little, and only they tell how little.
    """
    shift, noises = abs(math.log(ratio)), _Noise.of(noise)
    if not shift:
        return MOST
    if not noises.spread:
        return nulls.fewest_units(alpha, is_paired=is_paired)
    found = partial(_found, shift=shift, noises=noises, is_paired=is_paired, alpha=alpha)
    if found(SIMULATED_UP_TO) < power:
        wanted = partial(_found, SIMULATED_UP_TO, noises=noises, is_paired=is_paired, alpha=alpha)
        enough = _smallest_shift(lambda size: wanted(shift=size) >= power, shift, noises.spread)
        return min(MOST, math.ceil(SIMULATED_UP_TO * (enough / shift) ** 2))
    low, high = nulls.fewest_units(alpha, is_paired=is_paired) - 1, SIMULATED_UP_TO
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class _Noise:
    spread: float
    seen: Array | None = None

    @classmethod
    def of(cls, noise: float | ArrayLike) -> _Noise:
        seen = finite(np.atleast_1d(np.asarray(noise, dtype=np.float64)))
        if seen.size < 2:
            return cls(float(seen[0]) if seen.size else 0.0)
        return cls(float(seen.std(ddof=1)), seen - np.median(seen))

    def drawn(self, chance: np.random.Generator, shape: tuple[int, int]) -> Array:
        if self.seen is None:
            return chance.normal(0.0, self.spread, shape)
        # Ties would be artefacts of drawing the same value twice; a touch of noise undoes them.
        return chance.choice(self.seen, shape) + chance.normal(0.0, self.spread / 1000, shape)


def _found(n: int, *, shift: float, noises: _Noise, is_paired: bool, alpha: float) -> float:
    """Share of simulated comparisons of n units a side in which the rank test finds the shift."""
    chance = np.random.default_rng(n)
    if is_paired:
        steps = shift + _with_either_sign(noises.drawn(chance, (DRAWS, n)), noises, chance)
        return _share_beyond(_signed_ranks(steps), n * (n + 1) // 2, _signed_rank_limit(n, alpha))
    a, b = noises.drawn(chance, (DRAWS, n)), shift + noises.drawn(chance, (DRAWS, n))
    return _share_beyond(_rank_sums(a, b), n * n, _rank_sum_limit(n, alpha))


def _with_either_sign(steps: Array, noises: _Noise, chance: np.random.Generator) -> Array:
    """Ratios of pairs scatter alike on both sides of their centre, also where those that were seen happened not to."""
    return steps if noises.seen is None else steps * chance.choice((-1.0, 1.0), steps.shape)


def _rank_sums(a: Array, b: Array) -> NDArray[np.int64]:
    """How many pairs have B above A, row by row."""
    n = a.shape[1]
    is_b = np.argsort(np.concatenate((a, b), axis=1), axis=1) >= n
    ranks = np.where(is_b, np.arange(1, 2 * n + 1), 0).sum(axis=1)
    return np.asarray(ranks - n * (n + 1) // 2, dtype=np.int64)


def _signed_ranks(steps: Array) -> NDArray[np.int64]:
    order = np.argsort(np.abs(steps), axis=1)
    is_up = np.take_along_axis(steps, order, axis=1) > 0
    return np.asarray(np.where(is_up, np.arange(1, steps.shape[1] + 1), 0).sum(axis=1), dtype=np.int64)


def _share_beyond(statistics: NDArray[np.int64], total: int, limit: int) -> float:
    return float(np.mean((statistics <= limit) | (statistics >= total - limit))) if limit >= 0 else 0.0


def _rank_sum_limit(n: int, alpha: float) -> int:
    if n * n <= nulls.EXACT_PAIRS:
        return nulls.interval_rank(nulls.rank_sum_cdf(n, n), 1 - alpha)
    return nulls.normal_interval_rank(n * n / 2, n * math.sqrt((2 * n + 1) / 12), 1 - alpha)


def _signed_rank_limit(n: int, alpha: float) -> int:
    if n <= nulls.EXACT_SIGNED:
        return nulls.interval_rank(nulls.signed_rank_cdf(n), 1 - alpha)
    mean = n * (n + 1) / 4
    return nulls.normal_interval_rank(mean, math.sqrt(mean * (2 * n + 1) / 6), 1 - alpha)


def _smallest_shift(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """By halving; `high`, a whole standard deviation, is always enough for so many units."""
    high = max(high, low)
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
