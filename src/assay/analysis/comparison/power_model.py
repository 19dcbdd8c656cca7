"""Models from which `sample_size.py` draws simulated comparisons: two agents as stored results describe them.

A model is fitted to the results of two agents (or of one agent and another like it), gets a difference of a given size
planted, and is then drawn from as often as wanted. Cases and processes are drawn as a sample, as `assay compare` takes them.
Nothing is known beyond the stored results, so what they do not show (cases that only one agent solves, say) is added with
the weight of half a case. There is one model for each kind of data: `PassModel` for passed or failed, `RowModel` for scores
with many ties, `ShiftModel` for continuous values by case, round and repetition, and `ProcessModel` for code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.severity import depends_on_machine
from assay.analysis.estimates.replication import observe
from assay.model import Metric, Series
from assay.model.metric import is_score
from assay.stats.pass_rates import UNSEEN, PassRates, fit_one, fit_pair, tilt
from assay.stats.sample import Array
from assay.stats.variance import compute_paired_variances

TIED = 0.1
"""If more than this share of cases do not differ at all, a larger difference means more cases that differ, not a little
more difference everywhere."""
_CHI_SQUARED_MEDIANS = (0.455, 1.386, 2.366, 3.357, 4.351, 5.348)
"""For 1 to 6 degrees of freedom; beyond, the median is close to the degrees of freedom less 2/3."""


@dataclass(frozen=True, slots=True)
class Chance:
    """The random numbers of one simulated comparison, reproducible by its number.

    At every size the first cases (or rounds) get the same random numbers, so that a larger comparison contains the smaller one
    and power grows smoothly with size. `purpose` separates the streams of random numbers within one draw.
    """

    number: int
    grows_by_round: bool = False

    def uniform(self, purpose: int, units: int, repetitions: int = 1) -> Array:
        chance = self._generator(purpose)
        if self.grows_by_round:
            return chance.random((repetitions, units)).T
        return chance.random((units, repetitions))

    def normal(self, purpose: int, size: int) -> Array:
        return self._generator(purpose).standard_normal(size)

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([self.number, purpose]))


class PairModel(Protocol):
    """Two sides of a comparison that can be drawn as often as wanted.

    `_Forecast` in `sample_size.py` plants a difference once and then draws hundreds of comparisons. Models are immutable.
    """

    def plant(self, effect: float) -> PairModel:
        """The model with this difference between the sides: B − A for scores, B ÷ A − 1 for other metrics."""
        ...

    def draw(self, chance: Chance, units: int, repetitions: int) -> tuple[Array, Array]:
        """A's and B's values: one row for each case or process, one column for each repetition."""
        ...


@dataclass(frozen=True, slots=True)
class PassModel:
    """Scores of 0 and 1: cases are of several kinds, each with a chance to pass on either side."""

    rates: PassRates

    def plant(self, effect: float) -> PassModel:
        sign = -1.0 if self.rates.difference < -1e-9 else 1.0
        return PassModel(self.rates.plant(sign * effect))

    def draw(self, chance: Chance, units: int, repetitions: int) -> tuple[Array, Array]:
        kinds = _choose(self.rates.weights, chance.uniform(0, units))
        a = chance.uniform(1, units, repetitions) < self.rates.a[kinds]
        b = chance.uniform(2, units, repetitions) < self.rates.b[kinds]
        return a.astype(np.float64), b.astype(np.float64)


@dataclass(frozen=True, slots=True)
class RowModel:
    """Scores that are the same on many cases: cases are drawn as they were seen, and repetitions from those of the case."""

    a: tuple[Array, ...]
    b: tuple[Array, ...]
    weights: Array

    @classmethod
    def of(cls, a: list[Array], b: list[Array]) -> RowModel:
        """Add two unseen cases of small weight: one that only A solves, and one that only B solves.

        Without them a sample in which every case has the same result would have no variance, and the
        forecast would promise certainty.
        """
        zero, unit = np.zeros(1), np.ones(1)
        weights = np.array([*([1.0] * len(a)), UNSEEN / 2, UNSEEN / 2])
        return cls((*a, zero, unit), (*b, unit, zero), weights / weights.sum())

    def plant(self, effect: float) -> RowModel:
        steps = np.array([y.mean() - x.mean() for x, y in zip(self.a, self.b, strict=True)])
        sign = -1.0 if float(self.weights @ steps) < -1e-9 else 1.0
        return replace(self, weights=tilt(self.weights, steps, sign * effect))

    def draw(self, chance: Chance, units: int, repetitions: int) -> tuple[Array, Array]:
        rows = _choose(self.weights, chance.uniform(0, units))[:, 0]
        sides = []
        for purpose, values in ((1, self.a), (2, self.b)):
            places = chance.uniform(purpose, units, repetitions)
            sizes = np.array([row.size for row in values])
            starts = np.cumsum(sizes) - sizes
            index = starts[rows][:, None] + (places * sizes[rows][:, None]).astype(np.int64)
            sides.append(np.concatenate(values)[index])
        return sides[0], sides[1]


@dataclass(frozen=True, slots=True)
class DeviationPool:
    """Deviations from 0 to draw from, smoothed so that a few of them do not stand for all there could be."""

    values: Array
    blur: float

    @classmethod
    def of(cls, values: Array, spread: float) -> DeviationPool:
        """A pool with this standard deviation; the kernel's width is Silverman's (1986), 0 where most values are the same."""
        if values.size < 2 or spread <= 0 or not values.std():
            return cls(np.zeros(1), 0.0)
        centred = values - values.mean()
        middle_half = float(np.subtract(*np.percentile(centred, (75, 25)))) / 1.34
        blur = 0.9 * min(float(centred.std()), middle_half) * values.size**-0.2
        scale = spread / math.hypot(float(centred.std()), blur)
        return cls(centred * scale, blur * scale)

    def draw(self, chance: Chance, purpose: int, units: int, repetitions: int = 1) -> Array:
        places = (chance.uniform(purpose, units, repetitions) * self.values.size).astype(np.int64)
        if not self.blur:
            return self.values[places]
        # Sums of uniform numbers: close enough to the normal, and the same for the first units at every size.
        noise = sum(chance.uniform(purpose + more, units, repetitions) for more in (100, 200, 300)) - 1.5
        return np.asarray(self.values[places] + 2 * self.blur * noise)


@dataclass(frozen=True, slots=True)
class ShiftModel:
    """Values that vary by case, round and repetition, on the scale of logarithms for what is compared as a ratio."""

    levels: Array
    """The levels of the cases that were seen."""
    cases: DeviationPool
    """What B − A of a case deviates by from the mean difference."""
    repetitions: tuple[DeviationPool, DeviationPool]
    round_spread: float
    """The standard deviation of what a round adds to a side."""
    is_log: bool
    shift: float = 0.0

    def plant(self, effect: float) -> ShiftModel:
        return replace(self, shift=math.log1p(effect) if self.is_log else effect)

    def draw(self, chance: Chance, units: int, repetitions: int) -> tuple[Array, Array]:
        """Which agent is on which side is drawn for every case, so the only difference is the one that was planted."""
        levels = self.levels[(chance.uniform(0, units) * self.levels.size).astype(np.int64)]
        is_swapped = chance.uniform(1, units) < 0.5
        half = self.cases.draw(chance, 2, units) * np.where(is_swapped, -0.5, 0.5)
        first, second = (
            pool.draw(chance, 3 + place, units, repetitions) for place, pool in enumerate(self.repetitions)
        )
        a = levels - half + np.where(is_swapped, second, first)
        b = levels + half + np.where(is_swapped, first, second) + self.shift
        if self.round_spread:
            a = a + self.round_spread * chance.normal(5, repetitions)
            b = b + self.round_spread * chance.normal(6, repetitions)
        return (np.exp(a), np.exp(b)) if self.is_log else (a, b)


@dataclass(frozen=True, slots=True)
class ProcessModel:
    """Process medians of code, on the scale of logarithms; each side is a run of its own."""

    level: float
    processes: DeviationPool
    shift: float = 0.0

    def plant(self, effect: float) -> ProcessModel:
        return replace(self, shift=math.log1p(effect))

    def draw(self, chance: Chance, units: int, repetitions: int) -> tuple[Array, Array]:
        a = self.level + self.processes.draw(chance, 0, units)
        b = self.level + self.processes.draw(chance, 1, units) + self.shift
        return np.exp(a), np.exp(b)


def _choose(weights: Array, places: Array) -> NDArray[np.intp]:
    """The index that each uniform random number falls on, by these weights."""
    return np.minimum(np.searchsorted(np.cumsum(weights), places, side="right"), weights.size - 1)


def model_processes(series: Series) -> ProcessModel | None:
    """The model of code by the medians of its processes; None with fewer than two, or without logarithms."""
    seen = observe(series)
    medians = seen.process_medians
    if seen.process_count < 2 or (medians <= 0).any():
        return None
    logs = np.log(medians)
    return ProcessModel(float(logs.mean()), DeviationPool.of(logs, float(logs.std(ddof=1))))


def model_cases(metric: Metric, a: Series, b: Series | None) -> PairModel | None:
    """The model of two agents on the cases that both have, or of one agent and another like it if `b` is None.

    None with fewer than two cases.
    """
    first = _rows(a, is_score(metric))
    second = first if b is None else _rows(b, is_score(metric))
    cases = sorted(first.keys() & second.keys())
    if len(cases) < 2:
        return None
    left, right = [first[case] for case in cases], [second[case] for case in cases]
    if is_score(metric):
        if all(np.isin(list(row.values()), (0.0, 1.0)).all() for row in (*left, *right)):
            return PassModel(_pass_rates(left, right, is_pair=b is not None))
        means = [(_array(x).mean(), _array(y).mean()) for x, y in zip(left, right, strict=True)]
        if b is not None and float(np.mean([x == y for x, y in means])) > TIED:
            return RowModel.of([_array(row) for row in left], [_array(row) for row in right])
    return _model_shift(metric, left, right, is_pair=b is not None)


Row = dict[int, float]
"""The values of a case by repetition; logarithms for all metrics but scores."""


def _array(row: Mapping[int, float]) -> Array:
    return np.fromiter(row.values(), dtype=np.float64)


def _rows(series: Series, are_scores: bool) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for case, repetition, value in zip(series.processes, series.repetitions, series.values, strict=True):
        if math.isfinite(value) and (are_scores or value > 0):
            rows.setdefault(case, {})[repetition] = value if are_scores else math.log(value)
    return rows


def _pass_rates(a: list[Row], b: list[Row], *, is_pair: bool) -> PassRates:
    """A model of the chances to pass, fitted to how often each case was passed: of two agents together where there are two."""
    passed = np.array([[round(sum(x.values())), round(sum(y.values()))] for x, y in zip(a, b, strict=True)])
    tries = np.array([[len(x), len(y)] for x, y in zip(a, b, strict=True)])
    if not is_pair:
        return fit_one(passed[:, 0], tries[:, 0])
    variances = compute_paired_variances([_array(row) for row in a], [_array(row) for row in b])
    return fit_pair(passed, tries, variances.case if variances else 1.0)


def _model_shift(metric: Metric, a: list[Row], b: list[Row], *, is_pair: bool) -> ShiftModel:
    """Split what values vary by into cases, rounds and repetitions (components of variance)."""
    means = [np.array([_array(row).mean() for row in side]) for side in (a, b)]
    levels, steps = (means[0] + means[1]) / 2, means[1] - means[0]
    has_rounds = depends_on_machine(metric) and not is_score(metric)
    rounds = [
        _round_effects(side, own) if has_rounds else {} for side, own in zip((a, b), means, strict=True)
    ]
    residuals = [_residuals(*side) for side in zip((a, b), means, rounds, strict=True)]
    spreads = [residual.spread for residual in residuals]
    sizes = np.array([[len(x), len(y)] for x, y in zip(a, b, strict=True)])
    by_chance = float(np.mean(spreads[0] ** 2 / sizes[:, 0] + spreads[1] ** 2 / sizes[:, 1]))
    if is_pair:
        variance = max(0.0, float(steps.var(ddof=1)) - by_chance)
    elif (sizes < 2).all():
        # With one repetition it is unknown what is the case's own, so the other agent is assumed to differ on a case as
        # much as two cases of this agent do.
        steps = np.concatenate([levels, -levels]) - np.concatenate([np.roll(levels, 1), -np.roll(levels, 1)])
        variance = 2 * float(levels.var(ddof=1))
    else:
        variance = 0.0
    return ShiftModel(
        levels - levels.mean() + float(means[0].mean()),
        DeviationPool.of(steps, math.sqrt(variance)),
        (residuals[0].pool, residuals[1].pool),
        _round_spread(rounds, spreads, len(a), is_pair=is_pair),
        is_log=not is_score(metric),
    )


def _round_effects(rows: list[Row], means: Array) -> dict[int, float]:
    """What each round adds to the cases' own means; empty with a single round."""
    numbers = sorted({number for row in rows for number in row})
    if len(numbers) < 2:
        return {}
    return {
        number: float(np.mean([row[number] - mean for row, mean in zip(rows, means, strict=True) if number in row]))
        for number in numbers
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Residuals:
    """What repetitions of a case differ by, as a pool to draw from and as a standard deviation."""

    pool: DeviationPool
    spread: float


def _residuals(rows: list[Row], means: Array, rounds: Mapping[int, float]) -> _Residuals:
    """What is left of the values after the means of their cases and the effects of their rounds."""
    values = np.array(
        [
            value - mean - rounds.get(number, 0.0)
            for row, mean in zip(rows, means, strict=True)
            if len(row) > 1
            for number, value in row.items()
        ]
    )
    cases = sum(len(row) > 1 for row in rows)
    freedom = values.size - cases - max(0, len(rounds) - 1)
    if freedom < 1:
        return _Residuals(DeviationPool(np.zeros(1), 0.0), 0.0)
    spread = math.sqrt(float((values**2).sum()) / freedom)
    return _Residuals(DeviationPool.of(values, spread), spread)


def _round_spread(
    rounds: list[dict[int, float]], spreads: list[float], cases: int, *, is_pair: bool
) -> float:
    """The standard deviation of what a round adds to one side.

    A variance from few rounds is mostly too small, because chi squared is skewed; dividing by its median corrects that.
    """
    first, second = rounds
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return 0.0
    steps = np.array([second[number] - first[number] if is_pair else first[number] for number in shared])
    noise = (spreads[0] ** 2 + spreads[1] ** 2) / cases if is_pair else spreads[0] ** 2 / cases
    freedom = len(shared) - 1
    typical = _CHI_SQUARED_MEDIANS[freedom - 1] if freedom <= 6 else freedom - 2 / 3
    variance = max(0.0, float(steps.var(ddof=1)) * freedom / typical - noise)
    return math.sqrt(variance / 2 if is_pair else variance)
