"""Reasons to read an estimate with care: few, short, with their numbers, the weightiest first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice

from assay.analysis.replication import Observed
from assay.analysis.rounds import FEWEST_ROUNDS
from assay.model import Estimate
from assay.stats.modes import two_modes
from assay.stats.order import median_ranks
from assay.stats.sample import Array
from assay.stats.trend import autocorrelation, trend
from assay.units import count as number
from assay.units import percent, show, significant

AT_MOST = 4
OUTLIER_SHARE = 0.05
NOTICEABLE = 0.03
"""Changes below this are not worth a word: processes of one and the same program differ by as much."""
DRIFT_P = 0.01
DRIFT_FEWEST = 10
LIKENESS = 0.3
LIKENESS_FEWEST = 20
HIGH_CV = 0.25
LOOKED_AT = 20_000
"""Executions among which drift, modes and likeness are looked for: more would show nothing that these do not."""


def doubts_about(estimate: Estimate, seen: Observed) -> tuple[str, ...]:
    """The full set for `seconds`; for other metrics only what is about too little data and drift."""
    if estimate.n == 0:
        return ("There is no value: no execution was ok and gave this metric.", *_left_out(seen))
    if seen.by_case:
        found = _about_cases(estimate, seen)
    else:
        is_time = estimate.metric.name == "seconds"
        found = _about_time(estimate, seen) if is_time else _about_other(estimate, seen)
    return tuple(islice(found, AT_MOST))


def _about_cases(estimate: Estimate, seen: Observed) -> Iterator[str]:
    """Cases are meant to differ and stand in no order: neither their spread nor a drift over them is doubtful."""
    yield from _left_out(seen)
    yield from _too_few(estimate, seen)
    if estimate.metric.name == "seconds":
        yield from _two_modes(estimate, seen.thinned(LOOKED_AT).values) or _outliers(estimate)


def _about_time(estimate: Estimate, seen: Observed) -> Iterator[str]:
    yield from _left_out(seen)
    yield from _too_few(estimate, seen) or _one_process(estimate, seen)
    part = seen.thinned(LOOKED_AT)
    drift = [*_drift_within(estimate, part), *_drift_between(estimate, seen)]
    shape = _two_modes(estimate, part.values) or _outliers(estimate)
    yield from drift
    yield from shape
    if not drift:
        yield from _likeness(seen)
    if not drift and not shape:
        yield from _spread(estimate)


def _about_other(estimate: Estimate, seen: Observed) -> Iterator[str]:
    yield from _left_out(seen)
    yield from _too_few(estimate, seen)
    yield from _drift_within(estimate, seen.thinned(LOOKED_AT))


def _left_out(seen: Observed) -> list[str]:
    if not seen.left_out:
        return []
    total = number(seen.left_out + seen.values.size)
    return [f"{number(seen.left_out)} of {total} values are not finite numbers and were left out."]


def _too_few(estimate: Estimate, seen: Observed) -> list[str]:
    if estimate.low is not None:
        return []
    enough = next(n for n in count(1) if median_ranks(n, estimate.level))
    if seen.by_case and estimate.units >= enough:
        return [
            f"With fewer than {FEWEST_ROUNDS} rounds there is no interval. Run with --repetitions 3 or more."
        ]
    unit, units = _words(seen)
    have = f"One {unit} is" if estimate.units == 1 else f"{estimate.units} {units} are"
    advice = {"case": "Use more cases.", "load": "Repeat it: --repetitions 6."}.get(
        seen.unit, "Run with processes: 10."
    )
    return [f"{have} too few for an interval, which takes {enough}. {advice}"]


def _words(seen: Observed) -> tuple[str, str]:
    """What the observations are, one and several of them."""
    if seen.by_case:
        return "case", "cases"
    if seen.unit == "load":
        return "load", "loads"
    return ("process", "processes") if seen.process_count > 1 else ("execution", "executions")


def _one_process(estimate: Estimate, seen: Observed) -> list[str]:
    if seen.process_count > 1 or seen.unit == "load":
        return []
    return [
        f"All {number(estimate.n)} executions ran in one process, so the interval does not hold for other processes. "
        "Run with processes: 10."
    ]


def _outliers(estimate: Estimate) -> list[str]:
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


def _two_modes(estimate: Estimate, values: Array) -> list[str]:
    modes = two_modes(values)
    if modes is None or modes.high - modes.low < NOTICEABLE * abs(modes.low):
        return []
    unit = estimate.metric.unit
    return [
        f"There are two modes: about {percent(1 - modes.share_high)} of the executions near {show(modes.low, unit)}, "
        f"{percent(modes.share_high)} near {show(modes.high, unit)}. A single figure stands for neither."
    ]


def _drift_within(estimate: Estimate, seen: Observed) -> list[str]:
    if estimate.n < DRIFT_FEWEST:
        return []
    told = _drift(seen.values, seen, estimate.metric.unit)
    place = "each process" if seen.process_count > 1 else "the process"
    return [f"It drifts within {place}: {told}. Use more warm-up."] if told else []


def _drift_between(estimate: Estimate, seen: Observed) -> list[str]:
    if seen.process_count < DRIFT_FEWEST:
        return []
    told = _drift(seen.process_medians, None, estimate.metric.unit)
    return [f"It drifts from process to process: {told}. The machine changed meanwhile."] if told else []


def _drift(values: Array, within: Observed | None, unit: str) -> str:
    """The drift in words; empty when there is none that chance would not make, or none worth a word."""
    found = trend(values, None if within is None else within.processes)
    if found is None or not found.p < DRIFT_P or not found.first:
        return ""
    change = found.last / found.first - 1
    if not math.isfinite(change) or abs(change) < NOTICEABLE:
        return ""
    side = "above" if found.last > found.first else "below"
    values_told = f"{show(found.first, unit)} to {show(found.last, unit)}"
    return f"the last third is {percent(abs(change))} {side} the first ({values_told}, {_p(found.p)})"


def _p(p: float) -> str:
    return f"p = {significant(p, 2)}" if p >= 0.0001 else "p < 0.0001"


def _likeness(seen: Observed) -> list[str]:
    """Only a lone process: otherwise the interval is over processes, and executions may be as alike as they like."""
    n = seen.values.size
    if seen.process_count > 1 or n < LIKENESS_FEWEST:
        return []
    likeness = autocorrelation(seen.values[:LOOKED_AT])
    if likeness < max(LIKENESS, 2.6 / math.sqrt(n)):
        return []
    return [
        f"Neighbouring executions are alike (lag-1 correlation {significant(likeness, 2)}): the interval is too narrow."
    ]


def _spread(estimate: Estimate) -> list[str]:
    cv = estimate.cv
    if cv is None or cv <= HIGH_CV or estimate.n < 5:
        return []
    return [f"The executions differ much: the standard deviation is {percent(cv)} of the mean."]
