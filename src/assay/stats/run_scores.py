"""Few runs of several algorithms: interquartile means, performance profiles and probabilities of improvement (Agarwal et al. 2021).

Scores are tables of runs × tasks. Intervals are percentiles of a stratified bootstrap: runs are drawn again within each task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from assay.stats.interquartile import interquartile_mean
from assay.stats.sample import Array

DRAWS = 2000
_TAILS = (0.025, 0.975)


class ScoreInterval(NamedTuple):
    """A figure with the interval of its bootstrap."""

    value: float
    low: float
    high: float


def resample_runs(scores: Array, draws: int, chance: np.random.Generator) -> Array:
    """Draws × runs × tasks: in each draw the runs of each task are drawn anew, independently of the other tasks."""
    runs, tasks = scores.shape
    chosen = chance.integers(0, runs, size=(draws, runs, tasks))
    return np.take_along_axis(scores[None], chosen, axis=1)


def pool_interquartile_mean(scores: Array) -> Array:
    """The interquartile mean over runs and tasks together, of each table."""
    return interquartile_mean(scores.reshape(*scores.shape[:-2], -1))


def estimate_score(
    scores: Array, seed: int = 0, statistic: Callable[[Array], Array] = pool_interquartile_mean
) -> ScoreInterval:
    draws = statistic(resample_runs(scores, DRAWS, np.random.default_rng(seed)))
    low, high = np.quantile(draws, _TAILS)
    return ScoreInterval(float(statistic(scores)), float(low), float(high))


def build_band(curves: Array, seed: int = 0, draws: int = 1000) -> tuple[Array, Array, Array]:
    """The interquartile mean at each point of curves (runs × points), and its interval; whole curves are drawn."""
    runs = len(curves)
    chosen = np.random.default_rng(seed).integers(0, runs, size=(draws, runs))
    middle = interquartile_mean(curves.T)
    curve_draws = np.stack([interquartile_mean(column[chosen]) for column in curves.T], axis=-1)
    low, high = np.quantile(curve_draws, _TAILS, axis=0)
    return middle, low, high


def compute_profile(scores: Array, levels: Array) -> Array:
    """The share of runs above each level, averaged over tasks (equation 2); of each table where there are several."""
    above: Array = (scores[..., None] > levels).mean(axis=(-3, -2))
    return above


def estimate_profile(scores: Array, levels: Array, seed: int = 0) -> tuple[Array, Array, Array]:
    """The profile and its pointwise interval."""
    draws = compute_profile(resample_runs(scores, DRAWS, np.random.default_rng(seed)), levels)
    low, high = np.quantile(draws, _TAILS, axis=0)
    return compute_profile(scores, levels), low, high


def compute_improvement(x: Array, y: Array) -> Array:
    """P(X > Y): the chance that a run of X beats one of Y on a task, where ties count half; averaged over tasks.

    >>> import numpy as np
    >>> float(compute_improvement(np.array([[2.0], [3.0]]), np.array([[1.0], [3.0]])))
    0.625
    """
    wins = np.sign(x[..., :, None, :] - y[..., None, :, :])
    chance: Array = 0.5 + wins.mean(axis=(-3, -2, -1)) / 2
    return chance


def estimate_improvement(x: Array, y: Array, seed: int = 0) -> ScoreInterval:
    first, second = (
        resample_runs(table, DRAWS, np.random.default_rng([seed, place]))
        for place, table in enumerate((x, y))
    )
    low, high = np.quantile(compute_improvement(first, second), _TAILS)
    return ScoreInterval(float(compute_improvement(x, y)), float(low), float(high))
