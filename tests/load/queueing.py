"""Loads that were never sent: what a server with so many slots would have answered, with its truth known, as a worker tells it."""

from __future__ import annotations

import heapq
import math
import random
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.load.engine import slice_width
from assay.load.summary import summarise_load
from assay.load.tally import Tally
from assay.load.worker_report import COLUMNS, OK, Chunk
from assay.model.load import Arrivals, Load, LoadResult

TOKENS = 50
Service = Callable[[random.Random], float]
"""Seconds that a request keeps a slot busy."""


def constantly(seconds: float) -> Service:
    return lambda chance: seconds


def exponentially(mean: float) -> Service:
    return lambda chance: chance.expovariate(1 / mean)


@dataclass(frozen=True)
class Server:
    """Serves first come, first served."""

    service: Service
    slots: int = 10_000

    def put_under(self, load: Load, seed: int = 1, stopped_at: float = math.inf) -> LoadResult:
        chance = random.Random(seed)
        free = [0.0] * self.slots
        rows: list[tuple[float, ...]] = []
        dues = _Closed(load) if not load.is_open else _Timetable(load, chance)
        for number, due in enumerate(dues):
            begin = max(due, heapq.heappop(free))
            end = begin + self.service(chance)
            heapq.heappush(free, end)
            dues.answered(end)
            first = begin + (end - begin) / 4
            if due > stopped_at:
                break
            outcome = (end, TOKENS, 10.0, OK) if end <= stopped_at else (stopped_at, math.nan, math.nan, 1)
            rows.append((number, due, due, due, first, *outcome, 0.0, TOKENS))
        tally = Tally(width=slice_width(load), think_seconds=load.think_seconds)
        tally.add(0, _chunk(rows))
        tally.end(1, is_stopped=math.isfinite(stopped_at))
        return summarise_load(tally, load)


class _Closed:
    """When requests of virtual users are due: as soon as the last one is answered, and thought about."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._due = [0.0] * (load.concurrency or 1)

    def answered(self, end: float) -> None:
        heapq.heappush(self._due, end + self._load.think_seconds)

    def __iter__(self) -> Iterator[float]:
        sent = 0
        while self._due[0] < self._load.seconds and (self._load.count is None or sent < self._load.count):
            sent += 1
            yield heapq.heappop(self._due)


class _Timetable:
    def __init__(self, load: Load, chance: random.Random) -> None:
        self._load, self._chance = load, chance

    def answered(self, end: float) -> None:
        pass

    def __iter__(self) -> Iterator[float]:
        rate, due, sent = self._load.offered or 1.0, 0.0, 0
        while due < self._load.seconds and (self._load.count is None or sent < self._load.count):
            yield due
            sent += 1
            is_random = self._load.arrivals is Arrivals.POISSON
            due = due + self._chance.expovariate(rate) if is_random else sent / rate


def _chunk(rows: list[tuple[float, ...]]) -> Chunk:
    columns = zip(*rows, strict=True)
    chunk = Chunk(
        {name: array("d", column) for name, column in zip(COLUMNS, columns, strict=True)}, array("d")
    )
    chunk.facts = {
        "at": max(chunk.columns["end"]), "sent": len(rows), "in_flight": 0, "reconnects": 0, "coalesced": 0,
        "counted": False, "simulated": True, "cpu": 0.0, "is_last": True, "answers": [], "kinds": ["ok", "cut_off"],
    }  # fmt: skip
    return chunk
