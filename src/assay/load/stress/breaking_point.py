"""Finds the breaking point of a load: the first lasting breach of the objective, or of 5 % errors.

The load is cut into windows, a sixth of the time that a breach has to last (`windows`). Each is judged by itself (`broken_by`);
as many bad windows in a row as make up that time are a breach. Errors are also judged over longer spans, because a few
requests a second say little in one window (`_errors_throughout`). `breach_of` then attributes the breach to
the agent, to the load generator if this machine could not keep up, or to neither if the base rate was no better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from assay.load.tally import Slice, Tally, together
from assay.model.bottleneck import FOR_STRESS, MOST_ERRORS, OWN_LIMITS, is_busy, is_generator_limit
from assay.model.load import QUANTILES, UNFINISHED, Distribution, Load, LoadResult, Objective
from assay.model.stress import Breach, CalmErrors
from assay.stats.histogram import Histogram
from assay.stats.resilience import is_as_in_calm
from assay.stats.verdicts import wilson
from assay.units import count, percent, seconds, significant

_PARTS = 6
"""Parts of the time that a breach has to last: each of them has to be bad."""
_LONGER = 3
"""Times a span is doubled where it holds too few requests to be certain of an error rate."""
_HANDFUL = 5
_FULL = 0.9
_SLOWED = 2.0
"""Times the calm latency: an agent that answers sooner has not slowed down, whatever waits before it."""
_RATES = ("throughput", "goodput", "tokens")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the time that a breach has to last."""

    begin: float
    seconds: float
    slice: Slice
    expected: float
    """Requests that were due in it; 0 where no schedule says."""

    @property
    def errors(self) -> dict[str, int]:
        return {kind: n for kind, n in self.slice.errors.items() if kind not in UNFINISHED and n}

    @property
    def is_empty(self) -> bool:
        return not (self.slice.sent or self.slice.completed or self.errors or self.expected >= 1)


Pauses = Sequence[tuple[float, float]]
"""From when to when this machine did not let us work, in seconds after the start."""


@dataclass(frozen=True, slots=True)
class Calm:
    """Latency and errors at the base rate. Anything no worse than this is not caused by the load."""

    latency: Distribution | None = None
    errors: CalmErrors = field(default_factory=CalmErrors)
    unmet: frozenset[str] = frozenset()
    """Objectives, by their text, that were not kept at the base rate either."""

    def has_as_many_errors(self, failed: int, ended: int) -> bool:
        return is_as_in_calm(failed, ended, self.errors.failed, self.errors.ended)


UNKNOWN = Calm()


def first_breach(
    tally: Tally,
    load: Load,
    objectives: Sequence[Objective],
    sustain: float,
    pauses: Pauses = (),
    calm: Calm = UNKNOWN,
) -> Breach | None:
    """Find where the load first broke an objective for good.

    A breach has to last for `sustain` seconds, or for all of a shorter load, without one good window in
    between. A breach by lateness that began in a pause of this machine, after which everything late was
    asked at once, is our own doing; it is returned only if there is no other. What also happens at the
    base rate is returned last of all.
    """
    looked_at = [window for window in windows(tally, load, sustain / _PARTS) if not window.is_empty]
    lasting = min(sustain, sum(window.seconds for window in looked_at))
    bad: list[tuple[Window, str, str]] = []
    own_breach: Breach | None = None
    as_in_calm: Breach | None = None
    for place, window in enumerate(looked_at):
        found = broken_by(window, objectives, calm)
        # One good window ends a run of bad ones: a breach is what lasts without a break.
        bad = [*bad, (window, *found)] if found else []
        if bad and sum(faulty.seconds for faulty, _, _ in bad) >= lasting - 1e-9:
            first, cause, why = bad[0]
            breach = Breach(first.begin, *load_at(load, first.begin), cause, why)
            # Errors are the agent's whenever they come; lateness in a pause of this machine is not.
            if cause == "errors" or not any(_is_in(faulty, pauses) for faulty, _, _ in bad):
                return breach
            own_breach = own_breach or our_own(breach)
        failing = None
        if window.errors:
            longest = looked_at[max(0, place + 1 - _PARTS * 2**_LONGER) : place + 1]
            failing = _errors_throughout(longest, load, objectives, lasting, calm)
        if failing is not None and not failing.is_in_calm:
            return failing
        as_in_calm = as_in_calm or failing
    return own_breach or as_in_calm or _unmet_in_calm(looked_at, load, objectives, calm)


def _errors_throughout(
    parts: Sequence[Window], load: Load, objectives: Sequence[Objective], lasting: float, calm: Calm
) -> Breach | None:
    """Errors in the last `lasting` seconds, or twice or four times as long where requests are few, whose share is too high by
    more than chance and which are not those of a moment."""
    span = lasting
    for _ in range(_LONGER):
        run = _last(parts, span)
        if run is None:
            return None
        failed = sum(sum(window.errors.values()) for window in run)
        ended = failed + sum(window.slice.completed for window in run)
        if _is_too_much(failed, ended, _error_limit(objectives)) and _is_spread(run):
            cause, why = _describe_errors(run, failed, ended)
            is_in_calm = cause == "errors" and calm.has_as_many_errors(failed, ended)
            return Breach(run[0].begin, *load_at(load, run[0].begin), cause, why, is_in_calm)
        span *= 2
    return None


def _is_too_much(failed: int, ended: int, limit: float) -> bool:
    """Above the limit, by a handful of failures at least, and significantly above half of it: a load is looked at in many places."""
    if failed < min(_HANDFUL, ended) or not ended:
        return False
    return failed / ended > limit and wilson(failed / ended, ended)[0] > limit / 2


def _last(parts: Sequence[Window], span: float) -> Sequence[Window] | None:
    """The last of them that last so long together; None where all together do not."""
    length = 0.0
    for place in range(len(parts) - 1, -1, -1):
        length += parts[place].seconds
        if length >= span - 1e-9:
            return parts[place:]
    return None


def _is_spread(run: Sequence[Window]) -> bool:
    """Say whether errors are spread over the run of windows.

    They must occur in both halves and in at least half of the windows: a single burst is no breach.
    """
    failing = [bool(window.errors) for window in run]
    half = len(run) // 2
    return len(run) == 1 or (any(failing[:half]) and any(failing[half:]) and 2 * sum(failing) >= len(run))


def _unmet_in_calm(
    parts: Sequence[Window], load: Load, objectives: Sequence[Objective], calm: Calm
) -> Breach | None:
    """An objective that is not kept even at the base rate, and under load neither."""
    unmet = [objective for objective in objectives if objective.text in calm.unmet]
    for window in parts if unmet else ():
        if (found := _find_breach_by_figures(window, unmet)) is not None:
            why = f"{found[1]}, which was not met at the base rate either"
            return Breach(window.begin, *load_at(load, window.begin), found[0], why, is_in_calm=True)
    return None


def _is_in(window: Window, pauses: Pauses) -> bool:
    return any(begin < window.begin + window.seconds and end > window.begin for begin, end in pauses)


def our_own(breach: Breach) -> Breach:
    why = f"this machine could not keep up; {breach.why}"
    return Breach(breach.at, breach.load, breach.unit, "generator", why)


def windows(tally: Tally, load: Load, length: float) -> Iterator[Window]:
    """Cut the load into windows of whole slices; what does not fill a window at the end is left out."""
    # A long load has wider slices than it began with, and a window is never narrower than one.
    size = max(1, round(length / tally.width))
    last = max(1, int(min(load.seconds, max(tally.last_end, tally.width)) / tally.width))
    for first in range(0, max(1, last - size + 1), size):
        places = [place for place in range(first, first + size) if place in tally.slices]
        begin, whole = first * tally.width, size * tally.width
        slices = together([tally.slices[place] for place in places])
        yield Window(begin, whole, slices, compute_due_between(load, begin, begin + whole))


def compute_due_between(load: Load, begin: float, end: float) -> float:
    """Requests due between two moments of a schedule of constant rates or ramps.

    >>> from assay.model.load import Arrivals
    >>> compute_due_between(Load(Arrivals.CONSTANT, stages=((2.0, 10.0, 10.0), (1.0, 0.0, 4.0))), 1.0, 3.0)
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


def broken_by(
    window: Window, objectives: Sequence[Objective], calm: Calm = UNKNOWN
) -> tuple[str, str] | None:
    """Cause, and in words with its number; None where all is well, or no worse than at the base rate."""
    kept = [objective for objective in objectives if objective.text not in calm.unmet]
    # A window holds too few requests to hold its errors against those at the base rate.
    errors = None if calm.errors.failed else _find_breach_by_errors(window, objectives)
    return errors or _find_breach_by_figures(window, kept) or _find_breach_by_silence(window)


def _find_breach_by_errors(window: Window, objectives: Sequence[Objective]) -> tuple[str, str] | None:
    failed = sum(window.errors.values())
    ended = failed + window.slice.completed
    if not ended or failed / ended <= _error_limit(objectives):
        return None
    return _describe_errors([window], failed, ended)


def _error_limit(objectives: Sequence[Objective]) -> float:
    return min(
        [MOST_ERRORS, *(objective.limit for objective in objectives if objective.metric == "error_rate")]
    )


def _describe_errors(run: Sequence[Window], failed: int, ended: int) -> tuple[str, str]:
    kinds: Counter[str] = Counter()
    for window in run:
        kinds.update(window.errors)
    kind = max(kinds, key=lambda error: kinds[error])
    cause = "generator" if kind in OWN_LIMITS else "errors"
    return cause, f"{percent(failed / ended)} of the requests failed (mostly {kind})"


def _find_breach_by_figures(window: Window, objectives: Sequence[Objective]) -> tuple[str, str] | None:
    for objective in objectives:
        figure = _figure(objective, window)
        if figure is not None and not objective.is_met_by(figure):
            value = significant(figure) if objective.metric in _RATES else seconds(figure)
            return "latency", f"{objective.text} was not met: {value}"
    return None


def _figure(objective: Objective, window: Window) -> float | None:
    """What the window has of the objective's metric; None where nothing was measured of it."""
    slice_ = window.slice
    if objective.metric in _RATES:
        counts = {"throughput": slice_.completed, "goodput": slice_.good, "tokens": slice_.output}
        return counts[objective.metric] / window.seconds
    times: Histogram | None = slice_.times.get(objective.metric)
    if times is None or not times.n or objective.statistic is None:
        return None
    if objective.statistic in QUANTILES:
        return times.quantile(QUANTILES[objective.statistic])
    return times.mean if objective.statistic == "mean" else times.most


def _find_breach_by_silence(window: Window) -> tuple[str, str] | None:
    """More was due than was ever answered; of a closed loop, more was sent."""
    due = window.expected or window.slice.sent
    silent = due - window.slice.times["latency"].n - sum(window.errors.values())
    if due < 1 or silent < max(min(1.5, due), MOST_ERRORS * due):
        return None
    share = percent(silent / due)
    return "saturation", f"{share} of the requests scheduled then were still unanswered when the load ended"


def breach_of(
    tally: Tally,
    load: Load,
    objectives: Sequence[Objective],
    sustain: float,
    result: LoadResult,
    pauses: Pauses = (),
    calm: Calm = UNKNOWN,
) -> Breach | None:
    """Return the first breach, attributed to the load generator if its own limits explain it, with the base-rate figure for comparison."""
    breach = first_breach(tally, load, objectives, sustain, pauses, calm)
    if breach is None or breach.is_in_calm or breach.cause == "generator":
        return breach
    if breach.cause == "errors":
        return _beside_calm(breach, calm)
    if is_bound_by_us(load, result, calm):
        why = (
            f"all {load.concurrency} requests that the scenario allows were in flight, and the agent answered them "
            f"about as fast as at the base rate; {breach.why}"
        )
        return replace(breach, cause="in_flight", why=why)
    if not is_generator_limit(result, FOR_STRESS):
        return _beside_calm(breach, calm)
    # Where we were only late now and then, what is broken even with that lateness forgiven is the agent's after all.
    if not is_busy(result):
        server_breach = first_breach(
            tally, load, forgiving(objectives, result.lag_p99), sustain, pauses, calm
        )
        if server_breach is not None and (server_breach.cause != "saturation" or _is_full(load, result)):
            return _beside_calm(server_breach, calm)
    return our_own(breach)


def _beside_calm(breach: Breach, calm: Calm) -> Breach:
    """Add the figure at the base rate to the reason of a breach, so that readers see the difference."""
    if breach.cause == "errors" and calm.errors.ended:
        comparison = f"at the base rate {count(calm.errors.failed)} of {count(calm.errors.ended)}"
    elif breach.cause in ("latency", "saturation") and calm.latency is not None:
        comparison = f"at the base rate the P95 of latency is {seconds(calm.latency.p95)}"
    else:
        return breach
    return replace(breach, why=f"{breach.why}; {comparison}")


def is_bound_by_us(load: Load, result: LoadResult, calm: Calm) -> bool:
    """Whether all that we allow in flight was, while each request, failed or answered, took hardly longer than at the base rate: more
    was never asked."""
    ended = result.requests_completed + sum(result.errors.values())
    if not load.is_open or calm.latency is None or not ended or not _is_full(load, result):
        return False
    # Little's law: requests in flight ÷ requests per second is how long each took, the failed ones included.
    latency = result.concurrency * result.duration / ended
    return latency <= _SLOWED * calm.latency.mean


def forgiving(objectives: Sequence[Objective], lag: float) -> tuple[Objective, ...]:
    """Loosen the objectives by as much as this machine may have sent and read late.

    Limits on rates stay as they are: a load generator that asks too late gets fewer answers anyway.
    """
    return tuple(
        replace(objective, limit=objective.limit + 2 * lag)
        for objective in objectives
        if objective.is_upper and objective.metric not in _RATES
    )


def _is_full(load: Load, result: LoadResult) -> bool:
    """Whether all places were taken nearly all of the time: then no more could be asked, however quick we are."""
    return load.concurrency is not None and result.concurrency >= _FULL * load.concurrency
