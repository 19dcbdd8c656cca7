"""Samples taken in a thread beside an execution, bounded in number.

Instruments that watch the machine (`psutil`, `gpu`) and the experiment `serving` use it. An exception in the thread is
kept and raised by `stop`, so that a failed measurement is never mistaken for a quiet one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.plugin import ExperimentContext, File, Reading

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Samples:
    rows: list[Row]
    """Never more than asked for; each says in `stride` how many samples it stands for."""
    taken: int


class Sampler:
    """Keeps `first`, then what `take` gives every `interval` seconds and a last time when it is stopped.

    When `most` rows are kept, every other one goes and from then on only every second sample is kept, then every
    fourth: a long execution stays covered from end to end.
    """

    def __init__(self, first: Row, take: Callable[[], Row], interval: float, most: int) -> None:
        self._take, self._interval, self._most = take, interval, most
        self._rows = [first]
        self._taken, self._stride = 1, 1
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="assay-sampler", daemon=True)

    def start(self) -> Sampler:
        self._thread.start()
        return self

    def stop(self) -> Samples:
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        last = self._take()
        rows = [*self._rows, last]
        return Samples([{**row, "stride": self._stride} for row in rows], self._taken + 1)

    def _watch(self) -> None:
        try:
            while not self._ended.wait(self._interval):
                self._keep(self._take())
        except Exception as failure:
            self._failure = failure

    def _keep(self, row: Row) -> None:
        if self._taken % self._stride == 0:
            if len(self._rows) >= self._most - 1:  # one place is for the last sample
                self._rows = self._rows[::2]
                self._stride *= 2
            if self._taken % self._stride == 0:
                self._rows.append(row)
        self._taken += 1


@dataclass(frozen=True, slots=True)
class SampledState:
    """An execution that is being sampled: the context it has, what adds up its figures, and the thread that takes samples."""

    context: ExperimentContext
    measurements: Callable[[], dict[str, float]]
    sampler: Sampler

    def stop(self, instrument: str) -> Reading:
        """The figures over all samples, their number, and those that were kept as a file."""
        samples = self.sampler.stop()
        measured = {**self.measurements(), f"{instrument}_samples": samples.taken}
        content = json_lines(samples.rows, self.context)
        return Reading(measured, (File(f"{instrument}.jsonl", instrument, content),))


def json_lines(rows: Iterable[Row], context: ExperimentContext) -> bytes:
    """One row a line, each saying of which execution it is, so that files of many executions can be joined."""
    execution: Mapping[str, object] = {
        "phase": str(context.phase),
        "process": context.process,
        "repetition": context.iteration_index,
    }
    return "".join(json.dumps({**row, **execution}) + "\n" for row in rows).encode()
