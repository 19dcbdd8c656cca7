from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.modes import two_modes


def test_two_speeds_are_found_with_their_shares() -> None:
    chance = np.random.default_rng(2)
    values = np.concatenate((chance.lognormal(0, 0.02, 60), chance.lognormal(np.log(1.3), 0.02, 40)))
    modes = two_modes(chance.permutation(values))
    assert modes is not None
    assert (modes.low, modes.high) == pytest.approx((1.0, 1.3), rel=0.02)
    assert modes.share_high == pytest.approx(0.4)


def test_a_far_mode_of_a_quarter_is_not_taken_for_outliers() -> None:
    chance = np.random.default_rng(2)
    values = np.concatenate((chance.lognormal(0, 0.02, 75), chance.lognormal(1, 0.02, 25)))
    assert two_modes(values) is not None


@pytest.mark.parametrize("values", [[], [1.0, 2.0], [3.0] * 100, [0.0] * 100, [-1.0, 1.0]])
def test_handfuls_and_constants_have_one_mode(values: list[float]) -> None:
    assert two_modes(values) is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=30, max_size=60))
def test_any_floats_are_judged_without_a_warning(values: list[float]) -> None:
    modes = two_modes(values)
    assert modes is None or modes.low < modes.high
