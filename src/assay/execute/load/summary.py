"""From what was added up to figures: where the steady part begins, and what the answers in it took.

Intervals of percentiles come from the ranks around them; `rates` says how rates are counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.execute.load.cancelling import CANCELLED
from assay.execute.load.rates import (
    FEWEST_BLOCKS,
    LATENCIES_OF_A_LONG_WINDOW,
    MeasuredWindow,
    blocks_of,
    count_rates,
    mean_latency,
    slices_between,
)
from assay.execute.load.tally import Slice, Tally, together
from assay.execute.load.time_histograms import time_histogram
from assay.model.figure import Figure
from assay.model.load import QUANTILES, Distribution, Load, LoadResult, Moment
from assay.stats.changepoint import FEWEST, detect
from assay.stats.histogram import Histogram
from assay.stats.verdicts import wilson

_FAR = 4.0
"""Robust deviations from the level of the second half below which a slice belongs to the rise."""
_CURVE_POINTS = 200


def summarised(tally: Tally, load: Load) -> LoadResult:
    """The figures alone; `analysis.load` says what to make of them."""
    if load.trace is not None and load.trace.sessions:
        load = replace(load, seconds=max(load.seconds, _whole_slices(tally.last_due, tally.width)))
    if tally.stopped_at is not None:
        load = until(load, _known_until(tally, tally.stopped_at))
    window = measured_window(tally, load)
    inside = tally.between(window.times_from, _times_until(tally, window))
    # Gaps are known by when their answer ended, which may be after the last request was due.
    inside.times["itl"] = tally.between(window.times_from, max(window.end, tally.last_end)).times["itl"]
    rates = count_rates(tally, load, window)
    told, given, cached = (sum(column) for column in zip((0, 0, 0), *tally.usage.values(), strict=True))
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
        achieved_rate=_achieved(tally, load),
        concurrency=tally.between(window.begin, window.end).busy_seconds / window.seconds,
        times={name: distribution(times) for name, times in inside.times.items() if times.n},
        held=(),
        moments=tuple(_moments(tally)),
        curve=_curve(inside.times["latency"]),
        lag_p99=tally.lag.quantile(0.99) if tally.lag.n else 0.0,
        cpu_share=max((_cpu_share(told) for told in tally.cpu.values()), default=0.0),
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
            name: found
            for name in ("ttft", "itl", "latency")
            if (found := time_histogram(inside.times[name])) is not None
        },
        input_tokens=given if told else None,
        cached_tokens=cached if told else None,
        counted_requests=told,
        cancelled=tally.cancelled,
    )


def _times_until(tally: Tally, window: MeasuredWindow) -> float:
    """Rates end where fewer requests are in flight than were asked for; times and errors are those of every request."""
    if tally.stopped_at is not None or tally.lost:
        return window.end
    return max(window.end, _whole_slices(tally.last_due, tally.width))


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
    """To the end of the slice that it is in."""
    return (math.floor(seconds / width + 1e-9) + 1) * width


def _without_cancelled(errors: Mapping[str, int]) -> dict[str, int]:
    return {kind: number for kind, number in errors.items() if kind != CANCELLED}


def outcomes_of(tally: Tally) -> list[dict[str, int]]:
    """Of several targets: how often each outcome came up at each, at all workers together."""
    added: list[Counter[str]] = [Counter() for _ in next(iter(tally.outcomes.values()), ())]
    for told in tally.outcomes.values():
        for total, outcomes in zip(added, told, strict=True):
            total.update(outcomes)
    return [dict(total) for total in added]


def until(load: Load, seconds: float) -> Load:
    """The part of a load that was carried out before it was cut short.

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


def _achieved(tally: Tally, load: Load) -> float:
    """Requests per second that were really sent in the time in which they were due."""
    asked = load.seconds if load.count is None else min(load.seconds, _counted_end(tally, load))
    if asked <= 0:
        return 0.0
    return sum(one.begun for place, one in tally.slices.items() if place * tally.width < asked) / asked


def _counted_end(tally: Tally, load: Load) -> float:
    """A timetable is over when the one after the last would be due; a closed loop with its last answer."""
    return tally.last_due + 1 / load.offered if load.is_open and load.offered else tally.last_end


def measured_window(tally: Tally, load: Load) -> MeasuredWindow:
    """Without what came before the load had settled; whole if its rate was meant to change."""
    end = _sending_ends(tally, load)
    if load.warmup is not None:
        begin = math.ceil(load.warmup / tally.width - 1e-9) * tally.width
        begin = begin if begin < end else 0.0
        return MeasuredWindow(begin, end, True, begin)
    is_short = load.count is not None and not load.is_open and end > tally.last_due
    if is_short or not load.is_level:
        return MeasuredWindow(0.0, end, True, 0.0)
    return _open_window(tally, end) if load.is_open else _closed_window(tally, end)


def _open_window(tally: Tally, end: float) -> MeasuredWindow:
    """Nothing comes back before an answer takes its time: that is no rise, and no reason to leave requests out."""
    times = together(tally.slices.values()).times["latency_from_send"]
    before_answers = math.ceil(times.quantile(0.5) / tally.width) if times.n else 0
    ended = [one.completed + one.failed for one in slices_between(tally, 0.0, end)]
    begin, is_steady = settled(ended[before_answers : max(1, int(end / tally.width + 1e-9))])
    return MeasuredWindow(begin * tally.width, end, is_steady, begin * tally.width)


def _closed_window(tally: Tally, end: float) -> MeasuredWindow:
    """Rates count from the end of the first wave on: until then no answer had to wait for those before it, or all started alike."""
    latency = mean_latency(tally)
    size = max(1, math.ceil(2 * latency / tally.width))
    rates = [
        sum(one.by_life.answers + one.failed for one in block) / size
        for block in blocks_of(slices_between(tally, 0.0, end)[: max(1, int(end / tally.width + 1e-9))], size)
    ]
    begin, is_steady = settled(rates)
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
            return min(load.seconds, _counted_end(tally, load))
        # From the last request of a closed loop on, fewer are in flight than were asked for.
        return math.floor(tally.last_due / tally.width + 1e-9) * tally.width
    is_through = load.is_open or tally.last_end > load.seconds - tally.width
    end = load.seconds if is_through and not tally.lost else min(load.seconds, tally.last_end)
    whole = math.floor(end / tally.width + 1e-9) * tally.width
    return whole if whole > 0 else max(end, tally.width)


def settled(counts: Sequence[float]) -> tuple[int, bool]:
    """The first slice that belongs to the level on which the counts settle, and whether they stay there.

    >>> settled([0, 20, 50, 50, 51, 49, 50, 50, 50, 50, 49, 51])
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
            name: found
            for name, share in QUANTILES.items()
            if (found := _rank_interval(times, share)) is not None
        },
        **{name: times.quantile(share) for name, share in QUANTILES.items()},
    )


def _rank_interval(times: Histogram, share: float) -> tuple[float, float] | None:
    """None with so few values that one of the two ranks lies beyond them: nobody knows how much longer the longest could have been."""
    half = 1.96 * math.sqrt(share * (1 - share) / times.n)
    if share - half < 0 or share + half > 1:
        return None
    return times.quantile(share - half), times.quantile(share + half)


def _curve(times: Histogram) -> tuple[tuple[float, float], ...]:
    if not times.n:
        return ()
    values, shares = times.curve()
    keep = np.unique(np.linspace(0, len(values) - 1, min(_CURVE_POINTS, len(values))).astype(int))
    return tuple((float(values[i]), float(shares[i])) for i in keep)


def _cpu_share(told: tuple[tuple[float, float], tuple[float, float]]) -> float:
    (first, used_first), (last, used_last) = told
    return (used_last - used_first) / (last - first) if last > first else 0.0


def _moments(tally: Tally) -> list[Moment]:
    return [
        _moment(place * tally.width, tally.width, tally.slices.get(place, Slice()))
        for place in range(max(tally.slices, default=-1) + 1)
    ]


def _moment(begin: float, seconds: float, slice_: Slice) -> Moment:
    latency, ttft = slice_.times["latency"], slice_.times["ttft"]
    return Moment(
        begin,
        seconds,
        slice_.sent,
        slice_.completed,
        slice_.failed,
        slice_.output,
        slice_.busy_seconds / seconds,
        latency.quantile(0.5) if latency.n else None,
        latency.quantile(0.99) if latency.n else None,
        ttft.quantile(0.5) if ttft.n else None,
        ttft.quantile(0.99) if ttft.n else None,
        itl_p50=_quantile(slice_, "itl", 0.5),
        itl_p99=_quantile(slice_, "itl", 0.99),
        schedule_delay_p99=_quantile(slice_, "schedule_delay", 0.99),
        lag_p99=_quantile(slice_, "lag", 0.99),
        errors=_without_cancelled(slice_.errors),
        answered=slice_.answered,
        unanswered=slice_.unanswered,
    )


def _quantile(slice_: Slice, name: str, share: float) -> float | None:
    times = slice_.times[name]
    return times.quantile(share) if times.n else None
