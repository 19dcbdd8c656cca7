"""Turns the tally of a load into its figures: where the steady part begins, and how long the answers in it took.

Intervals of percentiles come from the ranks around them (order statistics, by the normal approximation of the binomial
distribution); `rates` says how rates are counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.load.cancellation import CANCELLED
from assay.load.histogram_bounds import SHORTEST
from assay.load.rates import (
    FEWEST_BLOCKS,
    LATENCIES_OF_A_LONG_WINDOW,
    MeasuredWindow,
    blocks_of,
    count_rates,
    mean_latency,
    slices_between,
)
from assay.load.tally import Slice, Tally, together
from assay.model.figure import Figure
from assay.model.load import QUANTILES, Distribution, Load, LoadResult, Moment, TimeHistogram
from assay.stats.changepoint import FEWEST, detect
from assay.stats.histogram import Histogram
from assay.stats.verdicts import wilson

_FAR = 4.0
"""Robust deviations from the level of the second half below which a slice belongs to the rise."""
_CURVE_POINTS = 200
_BINS = 40
_WIDE = 20.0
"""Times whose longest 0.1 % begin at more than this many times the shortest 1 % get a logarithmic scale."""
_SHORTEST = 1e-6


def summarise_load(tally: Tally, load: Load) -> LoadResult:
    """Compute the figures of a load; `analysis.load` says what to make of them."""
    if load.trace is not None and load.trace.sessions:
        load = replace(load, seconds=max(load.seconds, _whole_slices(tally.last_due, tally.width)))
    # From here on a load that was cut short is one that was meant to be as short as that.
    if tally.stopped_at is not None:
        load = until(load, _known_until(tally, tally.stopped_at))
    window = find_measured_window(tally, load)
    # Rates end where fewer requests are in flight than asked for; times and errors also count slow answers (coordinated omission).
    times_until = window.end
    if tally.stopped_at is None and not tally.lost:
        times_until = max(window.end, _whole_slices(tally.last_due, tally.width))
    inside = tally.between(window.times_from, times_until)
    # Gaps are known by when their answer ended, which may be after the last request was due.
    inside.times["itl"] = tally.between(window.times_from, max(window.end, tally.last_end)).times["itl"]
    rates = count_rates(tally, load, window)
    counted, input_tokens, cached = (
        sum(column) for column in zip((0, 0, 0), *tally.usage.values(), strict=True)
    )
    return LoadResult(
        requests_sent=sum(tally.sent.values()),
        requests_completed=tally.completed,
        errors=_without_cancelled(tally.errors),
        duration=tally.last_end,
        measured_from=window.begin,
        measured_seconds=window.seconds,
        is_steady=window.is_steady,
        throughput=rates.answers,
        output_tokens=rates.tokens,
        error_rate=_share(inside.unanswered, inside.unanswered + inside.answered),
        goodput=rates.good,
        offered_rate=load.offered,
        achieved_rate=_compute_achieved_rate(tally, load),
        concurrency=tally.between(window.begin, window.end).busy_seconds / window.seconds,
        times={name: distribution(times) for name, times in inside.times.items() if times.n},
        held=(),
        moments=_moments(tally),
        curve=_curve(inside.times["latency"]),
        lag_p99=tally.lag.quantile(0.99) if tally.lag.n else 0.0,
        cpu_share=busiest_cpu_share(tally, tally.cpu),
        is_valid=True,
        is_saturated=False,
        is_simulated=tally.is_simulated,
        counts_pieces=tally.counts_pieces,
        warnings=(),
        workers_lost=tally.lost,
        is_cut=tally.stopped_at is not None,
        latency_growth=rates.latency_growth,
        ttft_censored=sum(tally.censored.values()),
        error_reasons=tally.error_reasons,
        histograms={
            name: bins
            for name in ("ttft", "itl", "latency")
            if (bins := _bin_times(inside.times[name])) is not None
        },
        input_tokens=input_tokens if counted else None,
        cached_tokens=cached if counted else None,
        counted_requests=counted,
        cancelled=tally.cancelled,
    )


def _known_until(tally: Tally, stopped_at: float) -> float:
    """What was in flight when a load was cut short is not counted, nor is the time in which it was."""
    times = together(tally.slices.values()).times["latency_from_send"]
    if not times.n:
        return stopped_at
    # A request that hung for long is no reason to leave out all that was answered meanwhile.
    since = min(stopped_at, max(tally.unfinished_from, stopped_at - times.quantile(0.99)))
    # Requests are known by slices: part of one would count all that was sent in it against less time.
    whole = math.floor(since / tally.width + 1e-9) * tally.width
    return whole if whole > 0 else stopped_at


def _whole_slices(seconds: float, width: float) -> float:
    """Round the seconds up to the end of the slice that they are in."""
    return (math.floor(seconds / width + 1e-9) + 1) * width


def _without_cancelled(errors: Mapping[str, int]) -> dict[str, int]:
    return {kind: number for kind, number in errors.items() if kind != CANCELLED}


def outcomes_of(tally: Tally) -> list[dict[str, int]]:
    """Count how often each outcome came up at each of several targets, over all workers."""
    added: list[Counter[str]] = [Counter() for _ in next(iter(tally.outcomes.values()), ())]
    for by_target in tally.outcomes.values():
        for total, outcomes in zip(added, by_target, strict=True):
            total.update(outcomes)
    return [dict(total) for total in added]


def until(load: Load, seconds: float) -> Load:
    """The part of a load that was sent before it was interrupted.

    >>> from assay.model.load import Arrivals
    >>> until(Load(Arrivals.CONSTANT, stages=((10, 0, 20), (10, 20, 20)), seconds=20), 5).stages
    ((5.0, 0, 10.0),)
    """
    stages, begin = [], 0.0
    for length, first, last in load.stages:
        part = min(length, seconds - begin)
        if part > 0:
            stages.append((part, first, first + (last - first) * part / length))
        begin += length
    trace = None if load.trace is None else load.trace.before(math.nextafter(seconds, math.inf))
    return replace(load, seconds=min(load.seconds, seconds), stages=tuple(stages), trace=trace)


def _compute_achieved_rate(tally: Tally, load: Load) -> float:
    """Requests per second that were really sent in the time in which they were due."""
    until = load.seconds if load.count is None else min(load.seconds, _find_end_of_count(tally, load))
    if until <= 0:
        return 0.0
    return sum(part.begun for place, part in tally.slices.items() if place * tally.width < until) / until


def _find_end_of_count(tally: Tally, load: Load) -> float:
    """An open loop is over when the request after the last would be due; a closed loop with its last answer."""
    return tally.last_due + 1 / load.offered if load.is_open and load.offered else tally.last_end


def find_measured_window(tally: Tally, load: Load) -> MeasuredWindow:
    """Find the measured window of the load: without what came before the load had settled.

    It is the whole load if its rate was meant to change, since then there is no steady state to wait for.
    """
    end = _sending_ends(tally, load)
    if load.warmup is not None:
        begin = math.ceil(load.warmup / tally.width - 1e-9) * tally.width
        begin = begin if begin < end else 0.0
        return MeasuredWindow(begin, end, True, begin)
    is_short = load.count is not None and not load.is_open and end > tally.last_due
    if is_short or not load.is_level:
        return MeasuredWindow(0.0, end, True, 0.0)
    return _open_window(tally, end) if load.is_open else _find_closed_window(tally, end)


def _open_window(tally: Tally, end: float) -> MeasuredWindow:
    """Nothing comes back before an answer takes its time: that is no rise, and no reason to leave requests out.

    Nor is anything left out of a load of less than a second: slow first answers are results there, and no rise to a level.
    """
    if end < FEWEST_BLOCKS * SHORTEST:
        return MeasuredWindow(0.0, end, True, 0.0)
    times = together(tally.slices.values()).times["latency_from_send"]
    before_answers = math.ceil(times.quantile(0.5) / tally.width) if times.n else 0
    ended = [time_slice.completed + time_slice.failed for time_slice in slices_between(tally, 0.0, end)]
    begin, is_steady = find_steady_start(ended[before_answers : max(1, int(end / tally.width + 1e-9))])
    return MeasuredWindow(begin * tally.width, end, is_steady, begin * tally.width)


def _find_closed_window(tally: Tally, end: float) -> MeasuredWindow:
    """Rates count from the end of the first wave on: until then no answer had to wait for those before it, or all started alike."""
    latency = mean_latency(tally)
    size = max(1, math.ceil(2 * latency / tally.width))
    rates = [
        sum(time_slice.by_life.answers + time_slice.failed for time_slice in block) / size
        for block in blocks_of(slices_between(tally, 0.0, end)[: max(1, int(end / tally.width + 1e-9))], size)
    ]
    begin, is_steady = find_steady_start(rates)
    rise = begin * size * tally.width
    first_wave = math.ceil(min(latency, end / 2) / tally.width - 1e-9) * tally.width
    rates_from = max(rise, first_wave)
    if rates_from >= end:
        return MeasuredWindow(0.0, end, is_steady, 0.0)
    is_long = end >= LATENCIES_OF_A_LONG_WINDOW * latency
    return MeasuredWindow(rates_from, end, is_steady, rates_from if is_long else rise)


def _sending_ends(tally: Tally, load: Load) -> float:
    """Afterwards only what was under way comes to its end."""
    if load.count is not None and tally.last_end > 0:
        if load.is_open or tally.last_due < FEWEST_BLOCKS * tally.width:
            return min(load.seconds, _find_end_of_count(tally, load))
        # From the last request of a closed loop on, fewer are in flight than were asked for.
        return math.floor(tally.last_due / tally.width + 1e-9) * tally.width
    is_through = load.is_open or tally.last_end > load.seconds - tally.width
    end = load.seconds if is_through and not tally.lost else min(load.seconds, tally.last_end)
    whole = math.floor(end / tally.width + 1e-9) * tally.width
    return whole if whole > 0 else max(end, tally.width)


def find_steady_start(counts: Sequence[float]) -> tuple[int, bool]:
    """The first slice that belongs to the level on which the counts settle, and whether they stay there.

    >>> find_steady_start([0, 20, 50, 50, 51, 49, 50, 50, 50, 50, 49, 51])
    (2, True)
    """
    if len(counts) < 4:
        return 0, True
    values = np.asarray(counts, dtype=float)
    later = values[len(values) // 2 :]
    level = float(np.median(later))
    spread = max(
        1.4826 * float(np.median(np.abs(later - level))), math.sqrt(max(level, 1.0)) * 0.5, 0.02 * level
    )
    begin = 0
    while begin < len(values) // 2 and values[begin] < level - _FAR * spread:
        begin += 1
    if len(values) - begin < FEWEST:
        return begin, True
    found = detect(values[begin:].tolist())
    early = [point.index for point in found.change_points if point.index <= (len(values) - begin) // 2]
    moved = begin + (early[-1] if early else 0)
    late = len(found.change_points) > len(early) or (found.drift is not None and not early)
    return moved, not late


def _share(part: int, whole: int) -> Figure:
    if not whole:
        return Figure(0.0)
    low, high = wilson(part / whole, whole)
    return Figure(part / whole, low if part else 0.0, high if part < whole else 1.0)


def distribution(times: Histogram) -> Distribution:
    return Distribution(
        n=times.n,
        mean=times.mean,
        max=times.most,
        intervals={
            name: interval
            for name, share in QUANTILES.items()
            if (interval := _rank_interval(times, share)) is not None
        },
        **{name: times.quantile(share) for name, share in QUANTILES.items()},
    )


def _rank_interval(times: Histogram, share: float) -> tuple[float, float] | None:
    """The 95 % interval of a percentile: the values at the ranks share ± 1.96 √(share (1 - share) / n).

    None with so few values that one of the two ranks lies beyond them: it is unknown how much longer the longest could have
    been.
    """
    half = 1.96 * math.sqrt(share * (1 - share) / times.n)
    if share - half < 0 or share + half > 1:
        return None
    return times.quantile(share - half), times.quantile(share + half)


def _curve(times: Histogram) -> tuple[tuple[float, float], ...]:
    """The cumulative distribution as points of a chart: a time, and the share of answers that took no longer."""
    if not times.n:
        return ()
    values, shares = times.curve()
    keep = np.unique(np.linspace(0, len(values) - 1, min(_CURVE_POINTS, len(values))).astype(int))
    return tuple((float(values[i]), float(shares[i])) for i in keep)


def _bin_times(times: Histogram) -> TimeHistogram | None:
    """Few bins, as a chart shows them: 40 from the shortest time to the P99.9; None where nothing was measured.

    The rest of the tail is counted beyond the last edge: one time of a minute would squeeze all others into the first bin.
    """
    if not times.n:
        return None
    low, high = times.least, times.quantile(0.999)
    short = max(times.quantile(0.01), _SHORTEST)
    is_log = high > _WIDE * short
    if is_log:
        low = max(low, _SHORTEST)
        edges = np.geomspace(min(low, high / 2), high, _BINS + 1)
    else:
        # At least a sixth of the value wide: bins narrower than 0.4 % would show the buckets that times were counted in.
        middle = (low + high) / 2
        half = max((high - low) / 2, middle / 12, _SHORTEST)
        if not math.isclose(half, (high - low) / 2):
            low, high = max(0.0, middle - half), middle + half
        edges = np.linspace(low, high, _BINS + 1)
    counts, beyond = times.count_in_bins(edges)
    return TimeHistogram(tuple(edges.tolist()), tuple(counts.tolist()), beyond, is_log)


def busiest_cpu_share(tally: Tally, workers: Iterable[int]) -> float:
    """CPU time ÷ time of the worker that used most of its core."""
    readings = [tally.cpu[worker] for worker in workers if worker in tally.cpu]
    return max(
        (
            (used_last - used_first) / (last - first)
            for (first, used_first), (last, used_last) in readings
            if last > first
        ),
        default=0.0,
    )


def _moments(tally: Tally) -> tuple[Moment, ...]:
    """The load over time, one moment for each slice, also for those in which nothing happened."""
    moments = []
    for place in range(max(tally.slices, default=-1) + 1):
        slice_ = tally.slices.get(place, Slice())
        moments.append(
            Moment(
                place * tally.width,
                tally.width,
                slice_.sent,
                slice_.completed,
                slice_.failed,
                slice_.output,
                slice_.busy_seconds / tally.width,
                _quantile(slice_, "latency", 0.5),
                _quantile(slice_, "latency", 0.99),
                _quantile(slice_, "ttft", 0.5),
                _quantile(slice_, "ttft", 0.99),
                itl_p50=_quantile(slice_, "itl", 0.5),
                itl_p99=_quantile(slice_, "itl", 0.99),
                schedule_delay_p99=_quantile(slice_, "schedule_delay", 0.99),
                lag_p99=_quantile(slice_, "lag", 0.99),
                errors=_without_cancelled(slice_.errors),
                answered=slice_.answered,
                unanswered=slice_.unanswered,
            )
        )
    return tuple(moments)


def _quantile(slice_: Slice, name: str, share: float) -> float | None:
    times = slice_.times[name]
    return times.quantile(share) if times.n else None
