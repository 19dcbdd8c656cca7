"""Histories whose change points are known, put to the detector behind `assay detect`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from assay.stats.changepoint import detect

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]

SEED = 90_417
LENGTHS = (60, 200, 500)
STEPS = (0.05, 0.10, 0.20)
DRIFT = 0.10
SIGMA = 0.018
MARGIN = 5
"""A change point so far from the true one still counts as found."""
REPETITIONS, QUICK_REPETITIONS = 100, 6


def _spikes(chance: np.random.Generator, n: int) -> Floats:
    hit = chance.random(n) < 0.03
    return SIGMA * chance.standard_normal(n) + hit * (0.05 + chance.exponential(0.15, n))


def _t3(chance: np.random.Generator, n: int) -> Floats:
    return 0.7 * SIGMA * chance.standard_t(3, n)


def _bursts(chance: np.random.Generator, n: int) -> Floats:
    noise = SIGMA * chance.standard_normal(n)
    for start in chance.integers(0, n, chance.poisson(n / 60)):
        noise[start : start + chance.integers(2, 6)] += chance.uniform(0.02, 0.08)
    return noise


def _bimodal(chance: np.random.Generator, n: int) -> Floats:
    share, apart = chance.uniform(0.2, 0.5), chance.uniform(0.02, 0.04)
    return 0.6 * SIGMA * chance.standard_normal(n) + apart * (chance.random(n) < share)


def _ar1(chance: np.random.Generator, n: int) -> Floats:
    return _autoregressive(chance, n, chance.uniform(0.3, 0.6), SIGMA)


def _autoregressive(chance: np.random.Generator, n: int, memory: float, sigma: float) -> Floats:
    noise = sigma * chance.standard_normal(n)
    for place in range(1, n):
        noise[place] = memory * noise[place - 1] + np.sqrt(1 - memory**2) * noise[place]
    return noise


def _quiet(chance: np.random.Generator, n: int) -> Floats:
    return 0.002 * chance.standard_normal(n)


def _wandering(chance: np.random.Generator, n: int) -> Floats:
    return 0.015 * chance.standard_normal(n) + _autoregressive(chance, n, 0.97, 0.007)


def _machines(chance: np.random.Generator, n: int) -> Floats:
    """Runs on five machines of unequal speed, the next one often on the same."""
    offsets, machine = 0.012 * chance.standard_normal(5), 0
    noise = 0.01 * chance.standard_normal(n)
    for place in range(n):
        machine = machine if chance.random() < 0.4 else int(chance.integers(5))
        noise[place] += offsets[machine]
    return noise


def _quantised(chance: np.random.Generator, n: int) -> Floats:
    return np.log(np.round(50 * np.exp(0.02 * chance.standard_normal(n))) / 50)


def _outliers(chance: np.random.Generator, n: int) -> Floats:
    return 0.01 * chance.standard_normal(n) * np.where(chance.random(n) < 0.1, 6, 1)


REAL_LIKE: dict[str, Noise] = {
    "autocorrelated": lambda chance, n: _autoregressive(chance, n, 0.5, SIGMA),
    "slowly wandering": _wandering,
    "several machines": _machines,
    "quantised": _quantised,
    "bimodal": _bimodal,
    "outliers": _outliers,
}
"""Logarithms of noise as quiet stretches of real histories have it."""

FAMILIES: dict[str, Noise] = {
    "lognormal with spikes": _spikes,
    "t3": _t3,
    "bursts": _bursts,
    "bimodal": _bimodal,
    "AR(1)": _ar1,
    "quiet": _quiet,
}
"""Logarithms of noise as benchmark histories have it, around 0."""


@dataclass(frozen=True)
class Planted:
    """A history and the first point of its new level, where it has one."""

    values: Floats
    change: int | None = None

    def is_found(self, found: Sequence[int]) -> bool:
        return self.change is not None and any(abs(index - self.change) <= MARGIN for index in found)

    def is_right(self, found: Sequence[int]) -> bool:
        """Left alone where nothing changed, else reported exactly once and in its place."""
        return not found if self.change is None else len(found) == 1 and self.is_found(found)


def without_change(chance: np.random.Generator, noise: Noise, n: int) -> Planted:
    return Planted(100 * np.exp(noise(chance, n)))


def with_step(chance: np.random.Generator, noise: Noise, n: int, size: float) -> Planted:
    margin = max(10, n // 10)
    change = int(chance.integers(margin, n - margin))
    shift = np.log1p(size) * chance.choice([-1, 1])
    return Planted(100 * np.exp(noise(chance, n) + shift * (np.arange(n) >= change)), change)


def with_drift(chance: np.random.Generator, noise: Noise, n: int) -> Planted:
    return Planted(100 * np.exp(noise(chance, n) + np.log1p(DRIFT) * np.linspace(0, 1, n)))


def measure(quick: bool = False) -> dict[str, float]:
    """Shares of the histories, and seconds."""
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    flagged, real_like = (_flagged(repetitions, families) for families in (FAMILIES, REAL_LIKE))
    figures = {
        "no_change_flagged": fmean(flagged.values()),
        "no_change_flagged_worst_family": max(flagged.values()),
        "real_like_flagged": fmean(real_like.values()),
        "real_like_flagged_worst": max(real_like.values()),
    }
    for size in STEPS:
        found, right = _steps(repetitions, size)
        figures[f"steps_found_{round(100 * size)}"] = found
        figures[f"accuracy_{round(100 * size)}"] = (right + 1 - figures["no_change_flagged"]) / 2
    return figures | _drifts(repetitions) | _seconds(quick)


def _flagged(repetitions: int, families: Mapping[str, Noise]) -> dict[str, float]:
    """By family, the share of histories without a change in which a step or a drift is found."""
    return {
        family: fmean(
            bool(found.change_points) or found.drift is not None
            for n in LENGTHS
            for planted in _drawn(f"no change {family} {n}", repetitions, without_change, make_noise, n)
            for found in [detect(planted.values.tolist())]
        )
        for family, make_noise in families.items()
    }


def _steps(repetitions: int, size: float) -> tuple[float, float]:
    """Share found at all, and share found exactly once."""
    answers = [
        (planted.is_found(indexes), planted.is_right(indexes))
        for family, n in product(FAMILIES, LENGTHS)
        for planted in _drawn(f"step {size} {family} {n}", repetitions, with_step, FAMILIES[family], n, size)
        for indexes in [_indexes(planted)]
    ]
    return fmean(found for found, _ in answers), fmean(right for _, right in answers)


def _drifts(repetitions: int) -> dict[str, float]:
    """Of slow drifts in histories long enough to tell one from steps."""
    answers = [
        detect(planted.values.tolist())
        for family, n in product(FAMILIES, LENGTHS[1:])
        for planted in _drawn(f"drift {family} {n}", repetitions // 2, with_drift, FAMILIES[family], n)
    ]
    return {
        "drifts_labelled": fmean(answer.drift is not None for answer in answers),
        "drifts_taken_for_steps": fmean(bool(answer.change_points) for answer in answers),
    }


def _drawn(
    name: str, repetitions: int, kind: Callable[..., Planted], make_noise: Noise, *how: float
) -> list[Planted]:
    """Each cell has a chance of its own, so that its figures do not depend on the others."""
    chance = np.random.default_rng([SEED, *name.encode()])
    return [kind(chance, make_noise, *how) for _ in range(repetitions)]


def _indexes(planted: Planted) -> list[int]:
    return [change.index for change in detect(planted.values.tolist()).change_points]


def _seconds(quick: bool) -> dict[str, float]:
    chance = np.random.default_rng(SEED)
    long = [with_step(chance, _spikes, 10_000, 0.05) for _ in range(1 if quick else 5)]
    names = list(FAMILIES)
    many = [
        with_step(chance, FAMILIES[names[i % len(names)]], 200, 0.05) for i in range(100 if quick else 1000)
    ]
    figures = {
        "seconds_10000_points": median(_timed([one]) for one in long),
        "seconds_1000_histories_of_200": _timed(many) * 1000 / len(many),
    }
    for n in (100_000,) if quick else (100_000, 1_000_000):
        figures[f"seconds_{n}_points"] = _timed([_with_many_steps(chance, n)])
    return figures


def _with_many_steps(chance: np.random.Generator, n: int) -> Planted:
    """One in 500 points."""
    steps = 0.08 * chance.choice([-1, 1], n) * (chance.random(n) < 1 / 500)
    return Planted(100 * np.exp(_spikes(chance, n) + np.cumsum(steps)))


def _timed(histories: Sequence[Planted]) -> float:
    """In processor time, which other programs on the machine do not lengthen; all is done in one thread."""
    begun = time.process_time()
    for history in histories:
        detect(history.values.tolist())
    return time.process_time() - begun
