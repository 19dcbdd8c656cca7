"""A metric over a trial, with its interval and what makes it doubtful."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.analysis.doubts import doubts_about
from assay.analysis.replication import Observed, observed
from assay.model import Estimate, Metric, Series
from assay.stats.outliers import outliers
from assay.stats.summary import median_interval, percentile, summarise

BEYOND = 10
"""Executions that must lie beyond a percentile before it is shown."""


def estimate(metric: Metric, series: Series, *, level: float = 0.95) -> Estimate:
    """Median and interval are over the units of replication, the other figures over all executions."""
    seen = observed(series)
    plain = _figures(metric, seen, level)
    return replace(plain, doubts=doubts_about(plain, seen))


def _figures(metric: Metric, seen: Observed, level: float) -> Estimate:
    units, summary, labelled = seen.units, summarise(seen.values), outliers(seen.values)
    low, high = median_interval(units, level) or (None, None)
    return Estimate(
        metric=metric,
        n=summary.n,
        units=units.size,
        mean=summary.mean,
        median=percentile(units, 50),
        std=summary.std,
        min=summary.min,
        max=summary.max,
        p90=summary.p90,
        p95=summary.p95,
        p99=summary.p99,
        low=low,
        high=high,
        level=level,
        outliers=int(np.count_nonzero(labelled)),
        median_without_outliers=percentile(seen.only(~labelled).units, 50),
        insufficient=tuple(f"p{q}" for q in (90, 95, 99) if summary.n * (100 - q) < 100 * BEYOND),
    )
