"""What workers report, added up: slices of time, each with counts and histograms.

The engine calls `Tally.add` for every chunk of every worker, and `summary` reads the result. Memory stays bounded however
long a load lasts: a slice is a quarter of a second at first, and when there are too many, neighbours are merged and slices
are twice as long. All times are seconds since the start of the load.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.load.answer_text import Reservoir
from assay.load.cancellation import CANCELLED
from assay.load.failures import failures_in
from assay.load.histogram_bounds import SHORTEST
from assay.load.histogram_bounds import Bounds as Bounds
from assay.load.worker_report import COLUMNS, OK, Chunk
from assay.model.error_details import gather, merge, reason_of
from assay.model.load import UNFINISHED
from assay.model.stress import ErrorDetail
from assay.stats.histogram import NOTHING, Histogram, histogram, merge_histograms, zeros

Values = NDArray[np.float64]
MOST_WAITING = 500_000
"""Numbers that wait to be sorted into slices: 4 MB."""
MOST_SLICES = 128
_SMALL_WAVE = 4
NOT_COUNTED = (*UNFINISHED, CANCELLED)
"""Kinds of requests whose outcome is unknown: they are not failures of the server."""
TIMES = ("ttft", "latency", "ttft_from_send", "latency_from_send", "tpot", "itl", "schedule_delay", "lag")


@dataclass(slots=True)
class Yield:
    """What a server delivered: whole answers, those of them that met every objective, and output tokens."""

    answers: float = 0.0
    good: float = 0.0
    tokens: float = 0.0

    def add(self, other: Yield) -> None:
        self.answers += other.answers
        self.good += other.good
        self.tokens += other.tokens


@dataclass(slots=True)
class Slice:
    """Counts are of what ended in it, times of what was due in it."""

    by_life: Yield = field(default_factory=Yield)
    """Every answer counted by the share of its life that lies in this slice, from when it was due until the next may follow."""
    by_due: Yield = field(default_factory=Yield)
    """Answers to the requests that were due in it, whenever they came."""
    completed: int = 0
    sent: int = 0
    """Requests that were due in it: how many there were, and how many were answered and failed, whenever that was."""
    answered: int = 0
    unanswered: int = 0
    begun: int = 0
    """How many were really sent in it."""
    good: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    output: float = 0.0
    """Tokens, spread evenly from the first to the last of their answer."""
    busy_seconds: float = 0.0
    """Time that requests were in flight in it, added up."""
    times: dict[str, Histogram] = field(default_factory=lambda: dict.fromkeys(TIMES, NOTHING))

    @property
    def failed(self) -> int:
        return sum(number for kind, number in self.errors.items() if kind not in NOT_COUNTED)


@dataclass(slots=True)
class WorkerShare:
    """What one worker did of a load."""

    completed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    lag: Histogram = NOTHING
    schedule_delay: Histogram = NOTHING

    def add_times(self, times: Mapping[str, Values], is_ok: NDArray[np.bool_]) -> None:
        """Add the times of the requests that were answered."""
        self.completed += int(is_ok.sum())
        self.lag = merge_histograms([self.lag, histogram(times["lag"][is_ok])])
        self.schedule_delay = merge_histograms(
            [self.schedule_delay, histogram(times["schedule_delay"][is_ok])]
        )


@dataclass(slots=True)
class LoadProgress:
    """The last that was heard, for those who look on."""

    seconds: float = 0.0
    in_flight: int = 0
    sent: int = 0
    completed: int = 0
    failed: int = 0


class Tally:
    """Adds up the chunks of all workers of one load.

    A request is counted in several ways, because each question needs another one. `completed`, `errors` and `good` of a slice
    count what ended in it: what a live view shows. `sent`, `answered`, `by_due` and all times are of what was due in it,
    whenever that ended: a server that falls behind cannot hide slow answers in later slices. `by_life` spreads every answer
    over the time it took: the rate of a closed loop, whose answers come in waves (see `rates`).

    `add` takes counters over at once but only queues the rows of requests. `_settle` sorts them into slices when many are
    waiting or when a property needs them, because that takes the processor from workers that have to be on time. Facts such
    as `sent` are totals of a worker since its start, so the latest of each worker replaces the one before.
    """

    def __init__(
        self,
        bounds: Bounds = Bounds(),  # noqa: B008  (frozen)
        most_slices: int = MOST_SLICES,
        width: float = SHORTEST,
        think_seconds: float = 0.0,
    ) -> None:
        self.bounds = bounds
        self._most_slices = most_slices
        self._width = width
        self._think_seconds = think_seconds
        self._slices: dict[int, Slice] = {}
        self._errors: Counter[str] = Counter()
        self.completed = 0
        self.cancelled = 0
        self.sent: dict[int, int] = {}
        self.in_flight: dict[int, int] = {}
        self.cpu: dict[int, tuple[tuple[float, float], tuple[float, float]]] = {}
        """By worker: when it first reported its CPU time and how much that was, and the same for the last report."""
        self.done: set[int] = set()
        self.lost = 0
        """Workers that ended before they had reported all."""
        self.stopped_at: float | None = None
        """When the load was cut short, if it was."""
        self._first_wave: list[Values] = []
        """For the requests that were due at the very start: when they were sent, their numbers, and when they were answered."""
        self.unfinished_from = math.inf
        """When the first of the requests with an unknown outcome was due."""
        self._shares: dict[int, WorkerShare] = {}
        self.last_end = 0.0
        self.last_due = 0.0
        self.reconnects: dict[int, int] = {}
        self.coalesced: dict[int, int] = {}
        self.censored: dict[int, int] = {}
        """Answers of each worker whose first token cannot be timed."""
        self.counts_pieces = False
        self.is_simulated = False
        self.outcomes: dict[int, list[dict[str, int]]] = {}
        """For each worker, with several targets: how often each outcome occurred at each."""
        self.usage: dict[int, tuple[int, int, int]] = {}
        """For each worker: answers that reported their input tokens, the sum of those, and how many of them were cached."""
        self._kept: Reservoir[tuple[int, str]] = Reservoir()
        self._tls_failures: dict[int, Mapping[str, int]] = {}
        self._failures: tuple[ErrorDetail, ...] = ()
        self.began: float | None = None
        """When the load began, on the monotonic clock."""
        self.seconds = 0.0
        self._ended = 0
        self._waiting: list[tuple[int, Chunk]] = []
        self._waiting_values = 0

    def add(self, worker: int, chunk: Chunk) -> None:
        """Take over a chunk. Counts that a live view shows are brought up to date here, without numpy; all else waits."""
        facts = chunk.facts
        self.seconds = max(self.seconds, float(str(facts["at"])))
        self.sent[worker] = int(str(facts["sent"]))
        self.in_flight[worker] = int(str(facts["in_flight"]))
        self.reconnects[worker] = int(str(facts["reconnects"]))
        self.coalesced[worker] = int(str(facts["coalesced"]))
        self.censored[worker] = int(str(facts.get("censored", 0)))
        self.counts_pieces = self.counts_pieces or bool(facts["counted"])
        self.is_simulated = self.is_simulated or bool(facts["simulated"])
        if isinstance(outcomes := facts.get("outcomes"), list) and outcomes:
            self.outcomes[worker] = outcomes
        if isinstance(usage := facts.get("usage"), list):
            self.usage[worker] = (usage[0], usage[1], usage[2])
        cpu = (float(str(facts["at"])), float(str(facts["cpu"])))
        self.cpu[worker] = (self.cpu.get(worker, (cpu, cpu))[0], cpu)
        if facts["is_last"]:
            self.done.add(worker)
        if isinstance(tls_failures := facts.get("tls_failures"), dict):
            self._tls_failures[worker] = tls_failures
        if failures := failures_in(facts):
            self._failures = merge([self._failures, gather(failures)])
        answers = facts["answers"]
        if isinstance(answers, list):
            for number, text in answers:
                self._kept.add((int(number), str(text)), len(text))
        self.completed += chunk.columns["kind"].count(OK)
        if isinstance(kinds := facts["kinds"], list) and CANCELLED in kinds:
            self.cancelled += chunk.columns["kind"].count(kinds.index(CANCELLED))
        self._ended += len(chunk)
        self.last_end = max(self.last_end, max(chunk.columns["end"], default=0.0))
        self.last_due = max(self.last_due, max(chunk.columns["due"], default=0.0))
        self._waiting.append((worker, chunk))
        self._waiting_values += len(chunk) * len(COLUMNS) + len(chunk.gaps)
        if self._waiting_values > MOST_WAITING:
            self._settle()

    def _settle(self) -> None:
        """Sort the waiting rows into slices: seldom, as it takes the processor from workers that have to be on time."""
        waiting, self._waiting, self._waiting_values = self._waiting, [], 0
        for worker in sorted({worker for worker, _ in waiting}):
            self._fold(worker, [chunk for sender, chunk in waiting if sender == worker and len(chunk)])
        gaps: defaultdict[int, list[Histogram]] = defaultdict(list)
        for _, chunk in waiting:
            if chunk.gaps or chunk.zero_gaps:
                # They are those of the answers in this chunk.
                at = max(chunk.columns["end"], default=float(str(chunk.facts["at"])))
                here = gaps[max(0, int(at / self._width))]
                here += [histogram(np.array(chunk.gaps)), zeros(chunk.zero_gaps)]
        for place, parts in gaps.items():
            slice_ = self._slices.setdefault(place, Slice())
            slice_.times["itl"] = merge_histograms([slice_.times["itl"], *parts])
        self._shorten()

    def _settle_waiting(self) -> None:
        if self._waiting:
            self._settle()

    @property
    def slices(self) -> dict[int, Slice]:
        self._settle_waiting()
        return self._slices

    @property
    def width(self) -> float:
        """Seconds of a slice."""
        self._settle_waiting()
        return self._width

    @property
    def errors(self) -> Counter[str]:
        self._settle_waiting()
        return self._errors

    def requests_queued_at_start(self) -> bool:
        """Whether of the requests that were all sent at the start, those sent first were answered first."""
        self._settle_waiting()
        waves = np.concatenate(self._first_wave, axis=1) if self._first_wave else np.empty((3, 0))
        begun, numbers, ends = waves
        if len(ends) < _SMALL_WAVE or ends.max() < 1.5 * ends.min():
            return False
        least = 0.7 if len(ends) >= 2 * _SMALL_WAVE else 0.9
        # By their order: how far apart they were sent says nothing.
        order = np.lexsort((numbers, begun))
        return bool(np.corrcoef(np.arange(len(ends)), ends[order])[0, 1] > least)

    @property
    def lag(self) -> Histogram:
        return merge_histograms([share.lag for share in self.shares.values()])

    @property
    def shares(self) -> dict[int, WorkerShare]:
        """Return the share of each worker that has reported a request."""
        self._settle_waiting()
        return self._shares

    @property
    def error_reasons(self) -> dict[str, dict[str, int]]:
        """Why requests failed, by the kind of error, where more is known than the kind: `{"tls": {"self-signed certificate": 4}}`."""
        reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for counts in self._tls_failures.values():
            reasons["tls"].update(counts)
        for failure in self._failures:
            reasons[failure.kind][reason_of(failure)] += failure.count
        return {kind: dict(counts) for kind, counts in reasons.items() if counts}

    @property
    def answers(self) -> list[tuple[int, str]]:
        """Return the answers to be scored, each with the number of its request."""
        return list(self._kept)

    def end(self, workers: int, is_stopped: bool, died: Collection[int] = ()) -> None:
        """No more chunks will come; requests that a worker which did not finish had in flight are counted as well.

        A worker that did not finish is lost, unless the load was stopped; with `died`, it was stopped because of those workers,
        and counts up to what was last heard of them: afterwards it was not the load that was asked for.
        """
        for worker in set(range(workers)) - self.done:
            is_lost = not is_stopped or worker in died
            if left := self.in_flight.get(worker, 0):
                kind = "worker_lost" if is_lost else "cut_off"
                self.errors[kind] += left
                self.shares.setdefault(worker, WorkerShare()).errors[kind] += left
                self._ended += left
                place = max(0, int(self.seconds / self.width))
                self.slices.setdefault(place, Slice()).errors[kind] += left
            self.in_flight[worker] = 0
            self.lost += is_lost
        if is_stopped:
            last_heard = [self.cpu[worker][1][0] if worker in self.cpu else 0.0 for worker in died]
            self.stopped_at = min([self.seconds, *last_heard])

    def _fold(self, worker: int, chunks: Sequence[Chunk]) -> None:
        """Sort the requests of one worker's chunks into slices.

        The last chunk has all kinds of errors of the earlier ones, because a worker adds kinds and removes none. Counts go
        to the slice in which a request ended, times and `sent` to the slice in which it was due.
        """
        if not chunks:
            return
        kinds = chunks[-1].facts["kinds"]
        assert isinstance(kinds, list)
        columns = {
            name: np.concatenate([np.frombuffer(chunk.columns[name]) for chunk in chunks]) for name in COLUMNS
        }
        is_ok = columns["kind"] == OK
        # What was cut off, or given up on purpose, is neither an answer nor a failure of the server.
        is_cut = np.isin(columns["kind"], [number for number, kind in enumerate(kinds) if kind in UNFINISHED])
        is_cancelled = np.isin(
            columns["kind"], [number for number, kind in enumerate(kinds) if kind == CANCELLED]
        )
        has_failed = ~is_ok & ~is_cut & ~is_cancelled
        self.unfinished_from = float(np.min(columns["due"][is_cut], initial=self.unfinished_from))
        # A closed loop sends its first requests all at once; how they come back shows whether the server queues them.
        self._first_wave.append(
            np.stack([columns[name] for name in ("begun", "number", "end")])[
                :, is_ok & (columns["due"] < 1e-6)
            ]
        )
        ended = (columns["end"] / self._width).astype(int)
        due = np.maximum(columns["due"] / self._width, 0).astype(int)
        begun = np.maximum(columns["begun"] / self._width, 0).astype(int)
        times = times_of(columns)
        share = self._shares.setdefault(worker, WorkerShare())
        share.add_times(times, is_ok)
        good = is_ok & _keep_to(times, self.bounds)
        self._spread_over_time(columns, is_ok, good)
        for place, rows in _by_place(ended):
            here = self._slices.setdefault(place, Slice())
            here.completed += int(is_ok[rows].sum())
            here.good += int(good[rows].sum())
            numbers = columns["kind"][rows[~is_ok[rows]]]
            for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
                for errors in (here.errors, self._errors, share.errors):
                    errors[kinds[int(number)]] += int(count)
        for place, rows in _by_place(begun):
            self._slices.setdefault(place, Slice()).begun += rows.size
        for place, rows in _by_place(due):
            here = self._slices.setdefault(place, Slice())
            here.sent += rows.size
            fine = rows[is_ok[rows]]
            here.answered += fine.size
            here.unanswered += int(has_failed[rows].sum())
            here.by_due.add(
                Yield(fine.size, int(good[rows].sum()), float(np.nansum(columns["output"][fine])))
            )
            for name, values in times.items():
                here.times[name] = merge_histograms([here.times[name], histogram(values[fine])])

    def _spread_over_time(
        self, columns: dict[str, Values], is_ok: NDArray[np.bool_], good: NDArray[np.bool_]
    ) -> None:
        """Counts a request in every slice that it reaches into, in proportion to the time it spends there."""
        # Every request is busy time, also one that failed: it occupied a place in flight.
        begun, end = columns["begun"], columns["end"]
        for here, seconds in self._spread(begun, end, end - begun):
            here.busy_seconds += seconds
        if not is_ok.any():
            return
        due, end, good = columns["due"][is_ok], end[is_ok], good[is_ok]
        tokens, first = np.nan_to_num(columns["output"][is_ok]), columns["first"][is_ok]
        for here, amount in self._spread(np.where(np.isnan(first), end, first), end, tokens):
            here.output += amount
        next_due = end + self._think_seconds
        for here, amount in self._spread(due, next_due, np.ones_like(due)):
            here.by_life.answers += amount
        for here, amount in self._spread(due, next_due, good.astype(float)):
            here.by_life.good += amount
        for here, amount in self._spread(due, next_due, tokens):
            here.by_life.tokens += amount

    def _spread(self, begin: Values, end: Values, amounts: Values) -> Iterator[tuple[Slice, float]]:
        first, shares = spread(begin, end, amounts, self._width)
        for place, share in enumerate(shares.tolist(), first):
            if share > 0:
                yield self._slices.setdefault(place, Slice()), share

    def _shorten(self) -> None:
        """Merge neighbours until there are few enough slices. They begin at 0, so slice n becomes slice n // 2."""
        while self._slices and max(self._slices) >= self._most_slices:
            merged: dict[int, Slice] = {}
            for place, slice_ in self._slices.items():
                half = place // 2
                merged[half] = together([merged[half], slice_]) if half in merged else slice_
            self._slices, self._width = merged, self._width * 2

    def read_progress(self) -> LoadProgress:
        return LoadProgress(
            self.seconds,
            sum(self.in_flight.values()),
            sum(self.sent.values()),
            self.completed,
            self._ended - self.completed - self.cancelled,
        )

    def between(self, begin: float, end: float) -> Slice:
        """Whole slices from the one in which `begin` lies up to `end`, put together."""
        return together(self.slices[place] for place in self.places(begin, end))

    def places(self, begin: float, end: float) -> list[int]:
        wanted = self.range_of(begin, end)
        return [place for place in sorted(self.slices) if place in wanted]

    def range_of(self, begin: float, end: float) -> range:
        first = int(begin / self.width + 1e-9)
        return range(first, max(math.ceil(end / self.width - 1e-9), first + 1))


def together(slices: Iterable[Slice]) -> Slice:
    """Several slices as one: counts are added, histograms merged."""
    parts = list(slices)
    by_life, by_due = Yield(), Yield()
    for part in parts:
        by_life.add(part.by_life)
        by_due.add(part.by_due)
    return Slice(
        by_life=by_life,
        by_due=by_due,
        completed=sum(part.completed for part in parts),
        sent=sum(part.sent for part in parts),
        answered=sum(part.answered for part in parts),
        unanswered=sum(part.unanswered for part in parts),
        begun=sum(part.begun for part in parts),
        good=sum(part.good for part in parts),
        errors=sum((part.errors for part in parts), Counter[str]()),
        output=sum(part.output for part in parts),
        busy_seconds=sum(part.busy_seconds for part in parts),
        times={name: merge_histograms([part.times[name] for part in parts]) for name in TIMES},
    )


def spread(begin: Values, end: Values, amounts: Values, width: float) -> tuple[int, Values]:
    """Spreads each amount evenly from its begin to its end over slices of a width: the first slice, and what falls into each.

    >>> spread(np.array([0.5]), np.array([2.5]), np.array([4.0]), 1.0)
    (0, array([1., 2., 1.]))
    """
    # In four steps without a loop over requests: those within one slice, then of the others what falls into their first
    # slice, into their last, and into all slices in between.
    begin = np.maximum(begin, 0.0)
    end = np.maximum(end, begin)
    first, last = (begin / width).astype(int), (end / width).astype(int)
    origin = int(first.min())
    first, last = first - origin, last - origin
    size = int(last.max()) + 1
    is_short = first == last
    shares = np.bincount(first[is_short], amounts[is_short], minlength=size).astype(float)
    if not is_short.all():
        begin, end, first, last = (column[~is_short] for column in (begin, end, first, last))
        rates = amounts[~is_short] / (end - begin)
        shares += np.bincount(first, rates * ((origin + first + 1) * width - begin), minlength=size)
        shares += np.bincount(last, rates * (end - (origin + last) * width), minlength=size)
        # In between, a request fills whole slices: its rate is switched on in one and off in another.
        whole = np.bincount(first + 1, rates, minlength=size) - np.bincount(last, rates, minlength=size)
        shares += np.cumsum(whole) * width
    return origin, shares


def _by_place(places: NDArray[np.int_]) -> Iterator[tuple[int, NDArray[np.int_]]]:
    """Yield each place that occurs, with the rows in which it does."""
    order = np.argsort(places, kind="stable")
    edges = np.flatnonzero(np.diff(places[order])) + 1
    for rows in np.split(order, edges):
        yield int(places[rows[0]]), rows


def in_time(chunk: Chunk, bounds: Bounds) -> NDArray[np.bool_]:
    """Which of the requests of a chunk count as good: answered, and within the bounds."""
    columns = {name: np.frombuffer(chunk.columns[name]) for name in COLUMNS}
    is_ok: NDArray[np.bool_] = columns["kind"] == OK
    return is_ok & _keep_to(times_of(columns), bounds)


def _keep_to(times: dict[str, Values], bounds: Bounds) -> NDArray[np.bool_]:
    # What has no value, as the first token of an answer in one piece, breaks no bound. Where other answers have one, it is not
    # known whether this one kept to its bound, and only what is known to be good counts as good.
    is_unknown = np.isnan(times["ttft"])
    is_late = (times["ttft"] >= bounds.ttft) | (
        is_unknown & (bounds.ttft < math.inf) & (not is_unknown.all())
    )
    return ~(is_late | (times["tpot"] >= bounds.tpot) | (times["latency"] >= bounds.latency))


def times_of(columns: dict[str, Values]) -> dict[str, Values]:
    """The times of each request in seconds, nan where one is not known.

    `ttft` and `latency` count from when the request was due, so that the wait for a free connection is included (no
    coordinated omission); those `_from_send` count from when it was sent.
    """
    due, sent, first, end = (columns[name] for name in ("due", "sent", "first", "end"))
    with np.errstate(divide="ignore", invalid="ignore"):
        tpot = np.where(columns["output"] > 1, (end - first) / (columns["output"] - 1), np.nan)
    return {
        "ttft": first - due,
        "latency": end - due,
        "ttft_from_send": first - sent,
        "latency_from_send": end - sent,
        "tpot": tpot,
        "schedule_delay": np.maximum(sent - due, 0.0),
        "lag": columns["lag"],
    }
