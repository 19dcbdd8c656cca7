"""A small part of the simulation behind the promised rates; `benchmarks/stats/histories.py` is the whole."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.stats.histories import FAMILIES, Planted, with_step, without_change

from assay.stats.changepoint import detect

REPETITIONS = 30


def indexes(history: Planted) -> list[int]:
    return [change.index for change in detect(history.values.tolist()).change_points]


@pytest.mark.parametrize("family", FAMILIES)
def test_histories_without_a_change_are_left_alone(family: str) -> None:
    chance = np.random.default_rng(71)
    histories = [without_change(chance, FAMILIES[family], 150) for _ in range(REPETITIONS)]

    assert sum(bool(indexes(history)) for history in histories) <= 2


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_of_ten_percent_is_found_within_five_points(family: str) -> None:
    chance = np.random.default_rng(72)
    histories = [with_step(chance, FAMILIES[family], 150, 0.1) for _ in range(REPETITIONS)]

    assert sum(history.is_found(indexes(history)) for history in histories) >= REPETITIONS - 1
