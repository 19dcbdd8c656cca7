from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.interquartile import DRAWS, draw_interquartile_means, interquartile_mean

shares = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(shares)
def test_it_lies_among_its_values_and_moves_with_them(values: list[float]) -> None:
    array = np.array(values)
    middle = float(interquartile_mean(array))
    assert array.min() - 1e-12 <= middle <= array.max() + 1e-12
    assert float(interquartile_mean(array + 3)) == pytest.approx(middle + 3)
    assert float(interquartile_mean(array[::-1])) == pytest.approx(middle)


@given(st.integers(1, 8).flatmap(lambda k: st.lists(st.floats(0, 1), min_size=4 * k, max_size=4 * k)))
def test_of_a_number_that_quarters_divide_it_is_the_mean_that_scipy_trims(values: list[float]) -> None:
    from scipy.stats import trim_mean  # slow to import

    assert float(interquartile_mean(np.array(values))) == pytest.approx(trim_mean(values, 0.25))


def test_one_benchmark_that_is_far_off_does_not_move_it() -> None:
    plain = np.array([0.5, 0.6, 0.7, 0.8])
    assert interquartile_mean(plain) == pytest.approx(interquartile_mean(np.array([0.0, 0.6, 0.7, 0.8])))


def test_draws_hold_the_true_value_as_often_as_they_promise() -> None:
    """Six benchmarks of 30 cases, passed with chances of 30 to 80 %."""
    chance = np.random.default_rng(3)
    truth = np.linspace(0.3, 0.8, 6)
    names = [[f"c{n}" for n in range(30)]] * 6
    held = 0
    for _ in range(200):
        marks = [(chance.random((1, 30)) < p).astype(float) for p in truth]
        values = np.array([[table.mean() for table in marks]])
        low, high = np.quantile(draw_interquartile_means(values, marks, names), (0.025, 0.975))
        held += low <= float(interquartile_mean(truth)) <= high
    assert held / 200 >= 0.91


def test_rows_share_their_draws_so_that_equal_rows_are_never_apart() -> None:
    marks = np.random.default_rng(4).random((1, 20)).repeat(2, axis=0)
    values = marks.mean(axis=1, keepdims=True).repeat(3, axis=1)
    drawn = draw_interquartile_means(values, [marks] * 3, [[f"c{n}" for n in range(20)]] * 3)
    assert drawn.shape == (DRAWS, 2)
    assert (drawn[:, 0] == drawn[:, 1]).all()


def test_cases_that_a_row_lacks_and_lone_cases_do_no_harm() -> None:
    marks = np.array([[0.5, np.nan, 0.7], [0.2, 0.3, 0.4]])
    drawn = draw_interquartile_means(np.array([[0.6], [0.3]]), [marks], [["a", "b", "c"]])
    lone = draw_interquartile_means(np.array([[0.6]]), [np.array([[0.6]])], [["a"]])
    assert np.isfinite(drawn).all()
    assert (lone == 0.6).all()
