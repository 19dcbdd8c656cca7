from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from assay.stats.means import mean_difference, t_tail
from assay.stats.pairs import compare_rows
from assay.stats.random_effects import compute_trimmed_mean
from assay.stats.trimmed_rows import compare_trimmed_rows

_tables = arrays(np.float64, (4, 12), elements=st.floats(0, 1, width=32))


@given(first=_tables, second=_tables)
def test_what_one_row_gains_on_another_the_other_loses(first: np.ndarray, second: np.ndarray) -> None:
    found = compare_rows([first, second])
    assert np.array_equal(found.gap, -found.gap.T)
    assert np.array_equal(found.p, found.p.T)
    assert ((found.p >= 0) & (found.p <= 1)).all()


@pytest.mark.parametrize("columns", [12, 200])
@pytest.mark.parametrize("seed", range(5))
def test_one_table_is_judged_like_a_single_comparison_of_means(columns: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    table = (chance.random((2, columns)) < [[0.3], [0.8]]).astype(float)
    found = compare_rows([table])
    single = mean_difference(table[1], table[0])
    assert single is not None
    assert found.gap[0, 1] == pytest.approx(single.value)
    assert found.p[0, 1] == pytest.approx(single.p, rel=1e-6)


def test_only_columns_that_both_rows_have_are_compared() -> None:
    nothing = np.nan
    table = np.array([[1.0, 1.0, 0.0, nothing], [nothing, 0.0, 0.0, 5.0]])
    assert compare_rows([table]).gap[0, 1] == 0.5


def test_rows_that_share_at_most_a_column_of_each_table_are_not_compared() -> None:
    table = np.array([[1.0, np.nan, np.nan], [0.0, 1.0, np.nan], [np.nan, np.nan, 1.0]])
    found = compare_rows([table, table])
    assert np.isnan(found.gap[0, 1])
    assert np.isnan(found.gap[0, 2])
    assert (found.p == 1).all()


def test_every_table_counts_alike_whatever_its_size() -> None:
    small, large = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.0] * 50, [1.0] * 50])
    assert compare_rows([small, large]).gap[0, 1] == 0.0


def test_rows_that_are_alike_are_not_apart() -> None:
    table = np.tile(np.random.default_rng(1).random(40), (3, 1))
    found = compare_rows([table])
    assert (found.gap == 0).all()
    assert (found.p == 1).all()


def test_a_straggler_hides_a_steady_difference_from_means_but_not_from_trimmed_means() -> None:
    slow = np.random.default_rng(2).random((1, 60)) * 0.01
    table = np.concatenate([slow, slow + 0.001])
    table[1, 7] = -5.0
    assert compare_rows([table]).p[0, 1] > 0.2
    table += np.random.default_rng(3).normal(0, 1e-5, table.shape)
    trimmed = compare_trimmed_rows([table])
    assert trimmed.p[0, 1] < 1e-6
    assert trimmed.gap[0, 1] == pytest.approx(-0.001, rel=0.05)


def test_trimmed_means_of_rows_are_those_of_their_differences() -> None:
    chance = np.random.default_rng(4)
    first, second = chance.normal(0, 1, (3, 11)), chance.normal(0, 1, (3, 6))
    first[0, 2] = np.nan
    found = compare_trimmed_rows([first, second])
    each = [
        compute_trimmed_mean(table[0, known] - table[1, known])
        for table, known in ((first, ~np.isnan(first[0])), (second, np.full(6, True)))
    ]
    assert found.gap[0, 1] == pytest.approx(sum(one.value for one in each) / 2)
    error2 = [one.part.error**2 for one in each]
    freedom = sum(error2) ** 2 / sum(e**2 / one.part.freedom for e, one in zip(error2, each, strict=True))
    t = abs(sum(one.value for one in each)) / sum(error2) ** 0.5
    assert found.p[0, 1] == pytest.approx(2 * t_tail(t, int(freedom))) or found.p[0, 1] == 1.0


def test_no_tables_compare_nobody() -> None:
    assert compare_rows([]).gap.shape == (0, 0)


def test_so_many_pairs_that_they_are_taken_in_parts_come_out_the_same() -> None:
    table = np.random.default_rng(3).random((40, 3000))
    whole, part = compare_rows([table]), compare_rows([table[:2]])
    assert whole.gap[0, 1] == part.gap[0, 1]
    assert whole.p[0, 1] == part.p[0, 1]


def test_tied_differences_count_alike_whatever_the_order_of_the_columns() -> None:
    gaps = np.array([0.25, -0.25, 0.25, 0.25, 0.25, -0.25, 0.25, 0.5])
    table = np.stack((gaps + 0.5, np.full(8, 0.5)))
    found = {
        float(compare_trimmed_rows([table[:, order]]).p[0, 1])
        for order in (slice(None), slice(None, None, -1))
    }
    assert len(found) == 1
