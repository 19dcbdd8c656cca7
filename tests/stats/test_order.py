"""The median's interval from order statistics, in pure Python."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.computing import at_most

from assay.stats.order import median_interval, median_ranks


def coverage(n: int, rank: int) -> float:
    """Summed from whole numbers, so without any rounding before the end."""
    inside = sum(math.comb(n, k) for k in range(rank + 1, n - rank))
    return inside / (1 << n)


@pytest.mark.parametrize("n", range(1, 6))
def test_fewer_than_six_values_have_no_interval_at_95_percent(n: int) -> None:
    assert median_interval(list(range(n))) is None


def test_an_empty_sample_has_no_interval() -> None:
    assert median_interval([]) is None


@pytest.mark.parametrize(
    ("n", "ranks"), [(6, (0, 5)), (10, (1, 8)), (15, (3, 11)), (20, (5, 14)), (25, (7, 17))]
)
def test_the_ranks_are_those_of_the_tables(n: int, ranks: tuple[int, int]) -> None:
    # Conover, Practical Nonparametric Statistics (1999), section 3.2; also Hahn and Meeker (1991), table A.18.
    assert median_ranks(n) == ranks


@given(st.integers(6, 1200), st.sampled_from([0.8, 0.9, 0.95]))
def test_the_interval_is_the_narrowest_that_covers_at_least_its_level(n: int, level: float) -> None:
    ranks = median_ranks(n, level)
    assert ranks is not None
    assert coverage(n, ranks[0]) >= level - 1e-8
    assert coverage(n, ranks[0] + 1) < level


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6))
def test_the_interval_encloses_the_median(values: list[float]) -> None:
    ordered = sorted(values)
    interval = median_interval(ordered)
    assert interval is not None
    assert interval[0] <= ordered[(len(ordered) - 1) // 2] <= ordered[len(ordered) // 2] <= interval[1]


def test_a_huge_sample_agrees_with_the_normal_approximation_and_takes_no_time() -> None:
    median_ranks.cache_clear()
    with at_most(0.05):
        ranks = median_ranks(200_000)
    assert ranks is not None
    assert ranks[0] == pytest.approx(100_000 - 1.96 * math.sqrt(200_000) / 2, abs=2)


def test_a_worker_can_use_it_without_loading_numpy() -> None:
    code = "import sys, assay.stats.order; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
