from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.summary import group_medians, median_interval, percentile, summarise

numbers = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e6, 1e6, allow_subnormal=False)


def test_the_figures_are_those_of_the_standard_library() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    summary = summarise(values)
    assert (summary.n, summary.min, summary.max) == (8, 2.0, 9.0)
    assert summary.mean == statistics.fmean(values)
    assert summary.median == 4.5
    assert summary.std == pytest.approx(statistics.stdev(values))
    assert summary.p90 == pytest.approx(statistics.quantiles(values, n=10, method="inclusive")[-1])
    assert summary.cv == pytest.approx(statistics.stdev(values) / 5)


def test_a_single_value_has_no_spread() -> None:
    summary = summarise([3.0])
    assert (summary.n, summary.mean, summary.median, summary.std, summary.p99) == (1, 3.0, 3.0, 0.0, 3.0)


def test_an_empty_sample_has_a_count_and_nothing_else() -> None:
    summary = summarise([])
    assert summary.n == 0
    assert math.isnan(summary.mean)
    assert math.isnan(percentile([], 50))
    assert median_interval([]) is None


def test_equal_values_have_exactly_no_spread() -> None:
    summary = summarise([0.1] * 1000)
    assert (summary.mean, summary.median, summary.std, summary.p95) == (0.1, 0.1, 0.0, 0.1)


def test_zeros_have_no_coefficient_of_variation() -> None:
    assert summarise([0.0, 0.0]).cv is None
    assert summarise([-1.0, 1.0]).cv is None


def test_values_that_are_not_finite_are_left_out() -> None:
    assert summarise([1.0, math.nan, math.inf, 3.0]).mean == 2.0


@given(st.lists(numbers, min_size=1))
def test_any_floats_are_summarised_in_order_and_without_a_warning(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.min <= summary.median <= summary.p90 <= summary.p95 <= summary.p99 <= summary.max
    assert summary.min <= summary.mean <= summary.max or math.isclose(
        summary.mean, summary.min, abs_tol=1e-300
    )
    assert 0 <= summary.std < math.inf


def test_huge_values_do_not_overflow() -> None:
    summary = summarise([1e300, 3e300, 2e300])
    assert summary.mean == pytest.approx(2e300)
    assert summary.std == pytest.approx(1e300)
    assert summarise([-1.7e308, 1.7e308]).mean == 0.0


@given(st.lists(moderate, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(values: list[float], chance) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)
    first, second = summarise(values), summarise(shuffled)
    assert (first.median, first.p95, first.max) == (second.median, second.p95, second.max)
    assert first.std == pytest.approx(second.std, rel=1e-9, abs=1e-9)


@given(st.lists(numbers, min_size=6))
def test_the_interval_of_unsorted_values_encloses_their_median(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert interval[0] <= percentile(values, 50) <= interval[1]


@given(st.lists(st.tuples(st.integers(0, 4), moderate), min_size=1, max_size=40))
def test_group_medians_come_in_the_order_in_which_groups_appear(rows: list[tuple[int, float]]) -> None:
    names, medians = group_medians(np.array([v for _, v in rows]), np.array([g for g, _ in rows]))
    assert names.tolist() == list(dict.fromkeys(group for group, _ in rows))
    expected = [statistics.median(v for g, v in rows if g == name) for name in names.tolist()]
    assert medians.tolist() == pytest.approx(expected)
