"""What each factor of a sweep does: an additive model of the cells' means, and whether the factors act on their own.

A sweep runs every combination of the levels of its factors, such as model × temperature; a combination is a cell. The model
says that the mean of a cell is an intercept plus one effect for the level of each factor, fitted by least squares in
which each cell counts as often as it was observed. What a factor explains is what the fit loses without it. Where products of
two factors' levels explain notably more than their sum (F test, Holm's correction over all pairs), the two interact, and
the effect of one must not be reported without the level of the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assay.stats.correction import holm
from assay.stats.means import incomplete_beta, t_quantile
from assay.stats.sample import Array, Scale, Scaled, comparable_scale

LEVEL = 0.95
_NOTABLE = 0.01
"""Share of the variance below which an interaction does not change a choice, however certain it is."""

_ROUNDING = 1e-26
"""Share of the squares: less than this is left by arithmetic on equal values."""

Cells = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LevelDifference:
    """How far two levels of a factor are apart, the others being equal: a ratio, or a difference."""

    value: float
    low: float | None
    high: float | None
    scale: Scale


@dataclass(frozen=True, slots=True)
class Factor:
    share: float | None
    """Share of the variance of all observations that this factor explains beyond the others; None where nothing varies, or nothing is left to vary."""
    effects: tuple[float, ...]
    """Effect of each level on the scale of the model, the first being zero."""
    interacts: tuple[int, ...] = ()
    """Other factors on which its effect depends."""


@dataclass(frozen=True)
class Factorial:
    """A sweep's cells: `levels[i]` are the codes of cell i, one for each factor; `samples[i]` what was observed there."""

    levels: Cells
    scaled: Scaled
    factors: tuple[Factor, ...]
    _weights: Array
    _error: float
    """Variance of one observation."""
    _freedom: int

    def span(self, factor: int, base: int, other: int) -> LevelDifference:
        """Level `other` against level `base`."""
        effects = self.factors[factor].effects
        value = effects[other] - effects[base]
        if self._freedom < 1:
            return LevelDifference(self.scaled.back(value), None, None, self.scaled.scale)
        design = _additive(self.levels)
        contrast = np.zeros(design.shape[1])
        for level, sign in ((base, -1.0), (other, 1.0)):
            if level:
                contrast[_columns(self.levels)[factor][level - 1]] = sign
        weighted = design.T @ (design * self._weights[:, None])
        width = math.sqrt(max(float(contrast @ np.linalg.pinv(weighted) @ contrast) * self._error, 0.0))
        reach = t_quantile(0.5 + LEVEL / 2, self._freedom) * width
        ends = (self.scaled.back(value - reach), self.scaled.back(value + reach))
        return LevelDifference(self.scaled.back(value), *ends, self.scaled.scale)


def factorial(levels: Sequence[Sequence[int]], samples: Sequence[Array]) -> Factorial | None:
    """None where there is nothing to tell apart: fewer than two cells with observations."""
    full = [index for index, sample in enumerate(samples) if sample.size]
    if len(full) < 2:
        return None
    cells = np.asarray([levels[index] for index in full], dtype=np.intp)
    scaled = comparable_scale(*(np.asarray(samples[index], dtype=np.float64) for index in full))
    means = np.array([sample.mean() for sample in scaled.samples])
    weights = np.array([float(sample.size) for sample in scaled.samples])
    within = float(sum(((sample - sample.mean()) ** 2).sum() for sample in scaled.samples))
    freedom = int(weights.sum()) - len(full)
    error = within / freedom if freedom > 0 else 0.0
    total = within + _compute_residual_squares(np.ones((len(full), 1)), means, weights)
    if total <= _ROUNDING * float((weights * (1 + means**2)).sum()):
        total = 0.0
    if int(weights.sum()) <= np.linalg.matrix_rank(_additive(cells)):
        total = 0.0  # a model with a number for each observation explains them all, and nothing
    factors = _factors(cells, means, weights, total)
    marked = _with_interactions(cells, means, weights, (error, freedom, total), factors)
    return Factorial(cells, scaled, marked, weights, error, max(freedom, 0))


def _factors(cells: Cells, means: Array, weights: Array, total: float) -> tuple[Factor, ...]:
    whole = _additive(cells)
    root = np.sqrt(weights)
    solution = np.linalg.lstsq(whole * root[:, None], means * root, rcond=None)[0]
    unexplained = _compute_residual_squares(whole, means, weights)
    factors = []
    for columns in _columns(cells):
        rest = np.delete(whole, columns, axis=1)
        explained = max(_compute_residual_squares(rest, means, weights) - unexplained, 0.0)
        effects = (0.0, *(float(solution[column]) for column in columns))
        factors.append(Factor(min(explained / total, 1.0) if total > 0 else None, effects))
    return tuple(factors)


def _with_interactions(
    cells: Cells, means: Array, weights: Array, spread: tuple[float, int, float], factors: tuple[Factor, ...]
) -> tuple[Factor, ...]:
    error, freedom, total = spread
    pairs = list(combinations(range(len(factors)), 2))
    if not pairs or freedom < 1 or error <= 0 or total <= 0:
        return factors
    tested = [_interaction(cells, means, weights, pair) for pair in pairs]
    chances = [f_tail(explained / more / error, more, freedom) if more else 1.0 for explained, more in tested]
    real = [
        pair
        for pair, (explained, _), p in zip(pairs, tested, holm(chances), strict=True)
        if p < 1 - LEVEL and explained / total >= _NOTABLE
    ]
    return tuple(
        replace(
            factor, interacts=tuple(other for pair in real if own in pair for other in pair if other != own)
        )
        for own, factor in enumerate(factors)
    )


def _interaction(cells: Cells, means: Array, weights: Array, pair: tuple[int, int]) -> tuple[float, int]:
    """What products of two factors' levels explain beyond their sum, and the degrees of freedom that they take."""
    plain = _additive(cells)
    a, b = (plain[:, columns] for columns in (_columns(cells)[factor] for factor in pair))
    products = (a[:, :, None] * b[:, None, :]).reshape(len(cells), -1)
    full_model = np.hstack([plain, products])
    more = int(np.linalg.matrix_rank(full_model) - np.linalg.matrix_rank(plain))
    explained = _compute_residual_squares(plain, means, weights) - _compute_residual_squares(
        full_model, means, weights
    )
    return max(explained, 0.0), more


def _additive(cells: Cells) -> Array:
    """An intercept, and for each factor a column for each level but the first."""
    columns = [np.ones((len(cells), 1))]
    for factor in range(cells.shape[1]):
        codes = cells[:, factor]
        columns.append((codes[:, None] == np.arange(1, codes.max() + 1)).astype(np.float64))
    return np.hstack(columns)


def _columns(cells: Cells) -> list[list[int]]:
    """Where each factor's columns are in the design."""
    sizes = [int(cells[:, factor].max()) for factor in range(cells.shape[1])]
    starts = np.cumsum([1, *sizes])
    return [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=False)]


def _compute_residual_squares(design: Array, means: Array, weights: Array) -> float:
    """What is left of the cells' means, each counted as often as it was observed."""
    root = np.sqrt(weights)
    solution = np.linalg.lstsq(design * root[:, None], means * root, rcond=None)[0]
    return float((weights * (means - design @ solution) ** 2).sum())


def f_tail(value: float, above: int, below: int) -> float:
    """Chance of more than `value` in Fisher's F distribution.

    >>> round(f_tail(4.96, 1, 10), 3)
    0.05
    """
    return incomplete_beta(below / (below + above * value), below / 2, above / 2)
