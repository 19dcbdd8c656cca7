"""Pass rates of two agents over cases, with differences planted in them."""

from __future__ import annotations

import numpy as np
import pytest

from assay.stats.pass_rates import PassRates, fit_one, fit_pair, tilt


def _variance(rates: PassRates) -> float:
    steps = rates.b - rates.a
    return float(rates.weights @ (steps - rates.difference) ** 2)


@pytest.mark.parametrize("effect", [-0.3, 0.0, 0.1, 0.9])
def test_the_planted_difference_is_there(effect: float) -> None:
    chance = np.random.default_rng(1)
    passed = np.stack([chance.binomial(3, rate, 50) for rate in (0.7, 0.75)], axis=1)
    rates = fit_pair(passed, np.full((50, 2), 3), 0.01)
    assert rates.plant(effect).difference == pytest.approx(effect, abs=1e-6)
    assert rates.weights.sum() == pytest.approx(1)


def test_agents_that_pass_every_case_differ_by_whole_cases() -> None:
    rates = fit_pair(np.full((40, 2), 3), np.full((40, 2), 3), 0.0).plant(0.1)
    only_b = rates.weights[(rates.a == 0) & (rates.b == 1)].sum()
    assert only_b == pytest.approx(0.1, abs=0.005)


def test_agents_that_differ_by_chance_alone_differ_on_every_case_alike() -> None:
    passed = np.random.default_rng(2).binomial(4, 0.6, 400)
    rates = fit_one(passed, np.full(400, 4)).plant(0.1)
    assert _variance(rates) < 0.01


def test_cases_vary_no_more_than_repetitions_leave_room_for() -> None:
    chance = np.random.default_rng(3)
    passed = np.stack([chance.binomial(3, 0.7, 50), chance.binomial(3, 0.7, 50)], axis=1)
    assert _variance(fit_pair(passed, np.full((50, 2), 3), 0.02)) == pytest.approx(0.02, abs=0.012)


def test_a_mean_out_of_reach_is_approached() -> None:
    steps = np.array([-1.0, 0.0, 0.5])
    assert tilt(np.full(3, 1 / 3), steps, 2.0) @ steps == pytest.approx(0.5, abs=1e-6)
