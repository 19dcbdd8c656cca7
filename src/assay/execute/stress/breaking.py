"""Where a load broke what it was put on: the first breach of the objective, or of 5 % errors, that lasted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.execute.load.tally import Slice, Tally, together
from assay.model.load import Load, LoadResult, Objective
from assay.model.stress import Breach
from assay.stats.histogram import Histogram
from assay.units import percent, seconds, significant

MOST_ERRORS = 0.05
_OWN = ("no_descriptors", "no_ports")
_CUT = "cut_off"
_PARTS = 6
"""Of the time that a breach has to last: each of them has to be bad."""
_BUSY = 0.9
_LATE = 0.005
_LATE_SHARE = 0.2
_FULL = 0.9
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_RATES = ("throughput", "goodput", "tokens")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the time that a breach has to last."""

    begin: float
    seconds: float
    slice: Slice
    expected: float
    """Requests that were due in it; 0 where no timetable says."""

    @property
    def errors(self) -> dict[str, int]:
        return {kind: n for kind, n in self.slice.errors.items() if kind != _CUT and n}

    @property
    def is_empty(self) -> bool:
        return not (self.slice.sent or self.slice.completed or self.errors or self.expected >= 1)


Pauses = Sequence[tuple[float, float]]
"""From when to when this machine did not let us work, in seconds after the start."""


def first_breach(
    tally: Tally, load: Load, objectives: Sequence[Objective], sustain: float, pauses: Pauses = ()
) -> Breach | None:
    """`sustain` is how many seconds a breach has to last to count; of a shorter load, all of it.

    One that began in a pause of our own, after which all that was late was asked at once, is our doing until it ends: it is
    told only where there is no other.
    """
    looked_at = [window for window in windows(tally, load, sustain / _PARTS) if not window.is_empty]
    lasting = min(sustain, sum(window.seconds for window in looked_at))
    bad: list[tuple[Window, str, str]] = []
    ours: Breach | None = None
    for window in looked_at:
        found = broken_by(window, objectives)
        bad = [*bad, (window, *found)] if found else []
        if not bad or sum(one.seconds for one, _, _ in bad) < lasting - 1e-9:
            continue
        first, cause, why = bad[0]
        breach = Breach(first.begin, *load_at(load, first.begin), cause, why)
        if cause == "errors" or not any(_is_in(one, pauses) for one, _, _ in bad):
            return breach
        ours = ours or our_own(breach)
    return ours


def _is_in(window: Window, pauses: Pauses) -> bool:
    return any(begin < window.begin + window.seconds and end > window.begin for begin, end in pauses)


def our_own(breach: Breach) -> Breach:
    why = f"this machine could not keep up; {breach.why}"
    return Breach(breach.at, breach.load, breach.unit, "generator", why)


def windows(tally: Tally, load: Load, length: float) -> Iterator[Window]:
    """Of whole slices; what does not fill one at the end is left out."""
    size = max(1, round(length / tally.width))
    last = max(1, int(min(load.seconds, max(tally.last_end, tally.width)) / tally.width))
    for first in range(0, max(1, last - size + 1), size):
        places = [place for place in range(first, first + size) if place in tally.slices]
        begin, whole = first * tally.width, size * tally.width
        slices = together([tally.slices[place] for place in places])
        yield Window(begin, whole, slices, expected_between(load, begin, begin + whole))


def expected_between(load: Load, begin: float, end: float) -> float:
    """Requests due between two moments of a timetable of constant rates or ramps.

    >>> from assay.model.load import Arrivals
    >>> expected_between(Load(Arrivals.CONSTANT, stages=((2.0, 10.0, 10.0), (1.0, 0.0, 4.0))), 1.0, 3.0)
    12.0
    """
    total, at = 0.0, 0.0
    for length, first, last in load.stages if load.is_open else ():
        low, high = max(begin, at), min(end, at + length)
        if high > low:
            middle = ((low + high) / 2 - at) / length
            total += (high - low) * (first + (last - first) * middle)
        at += length
    return total


def load_at(load: Load, moment: float) -> tuple[float, str]:
    """How much was asked at that time, and of what."""
    if not load.is_open:
        return float(load.concurrency or 1), "at a time"
    at = 0.0
    for length, first, last in load.stages:
        if moment < at + length:
            return first + (last - first) * (moment - at) / length, "requests/s"
        at += length
    return load.offered or 0.0, "requests/s"


def broken_by(window: Window, objectives: Sequence[Objective]) -> tuple[str, str] | None:
    """Cause, and in words with its number; None where all is well."""
    return _by_errors(window, objectives) or _by_figures(window, objectives) or _by_silence(window)


def _by_errors(window: Window, objectives: Sequence[Objective]) -> tuple[str, str] | None:
    failed = sum(window.errors.values())
    ended = failed + window.slice.completed
    limit = min([MOST_ERRORS, *(one.limit for one in objectives if one.metric == "error_rate")])
    if not ended or failed / ended <= limit:
        return None
    kind = max(window.errors, key=lambda one: window.errors[one])
    cause = "generator" if kind in _OWN else "errors"
    return cause, f"{percent(failed / ended)} of the requests failed, most of them as {kind}"


def _by_figures(window: Window, objectives: Sequence[Objective]) -> tuple[str, str] | None:
    for objective in objectives:
        figure = _figure(objective, window)
        if figure is not None and not objective.is_met_by(figure):
            shown = significant(figure) if objective.metric in _RATES else seconds(figure)
            return "latency", f"{objective.text} was not kept: it was {shown}"
    return None


def _figure(objective: Objective, window: Window) -> float | None:
    slice_ = window.slice
    if objective.metric in _RATES:
        counts = {"throughput": slice_.completed, "goodput": slice_.good, "tokens": slice_.output}
        return counts[objective.metric] / window.seconds
    times: Histogram | None = slice_.times.get(objective.metric)
    if times is None or not times.n or objective.statistic is None:
        return None
    if objective.statistic in _SHARES:
        return times.quantile(_SHARES[objective.statistic])
    return times.mean if objective.statistic == "mean" else times.most


def _by_silence(window: Window) -> tuple[str, str] | None:
    """More was due than was ever answered."""
    silent = window.expected - window.slice.times["latency"].n - sum(window.errors.values())
    if window.expected < 1 or silent < max(1.5, MOST_ERRORS * window.expected):
        return None
    share = percent(silent / window.expected)
    return "saturation", f"{share} of the requests that were due then had no answer when the load ended"


def breach_of(
    tally: Tally,
    load: Load,
    objectives: Sequence[Objective],
    sustain: float,
    result: LoadResult,
    pauses: Pauses = (),
) -> Breach | None:
    """The first breach, laid at our own door where we could not keep up and that explains it."""
    breach = first_breach(tally, load, objectives, sustain, pauses)
    if breach is None or breach.cause in ("errors", "generator") or not is_our_fault(result):
        return breach
    if result.cpu_share <= _BUSY:
        theirs = first_breach(tally, load, forgiving(objectives, result.lag_p99), sustain, pauses)
        if theirs is not None and (theirs.cause != "saturation" or _is_full(load, result)):
            return theirs
    return our_own(breach)


def forgiving(objectives: Sequence[Objective], lag: float) -> tuple[Objective, ...]:
    """As much later as we may have sent and read; rates are left out, as whoever asks too late gets too little."""
    return tuple(
        replace(one, limit=one.limit + 2 * lag)
        for one in objectives
        if one.is_upper and one.metric not in _RATES
    )


def _is_full(load: Load, result: LoadResult) -> bool:
    """Whether all places were taken nearly all of the time: then no more could be asked, however quick we are."""
    return load.concurrency is not None and result.concurrency >= _FULL * load.concurrency


def is_our_fault(result: LoadResult) -> bool:
    """A full core, or answers that lay unread for a good part of the times measured."""
    times = result.times.get("latency_from_send")
    is_late = result.lag_p99 > _LATE and times is not None and result.lag_p99 > _LATE_SHARE * times.p95
    return result.cpu_share > _BUSY or is_late
