from __future__ import annotations

import numpy as np
import pytest

from assay.stats.tails import tail_effect, tail_intervals


def clustered(chance: np.random.Generator, units: int, each: int, centre: float = 1.0) -> np.ndarray:
    """Times of which those of a unit share a factor."""
    times = chance.lognormal(np.log(centre), 0.1, (units, each)) * chance.lognormal(0, 0.03, (units, 1))
    return np.asarray(times.ravel())


def rows(units: int, each: int) -> np.ndarray:
    return np.repeat(np.arange(units), each)


def test_a_percentile_with_fewer_than_ten_values_beyond_it_has_no_interval() -> None:
    values = np.linspace(1, 2, 199)
    assert tail_intervals(values, np.arange(199), (95, 99)) == {}
    assert set(tail_intervals(np.linspace(1, 2, 200), np.arange(200), (95, 99))) == {95}


def test_fewer_than_six_units_have_no_interval_however_many_values_they_hold() -> None:
    assert tail_intervals(np.linspace(1, 2, 5000), rows(5, 1000), (95,)) == {}


@pytest.mark.parametrize(("units", "each", "q"), [(10, 20, 95), (30, 34, 99), (100, 3, 95), (400, 1, 95)])
def test_the_interval_holds_the_percentile_in_about_95_percent(units: int, each: int, q: float) -> None:
    chance = np.random.default_rng(units)
    truth = float(np.percentile(clustered(chance, 20_000, 20), q))
    intervals = [
        tail_intervals(clustered(chance, units, each), rows(units, each), (q,))[q] for _ in range(150)
    ]
    assert np.mean([low <= truth <= high for low, high in intervals]) >= 0.89


def test_units_that_differ_widen_the_interval() -> None:
    chance = np.random.default_rng(1)
    values = clustered(chance, 20, 50) * np.repeat(chance.lognormal(0, 0.3, 20), 50)
    (whole,), (apart,) = (
        tail_intervals(values, units, (95,)).values() for units in (rows(20, 50), np.arange(1000))
    )
    assert whole[1] / whole[0] > 1.3 * apart[1] / apart[0]


@pytest.mark.parametrize("is_paired", [True, False])
def test_tails_without_a_change_are_told_apart_in_at_most_6_5_percent(is_paired: bool) -> None:
    chance = np.random.default_rng(2)
    found = []
    for _ in range(150):
        a, b = ((clustered(chance, 20, 20), rows(20, 20)) for _ in range(2))
        effect = tail_effect(a, b, 95, is_paired=is_paired)
        assert effect is not None
        found.append(effect.p < 0.05)
    assert np.mean(found) <= 0.065


def test_a_slower_tail_is_found_with_its_ratio() -> None:
    chance = np.random.default_rng(3)
    a, b = ((clustered(chance, 30, 20, centre), rows(30, 20)) for centre in (1.0, 1.5))
    effect = tail_effect(a, b, 95, is_paired=False)
    assert effect is not None
    assert effect.low < 1.5 < effect.high
    assert effect.p < 0.01


def test_too_few_values_have_no_effect() -> None:
    side = (np.linspace(1, 2, 100), rows(10, 10))
    assert tail_effect(side, side, 95, is_paired=True) is None


def test_equal_values_differ_by_nothing() -> None:
    side = (np.full(400, 3.0), rows(20, 20))
    effect = tail_effect(side, side, 95, is_paired=True)
    assert effect is not None
    assert (effect.value, effect.low, effect.high, effect.p) == (1.0, 1.0, 1.0, 1.0)
