"""What the axes of a sweep explain, on samples whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.factors import Factorial, f_tail, factorial
from assay.stats.sample import Scale

CELLS = [(a, b) for a in range(3) for b in range(2)]


def _swept(seed: int, a: float = 1.0, b: float = 1.0, both: float = 1.0, n: int = 20) -> Factorial:
    """Times of 10 ms; each level of the first factor multiplies by `a`, of the second by `b`, of both at once by `both`."""
    draw = np.random.default_rng(seed)
    samples = [
        0.01 * a**i * b**j * (both if i == 2 and j == 1 else 1.0) * draw.lognormal(0, 0.05, n)
        for i, j in CELLS
    ]
    found = factorial(CELLS, samples)
    assert found is not None
    return found


def test_the_span_between_two_levels_is_the_planted_ratio():
    found = _swept(1, a=1.2)
    span = found.span(0, 0, 2)
    assert span.scale is Scale.RATIO
    assert span.value == pytest.approx(1.44, rel=0.03)
    assert span.low is not None
    assert span.high is not None
    assert span.low < 1.44 < span.high


def test_the_other_direction_is_the_reciprocal():
    found = _swept(2, a=1.2)
    assert found.span(0, 2, 0).value == pytest.approx(1 / found.span(0, 0, 2).value)


def test_shares_tell_the_strong_axis_from_the_idle_one():
    found = _swept(3, a=1.5)
    strong, idle = found.factors
    assert strong.share is not None
    assert idle.share is not None
    assert strong.share > 0.9
    assert idle.share < 0.02


def test_factors_that_act_on_their_own_are_not_said_to_interact():
    flagged = sum(bool(_swept(seed, a=1.3, b=1.2).factors[0].interacts) for seed in range(100))
    assert flagged <= 8


def test_a_value_that_is_best_only_beside_another_is_flagged():
    found = _swept(4, a=1.1, b=1.1, both=1.5)
    assert found.factors[0].interacts == (1,)
    assert found.factors[1].interacts == (0,)


def test_intervals_cover_the_truth_as_often_as_they_promise():
    hits = 0
    for seed in range(400):
        span = _swept(seed, a=1.1, n=6).span(0, 0, 1)
        assert span.low is not None
        assert span.high is not None
        hits += span.low <= 1.1 <= span.high
    assert 0.92 <= hits / 400 <= 0.98


def test_one_observation_a_cell_gives_an_effect_without_an_interval():
    found = factorial([(0,), (1,)], [np.array([1.0]), np.array([2.0])])
    assert found is not None
    span = found.span(0, 0, 1)
    assert span.value == pytest.approx(2.0)
    assert span.low is None


def test_values_around_zero_are_compared_by_difference():
    found = factorial([(0,), (1,)], [np.array([0.0, 0.1, -0.1]), np.array([1.0, 1.1, 0.9])])
    assert found is not None
    span = found.span(0, 0, 1)
    assert span.scale is Scale.DIFFERENCE
    assert span.value == pytest.approx(1.0)


def test_where_nothing_varies_nothing_is_explained():
    found = factorial([(0,), (1,)], [np.full(4, 2.0), np.full(4, 2.0)])
    assert found is not None
    assert found.factors[0].share is None
    assert found.span(0, 0, 1).value == pytest.approx(1.0)


def test_a_single_cell_tells_nothing():
    assert factorial([(0,)], [np.array([1.0, 2.0])]) is None
    assert factorial([(0,), (1,)], [np.array([1.0]), np.array([])]) is None


def test_one_observation_a_point_explains_nothing():
    found = factorial([(0,), (1,)], [np.array([1.0]), np.array([2.0])])
    assert found is not None
    assert found.factors[0].share is None
    assert found.span(0, 0, 1).value == pytest.approx(2)


@given(st.lists(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=4), min_size=2, max_size=6))
def test_any_finite_samples_give_finite_shares(samples: list[list[float]]):
    found = factorial(
        [(index % 2, index // 2) for index in range(len(samples))], [np.array(s) for s in samples]
    )
    assert found is not None
    for factor in found.factors:
        assert factor.share is None or 0 <= factor.share <= 1


@pytest.mark.parametrize(
    ("value", "above", "below", "p"), [(4.9646, 1, 10, 0.05), (3.3258, 5, 10, 0.05), (2.0, 3, 40, 0.1294)]
)
def test_tails_of_fishers_f_are_those_of_the_tables(value: float, above: int, below: int, p: float):
    assert f_tail(value, above, below) == pytest.approx(p, abs=2e-4)
