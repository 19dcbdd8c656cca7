"""Estimates a metric over a trial: median, interval, percentiles and what makes them doubtful.

What counts as one observation is decided in `replication.py`. Times, CPU and memory of suites also vary from round to round;
`comparison/rounds.py` says by how much, and their intervals are widened by it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from assay.analysis.estimates.doubts import doubts_about
from assay.analysis.estimates.replication import Observed, is_by_round, observe
from assay.model import Estimate, Metric, Series
from assay.model.metric import is_score
from assay.stats.outliers import outliers
from assay.stats.sample import quantile
from assay.stats.summary import median_interval, percentile, summarise
from assay.stats.tails import is_enough, tail_intervals
from assay.stats.verdicts import effective_n, wilson


def estimate(metric: Metric, series: Series, *, level: float = 0.95, is_brief: bool = False) -> Estimate:
    """Median and interval are over the units of replication, the other figures over all executions.

    What depends on the machine has intervals over cases and rounds; with fewer than three rounds it has none.
    A brief estimate has no intervals of percentiles and no doubts, which take longer than all the rest.
    """
    seen = observe(series)
    plain = _figures(metric, seen, level)
    if not is_brief:
        # The intervals of percentiles are over the units; the executions of a lone process are its units.
        is_grouped = seen.by_case or seen.process_count > 1
        units = seen.processes if is_grouped else np.arange(seen.values.size)
        tails = tail_intervals(seen.values, units, (95, 99), level)
        plain = replace(plain, tails={f"p{q:g}": ends for q, ends in tails.items()})
    if is_by_round(metric, series):
        plain = _with_rounds(plain, series)
    return plain if is_brief else replace(plain, doubts=doubts_about(plain, seen))


def _with_rounds(plain: Estimate, series: Series) -> Estimate:
    """The estimate with intervals over cases and rounds; without intervals if there are too few rounds."""
    # Imported here, because a run of code has no rounds and ends sooner without these.
    from assay.analysis.comparison.rounds import series_error
    from assay.stats.random_effects import half_width

    part = series_error(series)
    if part is None:
        return replace(plain, low=None, high=None, tails={})
    half = half_width([part], (1 + plain.level) / 2)
    low, high = _widen_interval(plain.median, plain.low, plain.high, half)
    tails = {
        name: (low_end, high_end)
        for name, ends in plain.tails.items()
        for low_end, high_end in [_widen_interval(getattr(plain, name), *ends, half)]
        if low_end is not None and high_end is not None
    }
    return replace(plain, low=low, high=high, tails=tails)


def _widen_interval(
    value: float, low: float | None, high: float | None, half: float
) -> tuple[float | None, float | None]:
    """The interval with an independent error of ± `half` added in squares, on the scale of logarithms."""
    if low is None or high is None or min(low, value) <= 0:
        return low, high
    below, above = math.log(value / low), math.log(high / value)
    return value * math.exp(-math.hypot(below, half)), value * math.exp(math.hypot(above, half))


def _figures(metric: Metric, seen: Observed, level: float) -> Estimate:
    """All figures but the intervals of percentiles and the doubts."""
    units, summary, labelled = seen.units, summarise(seen.values), outliers(seen.values)
    low, high = median_interval(units, level) or (None, None)
    has_scores = is_score(metric) and seen.by_case and units.size > 0
    mean_low, mean_high = None, None
    if has_scores:
        # Wilson's interval, with as many observations as the repetitions of these cases are worth.
        means = seen.unit_means
        worth = effective_n(means, seen.values.size)
        mean_low, mean_high = wilson(float(means.mean()), worth, quantile((1 + level) / 2))
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
