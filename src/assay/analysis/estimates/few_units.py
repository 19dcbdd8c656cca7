"""Describes samples that are too small for an interval, down to a single observation.

Nothing here needs NumPy, whose import takes a good part of the time of a run with one execution.
"""

from __future__ import annotations

import math
from itertools import count

from assay.model import Estimate, Metric, Series
from assay.stats.order import median_ranks

_PERCENTILES = ("p90", "p95", "p99")
_ADVICE = {"case": "Use more cases.", "process": "Run with processes: 10."}


def is_lone_value(series: Series) -> bool:
    """Whether `estimate_lone_value` gives what `estimate` would: the series has one value, which is a number and of no case."""
    return len(series.values) == 1 and series.unit != "case" and math.isfinite(series.values[0])


def estimate_lone_value(
    metric: Metric, series: Series, *, level: float = 0.95, is_brief: bool = False
) -> Estimate:
    """A single value is every figure of its series; there is no interval, and that is all there is to doubt."""
    value = float(series.values[0])
    word = "execution" if series.unit == "process" else series.unit
    return Estimate(
        metric=metric,
        n=1,
        units=1,
        mean=value,
        median=value,
        std=0.0,
        min=value,
        max=value,
        p90=value,
        p95=value,
        p99=value,
        low=None,
        high=None,
        level=level,
        outliers=0,
        median_without_outliers=value,
        insufficient=_PERCENTILES,
        doubts=() if is_brief else (describe_few_units(f"One {word} is", series.unit, level),),
    )


def describe_few_units(have: str, unit: str, level: float) -> str:
    """Say that there is no interval, how many units it takes, and how to get them; `have` begins the sentence."""
    enough = units_for_interval(level)
    advice = _ADVICE.get(unit, f"Repeat it: --repetitions {enough}.")
    return f"{have} too few for an interval, which needs {enough}. {advice}"


def units_for_interval(level: float) -> int:
    return next(n for n in count(1) if median_ranks(n, level))
