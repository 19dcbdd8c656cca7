"""Ratios, differences and levels of pairs, also of very few."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.stats.effect import compare_paired
from assay.stats.paired_figures import difference_of_pairs, level_of, ratio_of_pairs
from assay.stats.sample import Scale


def test_few_pairs_are_students_t_of_log_ratios():
    """Student (1908), on logarithms."""
    found = ratio_of_pairs([1, 1, 1, 1], [2, 2.2, 1.8, 2.1])
    assert found is not None
    logs = np.log([2, 2.2, 1.8, 2.1])
    half = 3.182446 * logs.std(ddof=1) / 2  # the t quantile of 3 degrees of freedom at 97.5 %
    assert (found.low, found.high) == pytest.approx(
        (math.exp(logs.mean() - half), math.exp(logs.mean() + half)), rel=1e-6
    )
    assert found.scale is Scale.RATIO
    assert found.method.startswith("t ")


def test_from_six_pairs_on_it_is_the_signed_rank():
    a, b = [1.0, 2, 3, 4, 5, 6], [2.0, 4.4, 5, 9, 10.5, 11]
    assert ratio_of_pairs(a, b) == compare_paired(a, b)


def test_differences_stay_differences_though_all_values_are_positive():
    for size in (4, 8):
        found = difference_of_pairs(np.arange(1.0, size + 1), np.arange(1.0, size + 1) + 0.5)
        assert found is not None
        assert found.scale is Scale.DIFFERENCE
        assert found.value == pytest.approx(0.5)


def test_one_pair_has_a_value_and_no_bounds():
    found = ratio_of_pairs([1.0], [2.0])
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert (found.low, found.high) == (0.0, math.inf)


def test_no_pair_is_nothing_and_pairs_that_are_no_ratio_are_ignored():
    assert ratio_of_pairs([], []) is None
    assert ratio_of_pairs([0.0, math.nan], [1.0, 1.0]) is None
    found = ratio_of_pairs([0.0, 1.0, 1.0], [5.0, 3.0, 3.0])
    assert found is not None
    assert found.value == pytest.approx(3.0)


def test_the_level_of_values_is_between_them():
    found = level_of([1.0, 2.0, 4.0])
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert found.method == "t of logarithms"


@pytest.mark.parametrize("pairs", [3, 5, 6, 10])
def test_intervals_hold_the_true_ratio_as_often_as_they_say(pairs):
    """2,000 samples with lognormal noise; Walsh intervals of so few pairs hold more than they promise."""
    chance = np.random.default_rng(pairs)
    held = 0
    for _ in range(2000):
        base = chance.lognormal(0, 1, pairs)
        found = ratio_of_pairs(base, 1.7 * base * chance.lognormal(0, 0.1, pairs))
        assert found is not None
        held += found.low <= 1.7 <= found.high
    assert 0.935 <= held / 2000 <= 0.98
