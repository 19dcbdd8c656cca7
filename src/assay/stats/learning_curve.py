"""Learning curves: when a policy converges, and how steady its reward is afterwards.

A single noisy reward above a threshold is luck, and the more noise, the sooner. So thresholds are held against trailing means,
and the spread is taken after convergence, not over the slope of learning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from assay.stats.sample import Array

FEWEST_STEADY = 20
"""Episodes after convergence without which their spread says nothing."""


def smooth(rewards: ArrayLike, window: int) -> Array:
    """Trailing means over the last axis: the first is that of the first `window` values.

    >>> smooth([0.0, 1.0, 2.0, 6.0], 2).tolist()
    [0.5, 1.5, 4.0]
    """
    values = np.asarray(rewards, dtype=np.float64)
    window = min(window, values.shape[-1])
    found: Array = np.lib.stride_tricks.sliding_window_view(values, window, axis=-1).mean(axis=-1)
    return found


def find_first_reaching(rewards: ArrayLike, threshold: float, window: int) -> int | None:
    """How many episodes it took until the mean of the last `window` was at least the threshold; None if it never was.

    >>> find_first_reaching([0.0, 1.0, 0.0, 1.0, 1.0], 1.0, 2), find_first_reaching([1.0, 0.0], 1.0, 2)
    (5, None)
    """
    means = smooth(rewards, window)
    reached = np.flatnonzero(means >= threshold - 1e-12)
    return int(reached[0]) + np.size(rewards) - len(means) + 1 if len(reached) else None


def compute_stability(rewards: ArrayLike, converged: int) -> float | None:
    """Standard deviation ÷ mean of the rewards after convergence; None where there are too few, or their mean is not positive."""
    steady = np.asarray(rewards, dtype=np.float64)[converged:]
    if len(steady) < FEWEST_STEADY or steady.mean() <= 0:
        return None
    return float(steady.std() / steady.mean())
