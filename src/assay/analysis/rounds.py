"""Rounds of a suite: every case once, in one process and one minute, which the cases of a round have in common.

A test over cases alone takes a slow minute for a slow agent. Rounds are a sample of minutes, so what they differ by is what
a difference between two agents has to exceed before it is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from assay.model.rating import CaseTable
from assay.stats.means import t_quantile

Floats = NDArray[np.float64]

OF_MACHINE = {"speed": "seconds", "efficiency": "cpu_seconds"}
"""Dimensions that the machine has a part in, and the metric by which that is seen."""
_OF_MEDIANS = math.sqrt(math.pi / 2)
"""A case counts by the median of its repetitions, which varies by so much more than their mean."""


def round_logs(table: CaseTable, metric: str) -> Floats | None:
    """The mean logarithm of each round over its cases, less what is the cases' own; None where that is not known."""
    column = table.metrics.get(metric)
    if column is None or len(set(table.repetitions)) < 2:
        return None
    values = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    usable = (np.asarray(table.statuses, dtype=object) == "ok") & np.isfinite(values) & (values > 0)
    if not usable.any():
        return None
    # Numbers for names: sorting a million texts takes ten times as long.
    places = {name: place for place, name in enumerate(dict.fromkeys(table.cases))}
    cases = np.fromiter((places[name] for name in table.cases), dtype=np.int64, count=len(values))[usable]
    return of_rounds(np.log(values[usable]), cases, np.asarray(table.repetitions)[usable])


def of_rounds(logs: Floats, cases: NDArray[np.generic], rounds: NDArray[np.generic]) -> Floats:
    _, case = np.unique(cases, return_inverse=True)
    _, number = np.unique(rounds, return_inverse=True)
    own = (np.bincount(case, logs) / np.bincount(case))[case]
    return np.asarray(np.bincount(number, logs - own) / np.bincount(number), dtype=np.float64)


def half_widths(rounds: Floats, spreads: Floats) -> Floats:
    """Of every pair of rows, half the 95 % interval of their difference by rounds (Student's t); 0 where it is not known.

    `rounds` is how many each has, `spreads` the standard deviation of one.
    """
    known = (rounds > 1) & np.isfinite(spreads)
    free = np.where(known, rounds - 1, 0.0)
    freedom = free[:, None] + free[None, :]
    squares = free * np.where(known, spreads, 0.0) ** 2
    both = known[:, None] & known[None, :]
    pooled = (squares[:, None] + squares[None, :]) / np.where(both, freedom, 1.0)
    counts = np.where(known, rounds, 1.0)
    error = _OF_MEDIANS * np.sqrt(pooled * (1 / counts[:, None] + 1 / counts[None, :]))
    return np.asarray(np.where(both, _quantiles(np.where(both, freedom, 1.0)) * error, 0.0))


def _quantiles(freedom: Floats) -> Floats:
    each, place = np.unique(freedom, return_inverse=True)
    found = np.array([t_quantile(0.975, int(one)) for one in each])
    return np.asarray(found[place].reshape(freedom.shape))


def spread_of(rounds: Sequence[float] | None) -> tuple[float, float]:
    """Number of rounds, and the standard deviation of one; 0 and NaN where nothing is known."""
    return (float(rounds[0]), float(rounds[1])) if rounds else (0.0, math.nan)
