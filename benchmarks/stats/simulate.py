"""Comparisons whose right answer is known, put to the code that `assay compare` runs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.json_lines import LineQuestion, LineSample, answer
from assay.model import metric_named
from assay.stats.interquartile import draw_interquartile_means, interquartile_mean
from assay.stats.sequence import Decision, PairSequence, ScoreSequence
from assay.stats.summary import percentile
from assay.stats.tails import tail_intervals
from assay.stats.verdicts import effective_n, wilson

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]

SEED = 20_250_704
SECONDS, SCORE = metric_named("seconds"), metric_named("score")
CHANGE = 1.1


def chance_for(name: str) -> np.random.Generator:
    """Of a name's own, so that a cell gives the same figures whatever is simulated before it."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


def _spiky(sigma: float, share: float, most: float) -> Noise:
    def times(chance: np.random.Generator, shape: tuple[int, int]) -> Floats:
        spikes = np.where(chance.random(shape) < share, chance.uniform(1.5, most, shape), 1.0)
        return chance.lognormal(0, sigma, shape) * spikes

    return times


NOISES: dict[str, Noise] = {
    "lognormal": lambda chance, shape: chance.lognormal(0, 0.1, shape),
    "spiky": _spiky(0.1, 0.04, 2.5),
    "t3": lambda chance, shape: np.exp(0.05 * chance.standard_t(3, shape)),
    "wide": lambda chance, shape: chance.lognormal(0, 1, shape),
    "floor": lambda chance, shape: 1 + 0.1 * chance.exponential(1, shape),
    "two modes": lambda chance, shape: (
        chance.lognormal(0, 0.03, shape) * np.where(chance.random(shape) < 0.4, 1.3, 1)
    ),
}
"""Times as machines give them, with a centre near 1."""


@dataclass(frozen=True)
class Cell:
    """A kind of comparison: `questions` draws so many, with or without a change of the given true size."""

    name: str
    none: float
    truth: float
    questions: Callable[[np.random.Generator, int, bool], Iterator[LineQuestion]]


@cache
def cells() -> dict[str, Cell]:
    every = [*_unpaired_times(), *_paired_times(), *_paired_scores(), *_unpaired_scores()]
    return {cell.name: cell for cell in every}


def power_cells() -> dict[str, Cell]:
    """Those whose power is promised."""
    return {
        "unpaired": _times_cell("unpaired spiky n = 20", NOISES["spiky"], 20, is_paired=False),
        "paired": _times_cell("paired spiky n = 50", _spiky(0.11, 0.1, 4.0), 50, is_paired=True),
        "accuracy": _scores_cell("accuracy n = 200 × 3", 200, 3, 0.6, 0.7, is_paired=True),
    }


def _unpaired_times() -> list[Cell]:
    return [
        _times_cell(f"unpaired {name} n = {n}", noise, n, is_paired=False)
        for (name, noise), n in product(NOISES.items(), (5, 8, 10, 20, 50))
    ]


def _paired_times() -> list[Cell]:
    return [
        _times_cell(f"paired {name} n = {n}", noise, n, is_paired=True)
        for (name, noise), n in product(NOISES.items(), (6, 10, 20, 50))
    ]


def _paired_scores() -> list[Cell]:
    return [
        _scores_cell(f"paired accuracy {n} × {k} at {skill}", n, k, skill, skill - 0.1, is_paired=True)
        for n, k, skill in product((20, 50, 200), (1, 3, 5), (0.6, 0.9))
    ]


def _unpaired_scores() -> list[Cell]:
    return [
        _scores_cell(f"unpaired accuracy {n} × {k} at {skill}", n, k, skill, skill - 0.1, is_paired=False)
        for n, k, skill in product((20, 50, 200), (1, 3), (0.6, 0.9))
    ]


def _times_cell(name: str, noise: Noise, n: int, *, is_paired: bool) -> Cell:
    def questions(chance: np.random.Generator, count: int, is_changed: bool) -> Iterator[LineQuestion]:
        # What pairs share, such as the state of the machine or the size of a case, is far larger than the change.
        shared = chance.lognormal(0, 0.5, (count, n)) if is_paired else np.ones((count, n))
        a, b = shared * noise(chance, (count, n)), shared * noise(chance, (count, n))
        b *= CHANGE if is_changed else 1.0
        for x, y in zip(a, b, strict=True):
            yield LineQuestion(SECONDS, LineSample(x, n), LineSample(y, n), is_paired)

    return Cell(name, 1.0, CHANGE, questions)


DIFFICULTY = 1.5
"""Standard deviation of the cases' difficulty, on the logistic scale."""
_PLACES = np.linspace(-8, 8, 4001)
_WEIGHTS = np.exp(-(_PLACES**2) / 2) / np.exp(-(_PLACES**2) / 2).sum()


def _skill(centre: float) -> float:
    """Mean chance of a right answer where the case of middling difficulty has `centre`."""
    return float(_WEIGHTS @ _right(centre, DIFFICULTY * _PLACES))


def _right(centre: float, difficulty: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-math.log(centre / (1 - centre)) - difficulty)))


def _centre(skill: float) -> float:
    low, high = 0.001, 0.999
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _skill(middle) < skill else (low, middle)
    return low


def _scores_cell(name: str, n: int, repetitions: int, skill: float, other: float, *, is_paired: bool) -> Cell:
    """Cases of different difficulty, alike for both sides where they are paired."""
    centre, changed = _centre(skill), _centre(other)

    def scores(chance: np.random.Generator, centre: float, difficulty: Floats) -> Floats:
        return chance.binomial(repetitions, _right(centre, difficulty)) / repetitions

    def questions(chance: np.random.Generator, count: int, is_changed: bool) -> Iterator[LineQuestion]:
        easy = chance.normal(0, DIFFICULTY, (count, n))
        a = scores(chance, centre, easy)
        easy = easy if is_paired else chance.normal(0, DIFFICULTY, (count, n))
        b = scores(chance, changed if is_changed else centre, easy)
        for x, y in zip(a, b, strict=True):
            yield LineQuestion(
                SCORE, LineSample(x, n * repetitions), LineSample(y, n * repetitions), is_paired
            )

    return Cell(name, 0.0, other - skill, questions)


@dataclass(frozen=True)
class Counts:
    """Of so many comparisons: significant ones, claims, and intervals that hold the truth."""

    n: int
    significant: int
    claimed: int
    covered: int


def counted_cell(name: str, repetitions: int, is_changed: bool) -> Counts:
    """By name, which another process can be sent."""
    return counted(cells()[name], repetitions, is_changed=is_changed)


def counted(cell: Cell, repetitions: int, *, is_changed: bool) -> Counts:
    chance = chance_for(f"{cell.name} {is_changed}")
    truth = cell.truth if is_changed else cell.none
    answers = [answer(question) for question in cell.questions(chance, repetitions, is_changed)]
    covered = [_holds(one["ci"], truth) for one in answers]
    return Counts(
        repetitions,
        sum(one["p"] < 0.05 for one in answers),
        sum(one["verdict"] in ("better", "worse") for one in answers),
        sum(covered),
    )


def _holds(ends: list[float | None], truth: float) -> bool:
    low, high = ends
    return low is None or high is None or low - 1e-12 <= truth <= high + 1e-12


def one_side_coverage(repetitions: int) -> dict[str, float]:
    """Of the interval of an accuracy by itself, over cases with repetitions."""
    found = {}
    for n, k, skill in product((20, 50, 200), (1, 3, 5), (0.6, 0.9)):
        name = f"{n} × {k} at {skill}"
        chance, centre = chance_for(f"one side {name}"), _centre(skill)
        means = chance.binomial(k, _right(centre, chance.normal(0, DIFFICULTY, (repetitions, n)))) / k
        ends = [wilson(float(row.mean()), effective_n(row, n * k)) for row in means]
        found[name] = float(np.mean([low <= skill <= high for low, high in ends]))
    return found


TAILS = ((10, 20, 95), (10, 100, 99), (30, 10, 95), (100, 3, 95), (400, 1, 95))


def tail_coverage(repetitions: int) -> dict[str, float]:
    """Of the intervals of P95 and P99, over units that differ."""
    found = {}
    for units, each, q in TAILS:
        name = f"P{q} of {units} × {each}"
        chance = chance_for(name)
        truth = percentile(_clustered(chance, 20_000, 50), q)
        rows = np.repeat(np.arange(units), each)
        samples = (_clustered(chance, units, each).ravel() for _ in range(repetitions))
        intervals = [tail_intervals(sample, rows, (q,))[q] for sample in samples]
        found[name] = float(np.mean([low <= truth <= high for low, high in intervals]))
    return found


def _clustered(chance: np.random.Generator, units: int, each: int) -> Floats:
    noise = _spiky(0.1, 0.1, 3.0)(chance, (units, each))
    return np.asarray(noise * chance.lognormal(0, 0.03, (units, 1)))


BENCHMARKS = ((3, 30), (6, 30), (6, 100), (12, 20))


def across_coverage(repetitions: int) -> dict[str, float]:
    """Of the interval of the interquartile mean over benchmarks that differ in how hard they are."""
    found = {}
    for benchmarks, cases in BENCHMARKS:
        name = f"{benchmarks} benchmarks of {cases} cases"
        chance, names = chance_for(name), [[f"c{n}" for n in range(cases)]] * benchmarks
        skills = np.linspace(0.3, 0.9, benchmarks)
        truth, held = float(interquartile_mean(skills)), 0
        for _ in range(repetitions):
            marks = [(chance.random((1, cases)) < skill).astype(float) for skill in skills]
            values = np.array([[table.mean() for table in marks]])
            low, high = np.quantile(draw_interquartile_means(values, marks, names), (0.025, 0.975))
            held += bool(low <= truth <= high)
        found[name] = held / repetitions
    return found


SEQUENCE_NOISES: Mapping[str, Noise] = {
    "lognormal": lambda chance, shape: chance.lognormal(0, 0.08, shape),
    "wide lognormal": lambda chance, shape: chance.lognormal(0, 0.3, shape),
    "spiky": _spiky(0.05, 0.05, 2.5),
    "t3": lambda chance, shape: np.exp(0.05 * chance.standard_t(3, shape)),
    "floor": lambda chance, shape: 1 + 0.1 * chance.exponential(1, shape),
}


@dataclass(frozen=True)
class Stopped:
    """Of so many histories of pairs that were looked at after every pair."""

    n: int
    differing: int
    """That ended with a difference."""
    pairs: float
    """Mean number of pairs at the end."""


def stopped(name: str, repetitions: int, ratio: float) -> Stopped:
    chance, noise = chance_for(f"sequence {name} {ratio}"), SEQUENCE_NOISES[name]
    a, b = noise(chance, (repetitions, 60)), ratio * noise(chance, (repetitions, 60))
    ends = [_end(x.tolist(), y.tolist()) for x, y in zip(a, b, strict=True)]
    differing = sum(decision in (Decision.HIGHER, Decision.LOWER) for decision, _ in ends)
    return Stopped(repetitions, differing, float(np.mean([pairs for _, pairs in ends])))


def _end(
    a: list[float], b: list[float], begin: Callable[[], PairSequence | ScoreSequence] = PairSequence
) -> tuple[Decision, int]:
    sequence = begin()
    for x, y in zip(a, b, strict=True):
        look = sequence.add(x, y)
        if look.is_over:
            break
    return look.decision, look.pairs


SCORE_SKILLS: Mapping[str, float] = {"half right": 0.5, "nine in ten": 0.9, "nearly all": 0.98}
MOST_CASES = 400


def stopped_scores(name: str, repetitions: int, more: float) -> Stopped:
    """Cases that both do, right or wrong, some harder than others; the second has `more` skill."""
    chance, skill = chance_for(f"scores {name} {more}"), SCORE_SKILLS[name]
    easy = chance.normal(0, DIFFICULTY, (repetitions, MOST_CASES))
    a, b = (
        (chance.random(easy.shape) < _right(_centre(one), easy)).astype(float)
        for one in (skill, skill + more)
    )
    begin = partial(ScoreSequence, cap=MOST_CASES)
    ends = [_end(x.tolist(), y.tolist(), begin) for x, y in zip(a, b, strict=True)]
    differing = sum(decision in (Decision.HIGHER, Decision.LOWER) for decision, _ in ends)
    return Stopped(repetitions, differing, float(np.mean([pairs for _, pairs in ends])))


def peeked(repetitions: int) -> float:
    """False alarms of looking at an ordinary interval after every pair from the tenth on: why it takes a sequence."""
    steps = chance_for("peeked").normal(0, 0.1, (repetitions, 60))
    n = np.arange(1, 61)
    means = np.cumsum(steps, axis=1) / n
    squares = np.cumsum(steps**2, axis=1) - n * means**2
    z = np.abs(means[:, 9:]) / np.sqrt(squares[:, 9:] / (n[9:] - 1) / n[9:])
    return float((z > 2.1).any(axis=1).mean())
