"""Errors of several sources, and the layout of agents in rounds."""

from __future__ import annotations

import numpy as np
import pytest

from assay.stats.random_effects import (
    ErrorPart,
    combine_p,
    compute_trimmed_mean,
    compute_trimmed_means,
    half_width,
    layout_errors,
    two_sided_p,
)


def test_parts_of_an_error_are_added_with_the_degrees_of_freedom_of_each() -> None:
    from scipy import stats  # slow to import

    parts = [ErrorPart(0.1, 2), ErrorPart(0.2, 9)]
    expected = np.hypot(0.1 * stats.t.ppf(0.975, 2), 0.2 * stats.t.ppf(0.975, 9))
    assert half_width(parts) == pytest.approx(expected)
    assert two_sided_p(float(expected), parts) == pytest.approx(0.05, rel=1e-6)


def test_one_part_alone_is_students_t() -> None:
    from scipy import stats  # slow to import

    assert two_sided_p(0.3, [ErrorPart(0.1, 4), ErrorPart(0.0, 1)]) == pytest.approx(2 * stats.t.sf(3, 4))


def test_combined_p_values_are_larger_than_each() -> None:
    assert combine_p(0.01, 0.02) > 0.02
    assert combine_p(0.01, 0.0) == pytest.approx(0.01, rel=0.05)
    assert combine_p(0.01, 1.0) == 1.0


def test_trimmed_means_agree_with_scipy() -> None:
    from scipy import stats  # slow to import

    chance = np.random.default_rng(1)
    values, groups = chance.normal(0, 1, 40), np.repeat([0, 1, 2], [20, 3, 17])
    expected = [stats.trim_mean(values[groups == n], 0.25) for n in range(3)]
    assert compute_trimmed_means(values, groups) == pytest.approx(expected)
    assert compute_trimmed_mean(values[:20]).value == pytest.approx(expected[0])
    tested = stats.ttest_ind(values[:20], np.zeros(20), trim=0.25, equal_var=False)
    assert compute_trimmed_mean(values[:20]).part.error == pytest.approx(abs(expected[0] / tested.statistic))


def test_two_rows_have_the_error_of_the_paired_t() -> None:
    table = np.random.default_rng(1).normal(0, 1, (2, 5))
    found = layout_errors(table)
    assert found.error[0, 1] == pytest.approx((table[0] - table[1]).std(ddof=1) / np.sqrt(5))
    assert found.freedom[0, 1] == 4


def test_many_rows_share_their_residual_variance() -> None:
    table = np.random.default_rng(1).normal(0, 1, (8, 3))
    left = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    pooled = np.sqrt(2 * (left**2).sum() / 14 / 3)
    found = layout_errors(table + 100 * np.array([1.0, -1.0, 0.0]))
    assert found.error.min() == pytest.approx(pooled)
    assert found.freedom.max() == 14


def test_a_noisy_row_has_a_larger_error_and_fewer_degrees_of_freedom() -> None:
    chance = np.random.default_rng(1)
    table = chance.normal(0, 1, (8, 5)) * np.array([20.0] + [1.0] * 7)[:, None]
    found = layout_errors(table)
    assert found.error[0, 1:].min() > 1.5 * found.error[1, 2]
    assert found.freedom[0, 1] < found.freedom[1, 2]
