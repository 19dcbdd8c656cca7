from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.outliers import outliers


def test_a_straggler_is_labelled_and_nothing_else() -> None:
    values = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.03, 9.0]
    assert outliers(values).tolist() == [False] * 7 + [True]


def test_a_long_right_tail_of_times_is_no_outlier_on_logarithms() -> None:
    values = np.exp(np.linspace(-2, 2, 41))
    assert not outliers(values).any()
    # With one negative value the raw scale is used.
    assert outliers(np.append(-1e-9, values)).any()


def test_where_most_values_are_equal_only_the_far_ones_are_labelled() -> None:
    values = [100.0] * 50 + [101.0] * 5 + [500.0]
    assert outliers(values).tolist() == [False] * 55 + [True]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 50.0], [7.0] * 9, [0.0] * 9, [-1e300, 0.0, 1e300]])
def test_nothing_is_labelled_where_nothing_can_be_said(values: list[float]) -> None:
    assert not outliers(values).any()


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=40), st.sampled_from([0.125, 2.0, 1024.0]))
def test_the_unit_of_measurement_does_not_matter(values: list[int], unit: float) -> None:
    mixed = np.array([-1.0, 0.0, *values])
    assert outliers(mixed * unit).tolist() == outliers(mixed).tolist()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60))
def test_any_floats_are_labelled_without_a_warning(values: list[float]) -> None:
    assert outliers(values).shape == (len(values),)
