"""How pass rates of two agents are distributed over cases, and that distribution with a difference planted in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assay.stats.sample import Array

GRID = np.array([0.0, *np.arange(0.05, 1.0, 0.1), 1.0])
UNSEEN = 0.5
"""Cases that one side alone passes, added to those that were seen: none among n does not mean that there are none.

As Jeffreys's prior adds half a success and half a failure to a share.
"""
STEPS = 200
_STEEPEST = 60.0
_MOST_LOGITS = 1.5
"""An odds ratio of 4.5: agents that differ by more than that on some cases do so on whole cases."""
_HALVINGS = 60

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PassRates:
    """Kinds of cases: the chance that A passes one, the chance that B does, and the share of such cases."""

    a: Array
    b: Array
    weights: Array

    @property
    def difference(self) -> float:
        return float(self.weights @ (self.b - self.a))

    def plant(self, difference: float) -> PassRates:
        """With B − A made this large.

        Where repetitions of a case vary, B passes them more or less often, by the same odds ratio everywhere. What that does
        not bring about, whole cases do that only one side passes: more of these, until the difference is there.
        """
        uncertain = (self.b > 0) & (self.b < 1)
        logits = np.log(np.where(uncertain, self.b, 0.5) / np.where(uncertain, 1 - self.b, 0.5))

        def shift(by: float) -> PassRates:
            return replace(self, b=np.where(uncertain, 1 / (1 + np.exp(-logits - by)), self.b))

        low, high = -_MOST_LOGITS, _MOST_LOGITS
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if shift(middle).difference < difference else (low, middle)
        rates = shift((low + high) / 2)
        return replace(rates, weights=tilt(rates.weights, rates.b - rates.a, difference))

    def shrink(self, variance: float) -> PassRates:
        """With differences B − A drawn towards their mean, until they vary from case to case by no more than this.

        A mixture that fits single cases best finds more variance in them than there is.
        """
        levels, steps, mean = (self.a + self.b) / 2, self.b - self.a, self.difference
        seen = float(self.weights @ (steps - mean) ** 2)
        factor = math.sqrt(min(1.0, variance / seen)) if seen > 0 else 1.0
        half = (mean + factor * (steps - mean)) / 2
        return replace(self, a=np.clip(levels - half, 0, 1), b=np.clip(levels + half, 0, 1))

    def add_unseen(self, cases: int) -> PassRates:
        """With cases that only one side passes, as if half of one had been among so many cases."""
        weights = np.array([*(self.weights * cases), UNSEEN / 2, UNSEEN / 2]) / (cases + UNSEEN)
        return PassRates(np.array([*self.a, 0.0, 1.0]), np.array([*self.b, 1.0, 0.0]), weights)


def tilt(weights: Array, steps: Array, mean: float) -> Array:
    """Weights times exp(λ · step) with the λ at which the mean step is this; as near as the steps allow."""

    def tilt_weights(slope: float) -> Array:
        grown = weights * np.exp(slope * (steps - (steps.max() if slope > 0 else steps.min())))
        return np.asarray(grown / grown.sum())

    low, high = -_STEEPEST, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if float(tilt_weights(middle) @ steps) < mean else (low, middle)
    return tilt_weights((low + high) / 2)


def fit_pair(passed: Counts, tries: Counts, case_variance: float) -> PassRates:
    """Fit the pass rates of cases that both agents were asked; columns are A and B. `case_variance` is that of the true B − A of a case.

    The nonparametric maximum likelihood estimate of a mixture of binomials (Kiefer and Wolfowitz 1956) on a grid, by EM.
    """
    a, b = (side.ravel() for side in np.meshgrid(GRID, GRID, indexing="ij"))
    rows, counts = np.unique(np.hstack((passed, tries)), axis=0, return_counts=True)
    weights = _fit(_likelihood(a, rows[:, 0], rows[:, 2]) * _likelihood(b, rows[:, 1], rows[:, 3]), counts)
    return PassRates(a, b, weights).shrink(case_variance).add_unseen(len(passed))


def fit_one(passed: Counts, tries: Counts) -> PassRates:
    """Fit the pass rates of one agent, and of another that passes each case as often.

    Single repetitions do not show whether a case always passes; then all cases count as one kind, and the two agents
    agree only by chance.
    """
    if (tries < 2).all():
        rates = np.array([(float(passed.sum()) + 0.5) / (float(tries.sum()) + 1)])
        return PassRates(rates, rates, np.ones(1)).add_unseen(len(passed))
    rows, counts = np.unique(np.stack((passed, tries), axis=1), axis=0, return_counts=True)
    return PassRates(GRID, GRID, _fit(_likelihood(GRID, rows[:, 0], rows[:, 1]), counts)).add_unseen(
        len(passed)
    )


def _likelihood(rates: Array, passed: Counts, tries: Counts) -> Array:
    """One row for each kind of observation, one column for each rate."""
    return np.asarray(rates ** passed[:, None] * (1 - rates) ** (tries - passed)[:, None])


def _fit(likelihood: Array, counts: Counts) -> Array:
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(STEPS):
        joint = likelihood * weights
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), math.ulp(0.0))
        weights = counts @ joint / counts.sum()
    return np.asarray(weights / weights.sum())
