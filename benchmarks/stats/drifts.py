"""Drifts and steps planted in short histories, put to the detector behind `assay detect`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from assay.stats.changepoint import History, detect
from stats.histories import FAMILIES, SEED, Floats

LENGTHS = (16, 30, 60)
SIZES = (0.10, 0.20, 0.40)
NOISES = (0.01, 0.02, 0.05)
PROMISED = (0.20, 0.02)
"""Size and noise of the drift that must be found from 16 points on."""


@dataclass(frozen=True)
class Cell:
    """Shares of the histories of one length, size and noise that got each answer."""

    n: int
    size: float
    noise: float
    drift: float
    """A drift and no step."""
    two_steps: float
    """Two steps or more."""

    @property
    def name(self) -> str:
        return f"{self.size:.0%} at {self.noise:.0%} noise over {self.n} points"


def drift_cells(repetitions: int) -> list[Cell]:
    return [_drift_cell(n, size, noise, repetitions) for n, size, noise in product(LENGTHS, SIZES, NOISES)]


def _drift_cell(n: int, size: float, noise: float, repetitions: int) -> Cell:
    way = np.log1p(size) * np.linspace(0, 1, n)
    found = _answers(f"drift {n} {size} {noise}", way, noise, repetitions)
    drifts = [answer.drift is not None and not answer.change_points for answer in found]
    return Cell(n, size, noise, *map(_share, (drifts, [len(answer.change_points) > 1 for answer in found])))


def steps_called_drifts(repetitions: int) -> float:
    """Share of steps of 20 % in the middle of a short history, with noise of 2 %, that are called a drift."""
    size, noise = PROMISED
    found = [
        answer.drift is not None
        for n in LENGTHS
        for answer in _answers(f"step {n}", np.log1p(size) * (np.arange(n) >= n // 2), noise, repetitions)
    ]
    return _share(found)


def quiet_flagged(repetitions: int) -> dict[str, float]:
    """By noise family, the share of short histories without a change in which a step or a drift is found."""
    return {
        family: _share(
            [
                _is_flagged(detect((100 * np.exp(make_noise(chance, n))).tolist()))
                for n in LENGTHS
                for chance in [np.random.default_rng([SEED, *f"short {family} {n}".encode()])]
                for _ in range(repetitions)
            ]
        )
        for family, make_noise in FAMILIES.items()
    }


def _answers(name: str, way: Floats, noise: float, repetitions: int) -> list[History]:
    """Half of them rise, half fall."""
    chance = np.random.default_rng([SEED, *name.encode()])
    return [
        detect((100 * np.exp((-1) ** i * way + noise * chance.standard_normal(way.size))).tolist())
        for i in range(repetitions)
    ]


def _is_flagged(found: History) -> bool:
    return bool(found.change_points) or found.drift is not None


def _share(answers: list[bool]) -> float:
    return sum(answers) / len(answers)
