from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.trend import Trend, autocorrelation, trend

anything = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30)


def some(found: Trend | None) -> Trend:
    assert found is not None
    return found


def test_a_steady_rise_is_a_trend_with_its_ends() -> None:
    found = some(trend([float(i) for i in range(30)]))
    assert found.rho == pytest.approx(1)
    assert found.p < 0.001
    assert (found.first, found.last) == (4.5, 24.5)


def test_the_correlation_is_that_of_spearmans_ranks() -> None:
    # Order 1 … 10 with ranks whose squared differences sum to 194: 1 - 6·194/990, a common textbook example.
    values = [7.0, 10.0, 6.0, 9.0, 3.0, 8.0, 1.0, 4.0, 5.0, 2.0]
    squared = sum((value - order) ** 2 for order, value in enumerate(values, 1))
    assert some(trend(values)).rho == pytest.approx(1 - 6 * squared / 990)


def test_a_slow_start_in_every_process_is_found_although_processes_differ() -> None:
    processes = np.repeat(np.arange(12), 5)
    level = np.repeat(np.random.default_rng(3).permutation(12), 5) * 10.0
    values = 100 + level + np.tile([3.0, 2.0, 1.0, 0.5, 0.0], 12)
    assert some(trend(values, processes)).p < 0.001
    # Without the groups the differences between processes hide it.
    assert some(trend(values)).p > 0.1


def test_the_order_in_which_processes_alternate_does_not_matter() -> None:
    values = np.random.default_rng(1).random(40)
    one_by_one = trend(values, np.repeat(np.arange(4), 10))
    alternating = trend(values.reshape(4, 10).T.ravel(), np.tile(np.arange(4), 10))
    assert one_by_one == alternating


def test_neighbours_that_are_alike_are_seen_and_those_that_alternate_too() -> None:
    slow_wave = [math.sin(i / 6) for i in range(120)]
    assert autocorrelation(slow_wave) > 0.9
    assert autocorrelation([1.0, 2.0] * 30) < -0.9


def test_one_spike_makes_no_likeness() -> None:
    values = np.random.default_rng(8).lognormal(0, 0.1, 100)
    values[50] = 1e300
    assert abs(autocorrelation(values)) < 0.25


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [5.0] * 20])
def test_nothing_is_said_of_constants_and_handfuls(values: list[float]) -> None:
    assert autocorrelation(values) == 0
    found = trend(values)
    assert found is None or found.p == 1


@given(anything)
def test_any_floats_have_a_trend_without_a_warning(values: list[float]) -> None:
    found = trend(values, [i % 3 for i in range(len(values))])
    assert (found is None) == (len(values) < 3)
    assert found is None or 0 <= found.p <= 1
    assert -1 <= autocorrelation(values) <= 1
