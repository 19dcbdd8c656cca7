from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.histogram import NOTHING, Histogram, histogram, merge_histograms

VALUES = st.lists(st.floats(1e-8, 1e5), min_size=1, max_size=200)


def of(values: list[float]) -> Histogram:
    return histogram(np.array(values))


@given(VALUES, st.floats(0, 1))
def test_quantiles_are_those_of_the_values_within_a_thousandth(values: list[float], share: float) -> None:
    rank = min(max(1, math.ceil(share * len(values) - 1e-9)), len(values))
    assert of(values).quantile(share) == pytest.approx(sorted(values)[rank - 1], rel=1e-3)


@given(VALUES)
def test_the_least_and_the_most_are_exact(values: list[float]) -> None:
    assert of(values).quantile(1.0) == max(values)
    assert of(values).quantile(0.0) == min(values)


@given(st.lists(st.lists(st.floats(-1, 1e5), max_size=50), max_size=6))
def test_histograms_of_parts_add_up_to_that_of_the_whole(parts: list[list[float]]) -> None:
    whole, sum_ = (
        of([value for part in parts for value in part]),
        merge_histograms(of(part) for part in parts),
    )
    assert sum_.buckets.tolist() == whole.buckets.tolist()
    assert sum_.counts.tolist() == whole.counts.tolist()
    assert (sum_.n, sum_.least, sum_.most) == (whole.n, whole.least, whole.most)
    assert sum_.total == pytest.approx(whole.total)
    assert int(sum_.counts.sum()) == sum_.n


def test_what_is_no_number_is_not_counted() -> None:
    assert of([math.nan, math.inf, 2.0]).n == 1
    assert of([]) is NOTHING
    assert math.isnan(NOTHING.quantile(0.5))
    assert math.isnan(NOTHING.mean)


def test_a_million_values_take_the_room_of_their_buckets() -> None:
    values = np.random.default_rng(1).lognormal(-3, 0.5, 1_000_000)
    assert histogram(values).buckets.size < 10_000


def test_the_curve_ends_with_all_values() -> None:
    values, shares = of([1.0, 2.0, 2.0, 4.0]).curve()
    assert shares.tolist() == [0.25, 0.75, 1.0]
    assert values.tolist() == pytest.approx([1.0, 2.0, 4.0], rel=1e-3)
