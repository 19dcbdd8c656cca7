from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.interquartile import interquartile_mean
from assay.stats.learning_curve import compute_stability, find_first_reaching, smooth
from assay.stats.run_scores import (
    build_band,
    compute_improvement,
    compute_profile,
    estimate_improvement,
    estimate_score,
    resample_runs,
)

scores = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(lambda values: np.array(values)[:, None])


@given(scores, scores)
def test_the_chance_to_beat_and_the_chance_to_be_beaten_add_up_to_1(x, y):
    assert compute_improvement(x, y) + compute_improvement(y, x) == pytest.approx(1.0)


@given(scores, scores)
def test_the_chance_of_improvement_is_the_u_statistic_of_mann_and_whitney(x, y):
    """P(X > Y) = U ÷ (n·m), as Agarwal et al. (2021) define it."""
    from scipy.stats import mannwhitneyu

    expected = mannwhitneyu(x[:, 0], y[:, 0], method="asymptotic").statistic / (len(x) * len(y))
    assert compute_improvement(x, y) == pytest.approx(expected)


@given(scores, st.floats(0, 1))
def test_a_profile_is_the_share_of_runs_above_and_never_rises(x, level):
    levels = np.sort(np.array([0.0, level, 1.0]))
    profile = compute_profile(x, levels)
    assert np.all(np.diff(profile) <= 0)
    assert profile.tolist() == [(x > tau).mean() for tau in levels]


@given(scores)
def test_the_area_under_a_profile_is_the_mean_score(x):
    """∫ P(X > τ) dτ = E[X] for scores between 0 and 1."""
    levels = np.linspace(0, 1, 2001)
    assert compute_profile(x, levels).mean() == pytest.approx(x.mean(), abs=2e-3)


def test_runs_are_drawn_within_their_task():
    table = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]])
    drawn = resample_runs(table, 50, np.random.default_rng(1))
    assert drawn.shape == (50, 3, 2)
    assert set(drawn[..., 0].ravel()) == {0.0, 1.0, 2.0}
    assert set(drawn[..., 1].ravel()) == {10.0, 11.0, 12.0}


def test_an_interval_holds_its_figure_and_is_a_point_where_runs_are_alike():
    found = estimate_score(np.random.default_rng(0).random((10, 1)))
    assert found.low <= found.value <= found.high
    assert estimate_score(np.full((5, 1), 0.7)) == pytest.approx((0.7, 0.7, 0.7))
    same = estimate_improvement(np.full((5, 1), 0.7), np.full((4, 1), 0.7))
    assert same == (0.5, 0.5, 0.5)


def test_a_band_follows_the_interquartile_mean():
    curves = np.random.default_rng(0).random((7, 4))
    middle, low, high = build_band(curves, draws=200)
    np.testing.assert_allclose(middle, interquartile_mean(curves.T))
    assert np.all((low <= middle) & (middle <= high))


def test_one_lucky_episode_is_no_convergence():
    noisy = [0.0, 1.0] * 50
    assert find_first_reaching(noisy, 0.8, 1) == 2
    assert find_first_reaching(noisy, 0.8, 25) is None


def test_a_curve_that_is_above_from_the_first_has_converged_after_one_window():
    assert find_first_reaching([0.9] * 40, 0.8, 25) == 25


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 50))
def test_trailing_means_are_those_of_numpy(rewards, window):
    width = min(window, len(rewards))
    expected = np.convolve(rewards, np.full(width, 1 / width), "valid")
    np.testing.assert_allclose(smooth(rewards, window), expected, atol=1e-12)


def test_stability_leaves_out_the_slope_of_learning():
    slope, steady = np.linspace(0, 1, 100), np.full(100, 0.9)
    assert compute_stability(np.concatenate([slope, steady]), 100) == pytest.approx(0.0)
    assert compute_stability(steady, 90) is None
