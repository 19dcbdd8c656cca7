"""Where a growing quantity reaches 1."""

from __future__ import annotations

import numpy as np
import pytest

from assay.stats.threshold import LevelMeasurement, find_crossing


def test_a_jump_lies_between_the_two_levels_around_it() -> None:
    found = find_crossing(
        [
            LevelMeasurement(10, 0.0),
            LevelMeasurement(30, 20.0),
            LevelMeasurement(20, 0.0),
            LevelMeasurement(22, 20.0),
        ]
    )
    assert found.below == pytest.approx(20)
    assert found.above == pytest.approx(22)
    assert found.low == found.below
    assert found.high == found.above
    assert 20 < found.level < 22


def test_an_end_is_unknown_where_nothing_was_measured_beyond_it() -> None:
    found = find_crossing([LevelMeasurement(10, 0.1), LevelMeasurement(12, 0.2)])
    assert found.high is None
    assert found.above is None


def test_the_interval_of_a_noisy_crossing_holds_the_truth_in_nine_of_ten_cases() -> None:
    chance = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        levels = 100 * chance.uniform(0.85, 1.15, 12)
        means = (levels / 100) ** 15
        found = find_crossing(
            [
                LevelMeasurement(level, chance.gamma(2, mean / 2))
                for level, mean in zip(levels, means, strict=True)
            ]
        )
        covered += (found.low or 0) <= 100 <= (found.high or 1e9)
    assert covered >= 180
