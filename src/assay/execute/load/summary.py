"""From what was added up to figures: where the steady part begins, and what the answers in it took.

Intervals of rates come from the means of blocks of the steady part, as single requests follow each other too closely to be
taken for independent; those of percentiles from the ranks around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.execute.load.tally import Slice, Tally, together
from assay.model.figure import Figure
from assay.model.load import Arrivals, Distribution, Load, LoadResult, Moment
from assay.stats.changepoint import FEWEST, detect
from assay.stats.histogram import Histogram
from assay.stats.means import t_quantile
from assay.stats.verdicts import wilson

_BLOCKS = 20
_FEWEST_BLOCKS = 4
_FAR = 4.0
"""Robust deviations from the level of the second half below which a slice belongs to the rise."""
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class Window:
    begin: float
    end: float
    is_steady: bool

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def summarised(tally: Tally, load: Load) -> LoadResult:
    """The figures alone; `analysis.load` says what to make of them."""
    if tally.stopped_at is not None:
        load = until(load, tally.stopped_at)
    window = measured_window(tally, load)
    inside = tally.between(window.begin, window.end)
    seconds = max(window.seconds, 1e-9)
    ended = _ending_window(tally, load, window)
    slices = _slices(tally, ended)
    # Where the rate was meant to change, its ups and downs are no measure of what is not known about it.
    is_level = len(load.stages) < 2 and load.arrivals is not Arrivals.TRACE
    latency = inside.times["latency_from_send"].mean if inside.times["latency_from_send"].n else 0.0
    latency = latency if is_level else math.inf
    return LoadResult(
        requests_sent=sum(tally.sent.values()),
        requests_completed=tally.completed,
        errors=dict(tally.errors),
        duration=tally.last_end,
        measured_from=window.begin,
        measured_seconds=window.seconds,
        is_steady=window.is_steady,
        throughput=_rate(tally, ended, [s.completed for s in slices], latency),
        output_tokens=_rate(tally, ended, [s.output for s in slices], latency),
        error_rate=_share(inside.unanswered, inside.unanswered + inside.answered),
        goodput=_rate(tally, ended, [s.good for s in slices], latency),
        offered_rate=load.offered,
        achieved_rate=_achieved(tally, load),
        concurrency=inside.busy_seconds / seconds,
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
    )


def until(load: Load, seconds: float) -> Load:
    """The part of a load that was carried out before it was cut short.

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


def measured_window(tally: Tally, load: Load) -> Window:
    """Without what came before the load had settled; whole if its rate was meant to change."""
    end = _sending_ends(tally, load)
    if load.warmup is not None:
        begin = math.ceil(load.warmup / tally.width - 1e-9) * tally.width
        return Window(begin if begin < end else 0.0, end, True)
    if len(load.stages) > 1 or load.arrivals is Arrivals.TRACE:
        return Window(0.0, end, True)
    counts = [s.completed + s.failed for s in _slices(tally, Window(0.0, end, True))]
    counts = counts[: max(1, int(end / tally.width + 1e-9))]
    begin, is_steady = settled(counts)
    if load.is_open and load.count is None:
        begin = max(begin, min(_slices_before_answers(tally), len(counts) // 4))
    elif load.is_open:
        # That nothing comes back before an answer takes its time is no rise, and no reason to leave requests out.
        begin = max(0, begin - _slices_before_answers(tally))
    return Window(begin * tally.width, end, is_steady)


def _ending_window(tally: Tally, load: Load, window: Window) -> Window:
    """In which rates of answers are counted: where no request of a timetable is left out, it begins as much later as an answer
    takes, and ends as much later.
    """
    if load.count is None or not load.is_open:
        return window
    times = together(tally.slices.values()).times["latency"]
    later = times.quantile(0.5) if times.n else 0.0
    return Window(window.begin + later, window.end + later, window.is_steady)


def _slices_before_answers(tally: Tally) -> int:
    """A timetable sends from the first moment on, but nothing comes back before an answer takes its time."""
    times = together(tally.slices.values()).times["latency_from_send"]
    return math.ceil(times.quantile(0.5) / tally.width) if times.n else 0


def _sending_ends(tally: Tally, load: Load) -> float:
    """Afterwards only what was under way comes to its end. Of a counted load no request is left out."""
    if load.count is not None and tally.last_end > 0:
        return min(load.seconds, _counted_end(tally, load))
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


def _slices(tally: Tally, window: Window) -> list[Slice]:
    """Every slice of the window, also those in which nothing happened."""
    return [tally.slices.get(place, Slice()) for place in tally.range_of(window.begin, window.end)]


def _rate(tally: Tally, window: Window, counts: Sequence[float], latency: float) -> Figure:
    value = sum(counts) / max(window.seconds, 1e-9)
    counts = counts[: int(window.seconds / tally.width + 1e-9)]
    shortest = math.ceil(2 * latency / tally.width) if math.isfinite(latency) else len(counts)
    blocks = [sum(part) / (len(part) * tally.width) for part in _blocks(counts, shortest)]
    if len(blocks) < _FEWEST_BLOCKS:
        return Figure(value)
    error = float(np.std(blocks, ddof=1)) / math.sqrt(len(blocks))
    half = t_quantile(0.975, len(blocks) - 1) * error
    return Figure(value, max(0.0, value - half), value + half)


def _blocks(counts: Sequence[float], shortest: int) -> list[Sequence[float]]:
    """Up to twenty of equal length; what does not fill one is left out.

    Answers of a closed loop come in waves as long as the latency: a block must be longer to even them out.
    """
    size = max(1, len(counts) // _BLOCKS, shortest)
    return [counts[at : at + size] for at in range(0, len(counts) - size + 1, size)]


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
        intervals={name: _rank_interval(times, share) for name, share in _SHARES.items()},
        **{name: times.quantile(share) for name, share in _SHARES.items()},
    )


def _rank_interval(times: Histogram, share: float) -> tuple[float, float]:
    half = 1.96 * math.sqrt(share * (1 - share) / times.n)
    return times.quantile(max(0.0, share - half)), times.quantile(min(1.0, share + half))


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
    )
