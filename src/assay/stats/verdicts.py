"""Pass or fail over repeated cases: consistency, pass@k, pass^k, and Wilson's interval. Counts in, numbers out.

`passed` and `repetitions` have an entry for each case. Cases with fewer than k repetitions say nothing about k tries and are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Z = 1.959963984540054

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def consistency(passed: Counts, repetitions: Counts) -> Floats:
    """For each case, the chance that two of its repetitions got the same verdict; 1 where there is only one."""
    failed = repetitions - passed
    pairs = repetitions * (repetitions - 1)
    agreeing = passed * (passed - 1) + failed * (failed - 1)
    return np.where(pairs > 0, agreeing / np.maximum(pairs, 1), 1.0)


def pass_at(k: int, passed: Counts, repetitions: Counts) -> float | None:
    """Chance that at least one of k tries passes, unbiased (Chen et al. 2021); None when no case has k repetitions."""
    return _mean_over(k, repetitions, 1.0 - _all_of(k, repetitions - passed, repetitions))


def pass_hat(k: int, passed: Counts, repetitions: Counts) -> float | None:
    """Chance that all of k tries pass, unbiased (Yao et al. 2024)."""
    return _mean_over(k, repetitions, _all_of(k, passed, repetitions))


def _all_of(k: int, hits: Counts, repetitions: Counts) -> Floats:
    """C(hits, k) / C(repetitions, k), as a product so that nothing overflows."""
    share = np.ones(len(hits))
    for step in range(k):
        share *= np.clip(hits - step, 0, None) / np.maximum(repetitions - step, 1)
    return share


def _mean_over(k: int, repetitions: Counts, values: Floats) -> float | None:
    enough = repetitions >= k
    return float(values[enough].mean()) if enough.any() else None


def wilson(share: float, n: float, z: float = _Z) -> tuple[float, float]:
    """Interval of a share of n independent observations (Wilson 1927).

    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    if n <= 0:
        return 0.0, 1.0
    middle = share + z * z / (2 * n)
    spread = z * float(np.sqrt(max(0.0, share * (1 - share) / n + z * z / (4 * n * n))))
    scale = 1 + z * z / n
    # Where all or none are of the kind, one end is exact, whatever rounding makes of it.
    low = (middle - spread) / scale if share > 0 else 0.0
    high = (middle + spread) / scale if share < 1 else 1.0
    return max(0.0, low), min(1.0, high)


def effective_n(case_means: Floats, executions: int) -> float:
    """How many independent observations the repetitions of these cases are worth."""
    n = len(case_means)
    variance = float(case_means.var(ddof=1)) / n if n > 1 else 0.0
    return worth_of(float(case_means.mean()), variance, n, executions)


def worth_of(share: float, variance: float, cases: int, executions: int) -> float:
    """Independent observations that would give a share this variance: at least one a case, at most all executions.

    A variance that was seen in few cases is uncertain, which makes Student's t wider than the normal by about
    1 + (z² + 1) / 4(n − 1) at 95 % (the first term of Cornish and Fisher 1938), and the cases worth less.
    """
    if variance <= 0 or cases < 2:
        return float(cases)
    widening = 1 + (_Z**2 + 1) / (4 * (cases - 1))
    return float(min(max(share * (1 - share) / variance / widening**2, cases), max(executions, cases)))
