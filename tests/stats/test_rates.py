"""The rates that the method promises, shown by seeded simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from assay.stats.effect import compare_paired, compare_unpaired
from assay.stats.modes import two_modes
from assay.stats.order import median_ranks
from assay.stats.sample import Array
from assay.stats.trend import trend

REPETITIONS = 2000


def spiky(chance: np.random.Generator, *shape: int, centre: float = 1.0) -> Array:
    """Times as machines give them: lognormal, and now and then twice as long."""
    spikes = np.where(chance.random(shape) < 0.05, 2.0, 1.0)
    return chance.lognormal(math.log(centre), 0.05, shape) * spikes


@pytest.mark.parametrize("n", [6, 10, 30, 101])
def test_the_interval_of_the_median_covers_it_in_93_percent_at_least(n: int) -> None:
    samples = np.sort(spiky(np.random.default_rng(n), 4 * REPETITIONS, n), axis=1)
    ranks = median_ranks(n)
    assert ranks is not None
    truth = float(np.median(spiky(np.random.default_rng(0), 2_000_000)))
    covered = (samples[:, ranks[0]] <= truth) & (truth <= samples[:, ranks[1]])
    assert covered.mean() >= 0.93


def false_positives(chance: np.random.Generator, compare: Callable[..., Any], n: int) -> float:
    pairs = zip(spiky(chance, REPETITIONS, n), spiky(chance, REPETITIONS, n), strict=True)
    return float(np.mean([compare(a, b).p < 0.05 for a, b in pairs]))


@pytest.mark.parametrize("n", [5, 10, 20])
def test_unpaired_equals_are_told_apart_in_at_most_6_5_percent(n: int) -> None:
    assert false_positives(np.random.default_rng(n), compare_unpaired, n) <= 0.065


def test_paired_equals_are_told_apart_in_at_most_6_5_percent() -> None:
    assert false_positives(np.random.default_rng(1), compare_paired, 10) <= 0.065


def test_the_unpaired_interval_of_the_ratio_covers_it_in_93_percent_at_least() -> None:
    chance = np.random.default_rng(7)
    sides = zip(spiky(chance, REPETITIONS, 10), spiky(chance, REPETITIONS, 10, centre=1.1), strict=True)
    effects = [compare_unpaired(a, b) for a, b in sides]
    assert np.mean([effect is not None and effect.low <= 1.1 <= effect.high for effect in effects]) >= 0.93


def test_ten_percent_among_spikes_are_found_by_twenty_a_side() -> None:
    chance = np.random.default_rng(5)
    sides = zip(spiky(chance, 500, 20), spiky(chance, 500, 20, centre=1.1), strict=True)
    found = [effect is not None and effect.p < 0.05 for effect in (compare_unpaired(a, b) for a, b in sides)]
    assert np.mean(found) >= 0.95


SINGLE_PEAKED: dict[str, Callable[..., Array]] = {
    "lognormal": lambda chance, n: chance.lognormal(0, 0.05, n),
    "wide lognormal": lambda chance, n: chance.lognormal(0, 1, n),
    "with spikes": spiky,
    "heavy tails": lambda chance, n: np.exp(0.02 * chance.standard_t(3, n)),
    "a floor with exponential delays": lambda chance, n: 1 + 0.1 * chance.exponential(1, n),
}


@pytest.mark.parametrize("family", SINGLE_PEAKED)
@pytest.mark.parametrize("n", [30, 100])
def test_a_single_peak_is_hardly_ever_taken_for_two(family: str, n: int) -> None:
    chance = np.random.default_rng(n)
    flagged = [two_modes(SINGLE_PEAKED[family](chance, n)) is not None for _ in range(1000)]
    assert np.mean(flagged) <= 0.02


def test_two_peaks_seven_deviations_apart_are_found() -> None:
    chance = np.random.default_rng(3)
    samples = chance.lognormal(0, 0.02, (300, 100)) * np.where(chance.random((300, 100)) < 0.4, 1.15, 1)
    assert np.mean([two_modes(sample) is not None for sample in samples]) >= 0.9


@pytest.mark.parametrize("n", [10, 30, 100])
def test_chance_makes_a_trend_as_often_as_p_says(n: int) -> None:
    samples = spiky(np.random.default_rng(n), REPETITIONS, n)
    found = [trend(sample) for sample in samples]
    assert np.mean([drift is not None and drift.p < 0.05 for drift in found]) <= 0.065
    assert np.mean([drift is not None and drift.p < 0.01 for drift in found]) <= 0.02


def test_processes_of_different_speed_make_no_trend_within_them() -> None:
    chance = np.random.default_rng(6)
    processes = np.repeat(np.arange(10), 8)
    samples = spiky(chance, 1000, 80) * np.repeat(chance.lognormal(0, 0.1, (1000, 10)), 8, axis=1)
    found = [trend(sample, processes) for sample in samples]
    assert 0.03 <= np.mean([drift is not None and drift.p < 0.05 for drift in found]) <= 0.065


def test_likeness_of_neighbours_does_not_pass_for_a_trend_often() -> None:
    chance = np.random.default_rng(9)
    noise = chance.normal(size=(500, 200))
    for step in range(1, 200):
        noise[:, step] += 0.6 * noise[:, step - 1]
    found = [trend(sample) for sample in noise]
    assert np.mean([drift is not None and drift.p < 0.01 for drift in found]) <= 0.04
