"""Reasons to read an estimate with care: few, short, with their numbers, the most important first.

Each function below looks for one reason and returns it as a list of at most one sentence, so that callers can chain them
with `or` ("this, or else that"). Users see the sentences as warnings beside the figure. At
most four are shown for one estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from assay.analysis.estimates.few_units import describe_few_units, units_for_interval
from assay.analysis.estimates.replication import FEWEST_ROUNDS, Observed
from assay.model import Estimate
from assay.stats.modes import two_modes
from assay.stats.sample import Array
from assay.stats.trend import autocorrelation, trend
from assay.units import count as number
from assay.units import percent, show, significant

AT_MOST = 4
"""Warnings for one estimate; further ones are dropped."""
OUTLIER_SHARE = 0.05
NOTICEABLE = 0.03
"""Changes below 3 % are not worth a warning: processes of one and the same program differ by as much."""
DRIFT_P = 0.01
DRIFT_FEWEST = 10
LIKENESS = 0.3
LIKENESS_FEWEST = 20
HIGH_CV = 0.25
LOOKED_AT = 20_000
"""At most this many executions are searched for drift, modes and autocorrelation: more would show nothing else."""


def doubts_about(estimate: Estimate, seen: Observed) -> tuple[str, ...]:
    """The warnings about an estimate: all kinds for `seconds`, only too little data and drift for other metrics.

    Cases are meant to differ and stand in no order, so neither their spread nor a drift over them is a reason for a warning.
    """
    if estimate.n == 0:
        return (
            "There is no value: no successful execution reported this metric.",
            *_check_omitted_values(seen),
        )
    is_time = estimate.metric.name == "seconds"
    if is_time and not seen.by_case:
        return tuple(islice(_check_times(estimate, seen), AT_MOST))
    found = [*_check_omitted_values(seen), *_check_number_of_units(estimate, seen)]
    if not seen.by_case:
        found += _check_drift_within(estimate, seen.thin(LOOKED_AT))
    elif is_time:
        found += _check_modes(estimate, seen.thin(LOOKED_AT).values) or _check_outliers(estimate)
    return tuple(found[:AT_MOST])


def _check_times(estimate: Estimate, seen: Observed) -> Iterator[str]:
    """Drift explains likeness of neighbours, and drift or two modes explain a wide spread: each cause is named once."""
    yield from _check_omitted_values(seen)
    yield from _check_number_of_units(estimate, seen) or _check_single_process(estimate, seen)
    part = seen.thin(LOOKED_AT)
    drift = _check_drift_within(estimate, part)
    if seen.process_count >= DRIFT_FEWEST and (
        change := _drift(seen.process_medians, None, estimate.metric.unit)
    ):
        drift.append(
            f"The values drift from process to process: {change}. The machine changed during the run."
        )
    shape = _check_modes(estimate, part.values) or _check_outliers(estimate)
    yield from drift
    yield from shape
    if not drift:
        yield from _check_correlation(seen)
    cv = estimate.cv
    if not drift and not shape and cv is not None and cv > HIGH_CV and estimate.n >= 5:
        yield f"The executions vary a lot: the standard deviation is {percent(cv)} of the mean."


def _check_omitted_values(seen: Observed) -> list[str]:
    if not seen.left_out:
        return []
    total = number(seen.left_out + seen.values.size)
    return [f"{number(seen.left_out)} of {total} values are not finite numbers and were left out."]


def _check_number_of_units(estimate: Estimate, seen: Observed) -> list[str]:
    """Warn that there is no interval, and say how many units it takes and how to get them."""
    if estimate.low is not None:
        return []
    if seen.by_case and estimate.units >= units_for_interval(estimate.level):
        return [
            f"With fewer than {FEWEST_ROUNDS} rounds there is no interval. Run with --repetitions 3 or more."
        ]
    unit, units = _words(seen)
    have = f"One {unit} is" if estimate.units == 1 else f"{estimate.units} {units} are"
    return [describe_few_units(have, seen.unit, estimate.level)]


def _words(seen: Observed) -> tuple[str, str]:
    """Singular and plural of what the observations are."""
    if seen.by_case:
        return "case", "cases"
    if seen.unit != "process":
        return seen.unit, f"{seen.unit}s"
    return ("process", "processes") if seen.process_count > 1 else ("execution", "executions")


def _check_single_process(estimate: Estimate, seen: Observed) -> list[str]:
    """Warn about a single process: it says nothing about the variation between processes."""
    if seen.process_count > 1 or seen.unit != "process":
        return []
    return [
        f"All {number(estimate.n)} executions ran in one process, so the interval leaves out the variation between processes. "
        "Run with processes: 10."
    ]


def _check_outliers(estimate: Estimate) -> list[str]:
    """Warn if there are enough outliers to change the displayed median."""
    share = estimate.outliers / estimate.n
    if estimate.outliers < 3 or share <= OUTLIER_SHARE:
        return []
    without, whole = (
        show(value, estimate.metric.unit) for value in (estimate.median_without_outliers, estimate.median)
    )
    if without == whole:
        return []
    return [
        f"{percent(share)} of the executions are outliers ({number(estimate.outliers)} of {number(estimate.n)}); without "
        f"them the median is {without} instead of {whole}."
    ]


def _check_modes(estimate: Estimate, values: Array) -> list[str]:
    """Warn if the values fall into two groups, so that a single figure describes neither."""
    modes = two_modes(values)
    if modes is None or modes.high - modes.low < NOTICEABLE * abs(modes.low):
        return []
    unit = estimate.metric.unit
    return [
        f"The values have two modes: about {percent(1 - modes.share_high)} of the executions near {show(modes.low, unit)}, "
        f"{percent(modes.share_high)} near {show(modes.high, unit)}. A single figure represents neither."
    ]


def _check_drift_within(estimate: Estimate, seen: Observed) -> list[str]:
    if estimate.n < DRIFT_FEWEST:
        return []
    change = _drift(seen.values, seen, estimate.metric.unit)
    place = "each process" if seen.process_count > 1 else "the process"
    return [f"The values drift within {place}: {change}. Use more warm-up."] if change else []


def _drift(values: Array, within: Observed | None, unit: str) -> str:
    """The drift in words, by a rank test for a trend; empty if it is not significant or smaller than 3 %."""
    found = trend(values, None if within is None else within.processes)
    if found is None or not found.p < DRIFT_P or not found.first:
        return ""
    change = found.last / found.first - 1
    if not math.isfinite(change) or abs(change) < NOTICEABLE:
        return ""
    side = "above" if found.last > found.first else "below"
    levels = f"{show(found.first, unit)} to {show(found.last, unit)}"
    p = f"p = {significant(found.p, 2)}" if found.p >= 0.0001 else "p < 0.0001"
    return f"the last third is {percent(abs(change))} {side} the first ({levels}, {p})"


def _check_correlation(seen: Observed) -> list[str]:
    """Autocorrelation within a lone process. With several processes the interval is over processes, and it does no harm.

    2.6 ÷ √n is the 99 % limit of a correlation that is there by chance.
    """
    n = seen.values.size
    if seen.process_count > 1 or n < LIKENESS_FEWEST:
        return []
    likeness = autocorrelation(seen.values[:LOOKED_AT])
    if likeness < max(LIKENESS, 2.6 / math.sqrt(n)):
        return []
    return [
        f"Consecutive executions are correlated (lag-1 correlation {significant(likeness, 2)}): the interval is too narrow."
    ]
