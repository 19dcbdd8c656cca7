from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import variation

from assay.stats.sample import Array
from assay.stats.variation import Variation, estimate_variation


def test_the_variation_of_one_group_is_that_of_scipy() -> None:
    values = np.array([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    found = estimate_variation(values, np.arange(8))
    assert found is not None
    assert found.value == pytest.approx(variation(values, ddof=1))
    assert (found.low, found.high) == (None, None)


def test_the_variation_within_groups_is_pooled_over_them() -> None:
    groups = np.arange(400) % 4
    values = np.random.default_rng(3).normal(1.0, 0.06, 400) * 10.0**groups
    squares, free = 0.0, 0
    for group in range(4):
        own = values[groups == group]
        squares += variation(own, ddof=1) ** 2 * (own.size - 1)
        free += own.size - 1
    found = estimate_variation(values, np.arange(400), groups)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx((squares / free) ** 0.5)
    assert found.low < 0.06 < found.high < 0.07


def test_means_that_were_estimated_widen_the_interval() -> None:
    def find_width(values: Array, groups: int) -> float:
        found = estimate_variation(values, np.arange(24), np.arange(24) % groups)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        return math.log(found.high / found.low)

    samples = np.random.default_rng(5).normal(1.0, 0.1, (12, 24))
    one, six = (sum(find_width(values, groups) for values in samples) for groups in (1, 6))
    assert 1.03 < six / one < 1.4


def test_without_two_values_in_a_group_there_is_no_variation() -> None:
    assert estimate_variation(np.array([3.0]), np.arange(1)) is None
    assert estimate_variation(np.array([3.0, 4.0]), np.arange(2), np.arange(2)) is None
    assert estimate_variation(np.array([0.0, 0.0]), np.arange(2)) is None
    assert estimate_variation(np.full(30, 2.0), np.arange(30)) == Variation(0.0, 0.0, 0.0)
