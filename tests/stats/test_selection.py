"""Order statistics of more pairs than are written out, held against all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from assay.stats.selection import differences_at, walsh_averages_at

_SAMPLES: dict[str, Callable[[np.random.Generator], NDArray[np.float64]]] = {
    "continuous": lambda chance: chance.lognormal(0, 0.5, 1500),
    "tied": lambda chance: chance.integers(-3, 4, 1500).astype(np.float64),
    "mostly one value": lambda chance: np.where(chance.random(1500) < 0.9, 2.0, chance.normal(2, 1, 1500)),
}


@pytest.mark.parametrize("kind", _SAMPLES)
def test_averages_of_very_many_pairs_are_found_at_their_ranks(kind: str) -> None:
    x = _SAMPLES[kind](np.random.default_rng(1))
    first, second = np.triu_indices(x.size)
    every = np.sort((x[first] + x[second]) / 2)
    ranks = [0, every.size // 3, every.size // 2, every.size - 1]
    assert walsh_averages_at(x, ranks) == pytest.approx(every[ranks].tolist(), rel=1e-12)


@pytest.mark.parametrize("kind", _SAMPLES)
def test_differences_of_very_many_pairs_are_found_at_their_ranks(kind: str) -> None:
    chance = np.random.default_rng(2)
    x, y = _SAMPLES[kind](chance), 1.1 * _SAMPLES[kind](chance)[:900]
    every = np.sort(np.subtract.outer(y, x).ravel())
    ranks = [0, every.size // 3, every.size // 2, every.size - 1]
    assert differences_at(x, y, ranks) == pytest.approx(every[ranks].tolist(), rel=1e-12, abs=1e-12)
