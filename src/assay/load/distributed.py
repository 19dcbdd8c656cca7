"""One load from several load generators, each at a site of its own (`assay load --generators N`).

All workers at all sites together are the workers of one load: each goes through the same schedule and takes its turns, so that
the union of what they send is exactly what one generator would send. Here their reports are added up, as `engine` does with
those of its own workers; only how they arrive is different. Times in reports count from the start of the load, which every
site is told in its own clock, so they mean the same everywhere.

A load that loses a generator is stopped at once: what is left of it would be a smaller load than was asked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from assay.errors import PlanError
from assay.http.request import is_loopback
from assay.load.clock_offset import ClockOffset, ClockTimes, measure_clock_offset
from assay.load.engine import (
    LOOK_AROUND,
    SECONDS_OF_SILENCE,
    Watch,
    WatchChunk,
    order_of_worker,
    slice_width,
    timetable_of,
)
from assay.load.generator import LoadGenerator
from assay.load.histogram_bounds import Bounds
from assay.load.options import wrong_option
from assay.load.priorities import BackgroundPriority
from assay.load.summary import busiest_cpu_share
from assay.load.tally import Tally, WorkerShare
from assay.load.worker_report import Unpacker
from assay.model.load import Load, LoadResult
from assay.model.load_generator import GeneratorResult
from assay.plugin.executor import GeneratorSite, SiteLost, SpreadsGenerators
from assay.stats.histogram import merge_histograms
from assay.units import seconds as format_seconds

if TYPE_CHECKING:
    from assay.load.build import PreparedLoad

_START_AHEAD = 0.25
"""Seconds between the last measured clock and the first request, and as much more as messages take to all sites."""
_PART_BYTES = 64 * 2**10
"""Maximum bytes of an order in one message: small enough that a cluster passes it on in memory."""
_SECONDS_TO_ANSWER = 60.0
_SECONDS_TO_START = 60.0
_SITE_SILENCE = 30.0
"""A site that does not answer for so long is lost."""
_GRACE = 5.0
"""For the last reports of a load that was stopped."""
_FAILURES = (SiteLost, TimeoutError, OSError)


@contextmanager
def spread_generators(
    prepared: PreparedLoad,
    executor: object,
    name: str,
    generators: int | None,
    settings: Mapping[str, object],
) -> Iterator[PreparedLoad]:
    """The same load, to be sent by generators at the sites of an executor; None means one at each of them.

    `settings` are those of the executor.
    """
    if not isinstance(executor, SpreadsGenerators):
        raise wrong_option("--executor", f"'{name}' cannot run load generators.")
    with executor.spread_generators(generators, LoadGenerator, settings) as sites:
        _check_loopback(sites, prepared)
        _check_reach(sites, prepared)
        yield replace(prepared, sites=tuple(sites))


def _addresses(prepared: PreparedLoad) -> list[Any]:
    places: Any = prepared.order["places"]
    return [place["address"] for place in places]


def _check_loopback(sites: Sequence[GeneratorSite], prepared: PreparedLoad) -> None:
    """127.0.0.1 is another server on every machine."""
    hosts = [address[0] for _, address in _addresses(prepared) if isinstance(address, list)]
    own = next((host for host in hosts if is_loopback(host)), None)
    here = LoadGenerator().identify_loopback()
    if own is None:
        return
    for site, fingerprint in zip(sites, _ask_all(sites, "identify_loopback"), strict=True):
        if fingerprint != here:
            raise PlanError(
                f"The target is at {own}, which is another server on '{site.node}'. Use an address that all generators can reach."
            )


def _check_reach(sites: Sequence[GeneratorSite], prepared: PreparedLoad) -> None:
    """Refuse a load that only some generators can send; if none can reach the target, the report says so."""
    reasons = dict(zip(sites, _ask_all(sites, "find_unreachable", _addresses(prepared)), strict=True))
    apart = {site.node: reason for site, reason in reasons.items() if reason is not None}
    if apart and len(apart) < len(sites):
        generators = ", ".join(f"'{node}' ({reason})" for node, reason in apart.items())
        raise PlanError(
            f"The target cannot be reached from {generators}, although the other generators reach it. Nothing was sent."
        )


def _ask_all(sites: Sequence[GeneratorSite], method: str, *arguments: object) -> list[Any]:
    """The answers of all sites, asked at the same time. One that does not answer before a load begins is a reason not to begin."""
    futures = [site.request(method, *arguments) for site in sites]
    return [_await_answer(site, future) for site, future in zip(sites, futures, strict=True)]


def _await_answer(site: GeneratorSite, future: Future[Any]) -> Any:
    try:
        return future.result(_SECONDS_TO_ANSWER)
    except _FAILURES as error:
        raise PlanError(f"The load generator on '{site.node}' could not start: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"it has not answered for {format_seconds(_SECONDS_TO_ANSWER)}."
    return str(error) or type(error).__name__


class DistributedLoad:
    """The generators of one load, from their orders to their results: `generate_load`, then `add_results`.

    Worker n of all is at site n modulo their number, so that neighbours in the schedule are sent by different sites. A load
    with fewer virtual users than sites leaves the last sites out.
    """

    def __init__(self, sites: Sequence[GeneratorSite], load: Load) -> None:
        self._load = load
        self._sites = sites[: load.concurrency or len(sites)]
        most = (load.concurrency or load.workers * len(self._sites)) // len(self._sites)
        self._workers = min(load.workers, most) * len(self._sites)
        self._clocks: list[ClockOffset] = []
        self._late_starts = [0.0] * len(self._sites)
        self._open = set(range(len(self._sites)))
        """Sites, by their place, of which more is to come."""
        self._lost: dict[int, str] = {}
        self._heard_at = [math.inf] * self._workers

    def generate_load(
        self,
        order: dict[str, Any],
        watch: Watch,
        *,
        bounds: Bounds,
        is_stopped: Callable[[], bool],
        watch_chunk: WatchChunk | None,
        once_begun: Callable[[], object],
    ) -> Tally:
        """Carry out a load as `engine.generate_load` does, but end it when a generator is lost."""
        tally = Tally(bounds, width=slice_width(self._load), think_seconds=self._load.think_seconds)
        try:
            self._hand_out({**order, **timetable_of(self._load)})
            if self._wait_until_ready(is_stopped):
                tally.began = self._begin()
                with BackgroundPriority() as priority:
                    with priority.idle():
                        once_begun()
                    self._collect(tally, watch, is_stopped, watch_chunk)
        finally:
            wait([site.request("close") for site in self._sites], timeout=_GRACE)
        return tally

    def _hand_out(self, order: dict[str, Any]) -> None:
        futures = []
        for worker in range(self._workers):
            site = self._site_of(worker)
            parts = order_of_worker(order, self._load.trace, worker, self._workers)
            whole = memoryview(b"".join(parts))
            for at in range(0, len(whole), _PART_BYTES):
                part = bytes(whole[at : at + _PART_BYTES])
                futures.append((site, site.request("add_order", worker, part)))
        for site, future in futures:
            _await_answer(site, future)
        _ask_all(self._sites, "start")

    def _site_of(self, worker: int) -> GeneratorSite:
        return self._sites[worker % len(self._sites)]

    def _workers_at(self, place: int) -> range:
        return range(place, self._workers, len(self._sites))

    def _wait_until_ready(self, is_stopped: Callable[[], bool]) -> bool:
        """Whether all workers are ready; not if the load was stopped before."""
        deadline = time.monotonic() + _SECONDS_TO_START
        while not is_stopped():
            replies = _ask_all(self._sites, "poll")
            for site, reply in zip(self._sites, replies, strict=True):
                if reply["ended"] or time.monotonic() > deadline:
                    raise PlanError(
                        f"A worker of the load generator on '{site.node}' could not start; see the logs of Ray on that machine."
                    )
            if all(reply["is_ready"] for reply in replies):
                return True
            time.sleep(LOOK_AROUND / 10)
        return False

    def _begin(self) -> float:
        """Agree on a moment, and tell each site when that is by its own clock."""
        for site in self._sites:
            self._clocks.append(
                measure_clock_offset(lambda site=site: ClockTimes(*_ask_all([site], "read_clocks")[0]))  # type: ignore[misc]
            )
        messages = 2 * sum(clock.uncertainty for clock in self._clocks)
        begin = time.monotonic() + _START_AHEAD + 4 * messages
        futures = [
            site.request("begin", begin + clock.monotonic)
            for site, clock in zip(self._sites, self._clocks, strict=True)
        ]
        left = [_await_answer(site, future) for site, future in zip(self._sites, futures, strict=True)]
        self._late_starts = [max(0.0, -seconds) for seconds in left]
        return begin

    def _collect(
        self,
        tally: Tally,
        watch: Watch,
        is_stopped: Callable[[], bool],
        watch_chunk: WatchChunk | None,
    ) -> None:
        """Add up what the workers report, until the last of them is done, or until the grace period after a stop or a loss."""
        unpackers = [Unpacker() for _ in range(self._workers)]
        stop_at = math.inf
        for worker, data in self._reports(tally):
            for chunk in unpackers[worker].feed(data):
                chunk.facts["worker"] = worker
                tally.add(worker, chunk)
                if watch_chunk is not None:
                    watch_chunk(chunk)
                watch(tally.read_progress(), tally)
            if stop_at == math.inf and (self._lost or is_stopped()):
                stop_at = time.monotonic() + _GRACE
                for place in self._open:
                    self._sites[place].request("stop")
            if time.monotonic() > stop_at:
                break
        died = set(chain.from_iterable(map(self._workers_at, self._lost))) - tally.done
        tally.end(self._workers, is_stopped=stop_at < math.inf, died=died)

    def _reports(self, tally: Tally) -> Iterator[tuple[int, bytes]]:
        """What workers send, as it arrives, and after each look at the sites nothing, so that the caller can stop."""
        self._heard_at = [time.monotonic()] * self._workers
        pending: dict[int, Future[Any]] = {}
        while self._open:
            began = time.monotonic()
            for place in self._open - pending.keys():
                pending[place] = self._sites[place].request("poll")
            wait(pending.values(), timeout=LOOK_AROUND)
            for place in [place for place, future in pending.items() if future.done()]:
                yield from self._hear(place, pending.pop(place), tally)
            for place in self._open & pending.keys():
                self._check_silence(place, _SITE_SILENCE, tally)
            yield 0, b""
            time.sleep(max(0.0, began + LOOK_AROUND - time.monotonic()))

    def _hear(self, place: int, future: Future[Any], tally: Tally) -> Iterator[tuple[int, bytes]]:
        """Pass on one reply of a site, and notice when all its workers are done, or one of them has died."""
        try:
            reply = future.result()
        except _FAILURES as error:
            self._lose(place, _reason(error), tally)
            return
        for worker, data in reply["reports"]:
            self._heard_at[worker] = time.monotonic()
            yield worker, data
        if dead := set(reply["ended"]) - tally.done:
            self._lose(place, f"{len(dead)} of its worker processes died", tally)
        elif tally.done.issuperset(self._workers_at(place)):
            self._open.discard(place)
        else:
            self._check_silence(place, SECONDS_OF_SILENCE + self._load.seconds_each, tally)

    def _check_silence(self, place: int, limit: float, tally: Tally) -> None:
        """Workers report ten times a second, so one that is silent for long is stuck."""
        unfinished = set(self._workers_at(place)) - tally.done
        silence = time.monotonic() - min((self._heard_at[worker] for worker in unfinished), default=math.inf)
        if silence > limit:
            self._lose(place, f"it has reported nothing for {format_seconds(silence)}", tally)

    def _lose(self, place: int, reason: str, tally: Tally) -> None:
        self._open.discard(place)
        if not tally.done.issuperset(self._workers_at(place)):
            self._lost[place] = reason

    def add_results(self, result: LoadResult, tally: Tally) -> LoadResult:
        """The figures with the share of each generator; a load that lost one was aborted by that."""
        aborted = None
        if self._lost:
            losses = "; ".join(f"'{self._sites[place].node}': {why}" for place, why in self._lost.items())
            after = format_seconds(tally.stopped_at or 0.0)
            aborted = f"a load generator was lost {after} after the start ({losses})"
        generators = tuple(self._result_of(place, tally) for place in range(len(self._sites)))
        return replace(result, generators=generators, aborted=aborted)

    def _result_of(self, place: int, tally: Tally) -> GeneratorResult:
        workers = self._workers_at(place)
        shares = [tally.shares.get(worker, WorkerShare()) for worker in workers]
        lag, delay = (
            merge_histograms([getattr(share, name) for share in shares]) for name in ("lag", "schedule_delay")
        )
        # A load that was stopped before it began has no clocks.
        clock = self._clocks[place] if self._clocks else ClockOffset(0.0, 0.0, 0.0)
        return GeneratorResult(
            node=self._sites[place].node,
            workers=len(workers),
            requests_sent=sum(tally.sent.get(worker, 0) for worker in workers),
            requests_completed=sum(share.completed for share in shares),
            lag_p99=lag.quantile(0.99) if lag.n else 0.0,
            cpu_share=busiest_cpu_share(tally, workers),
            schedule_delay_p99=delay.quantile(0.99) if delay.n else None,
            may_wait=not self._load.is_open or self._load.concurrency is not None,
            errors=dict(sum((share.errors for share in shares), start=WorkerShare().errors)),
            clock_offset=clock.wall,
            clock_uncertainty=clock.uncertainty,
            late_start=self._late_starts[place],
            lost=self._lost.get(place),
        )
