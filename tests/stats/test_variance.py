"""Variance split over cases, rounds and repetitions whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.variance import split


def test_planted_parts_are_found_again():
    draw = np.random.default_rng(5)
    found = []
    for _ in range(200):
        table = draw.normal(0, 0.3, (40, 1)) + draw.normal(0, 0.1, (1, 20)) + draw.normal(0, 0.2, (40, 20))
        one = split(table)
        assert one is not None
        found.append(one)
    assert np.mean([one.case or 0 for one in found]) == pytest.approx(0.09, rel=0.05)
    assert np.mean([one.round or 0 for one in found]) == pytest.approx(0.01, rel=0.1)
    assert np.mean([one.rest for one in found]) == pytest.approx(0.04, rel=0.02)


def test_the_spread_of_a_round_is_that_of_its_means():
    draw = np.random.default_rng(6)
    tables = draw.normal(0, 0.1, (4000, 1, 1)) + draw.normal(0, 0.2, (4000, 10, 1))
    wide = split(np.hstack([draw.normal(0, 0.1, (1, 3000)) + draw.normal(0, 0.2, (10, 3000))]))
    assert wide is not None
    assert wide.of_round(10) == pytest.approx(tables.mean(axis=(1, 2)).var(), rel=0.1)


def test_one_case_leaves_its_rounds_and_repetitions_together():
    found = split(np.array([[1.0, 2.0, 3.0]]))
    assert found is not None
    assert (found.case, found.round, found.rest) == (None, None, 1.0)


def test_one_round_tells_nothing():
    assert split(np.array([[1.0], [2.0]])) is None


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=5))
def test_no_part_is_negative(rows: list[list[float]]):
    found = split(np.array(rows))
    assert found is not None
    assert all(part is None or part >= 0 for part in (found.case, found.round, found.rest))
