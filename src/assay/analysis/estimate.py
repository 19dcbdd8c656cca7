"""A metric over a trial, with its interval and what makes it doubtful."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from assay.analysis.doubts import doubts_about
from assay.analysis.replication import Observed, observed
from assay.analysis.rounds import is_by_round, series_error
from assay.model import Estimate, Metric, Series
from assay.model.metric import is_score
from assay.stats.outliers import outliers
from assay.stats.random_effects import ErrorPart, half_width
from assay.stats.sample import quantile
from assay.stats.summary import median_interval, percentile, summarise
from assay.stats.tails import is_enough, tail_intervals
from assay.stats.verdicts import effective_n, wilson


def estimate(metric: Metric, series: Series, *, level: float = 0.95, is_brief: bool = False) -> Estimate:
    """Median and interval are over the units of replication, the other figures over all executions.

    What depends on the machine has intervals over cases and rounds; with fewer than three rounds it has none.
    A brief one has no intervals of percentiles and no doubts, which take longer than all the rest.
    """
    seen = observed(series)
    plain = _figures(metric, seen, level)
    if not is_brief:
        plain = replace(plain, tails=_tails(seen, level))
    if is_by_round(metric, series):
        plain = _with_rounds(plain, series_error(series))
    return plain if is_brief else replace(plain, doubts=doubts_about(plain, seen))


def _with_rounds(plain: Estimate, part: ErrorPart | None) -> Estimate:
    """What rounds differ by added to what cases differ by, on the scale of logarithms."""
    if part is None:
        return replace(plain, low=None, high=None, tails={})
    half = half_width([part], (1 + plain.level) / 2)
    low, high = _widened(plain.median, plain.low, plain.high, half)
    tails = {
        name: (low_end, high_end)
        for name, ends in plain.tails.items()
        for low_end, high_end in [_widened(getattr(plain, name), *ends, half)]
        if low_end is not None and high_end is not None
    }
    return replace(plain, low=low, high=high, tails=tails)


def _widened(
    value: float, low: float | None, high: float | None, half: float
) -> tuple[float | None, float | None]:
    if low is None or high is None or min(low, value) <= 0:
        return low, high
    below, above = math.log(value / low), math.log(high / value)
    return value * math.exp(-math.hypot(below, half)), value * math.exp(math.hypot(above, half))


def _figures(metric: Metric, seen: Observed, level: float) -> Estimate:
    units, summary, labelled = seen.units, summarise(seen.values), outliers(seen.values)
    low, high = median_interval(units, level) or (None, None)
    has_scores = is_score(metric) and seen.by_case and units.size > 0
    mean_low, mean_high = _mean_interval(seen, level) if has_scores else (None, None)
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
        insufficient=tuple(f"p{q}" for q in (90, 95, 99) if not is_enough(summary.n, q)),
        mean_low=mean_low,
        mean_high=mean_high,
    )


def _tails(seen: Observed, level: float) -> dict[str, tuple[float, float]]:
    """Over the units; the executions of a lone process are its units."""
    units = seen.processes if seen.by_case or seen.process_count > 1 else np.arange(seen.values.size)
    return {f"p{q:g}": ends for q, ends in tail_intervals(seen.values, units, (95, 99), level).items()}


def _mean_interval(seen: Observed, level: float) -> tuple[float, float]:
    """Wilson's, with as many observations as the repetitions of these cases are worth."""
    means = np.fromiter(seen.means.values(), dtype=np.float64)
    return wilson(float(means.mean()), effective_n(means, seen.values.size), quantile((1 + level) / 2))
