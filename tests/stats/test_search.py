"""The smallest size that is enough, where the chance at each size is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.stats.sample import quantile
from assay.stats.search import Successes, smallest_size


def _finding(effect: float) -> Successes:
    """A normal test of so many observations: found where effect · √n + noise exceeds 1.96."""
    noise = np.random.default_rng(5).standard_normal(400)
    return Successes(lambda size, number: effect * math.sqrt(size) + noise[number] > 1.96)


@pytest.mark.parametrize("effect", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("start", [2, 60, 3000])
def test_the_size_is_that_of_the_formula(effect: float, start: int) -> None:
    known = ((1.96 + quantile(0.8)) / effect) ** 2
    found = smallest_size(_finding(effect), start, 2, 10_000, 0.8)
    assert found == pytest.approx(known, rel=0.15, abs=1)


def test_what_no_size_is_enough_for_has_none() -> None:
    assert smallest_size(_finding(0.001), 10, 2, 1000, 0.8) is None


def test_the_smallest_may_be_enough() -> None:
    assert smallest_size(_finding(10.0), 30, 2, 1000, 0.8) == 2
