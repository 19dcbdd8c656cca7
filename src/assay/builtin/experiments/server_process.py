"""The process behind a local URL: who listens there, and what it uses.

The experiment `serving` reports the CPU time and memory of the server beside the figures of the client. That needs a server
on this machine that belongs to the same user; otherwise `problem` says why there is nothing to measure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from assay.builtin.instruments.sampling import Row, Sampler
from assay.execute.process_tree import find_listener, open_descendants
from assay.http.request import is_loopback

_INTERVAL = 0.1
"""Seconds between two looks: a look takes up to a millisecond, in which the client may be late to see a token."""
_PORTS = {"http": 80, "https": 443}


class ServerProcess:
    """A server that listens on a port of this machine."""

    def __init__(self, url: str) -> None:
        self.problem = ""
        """Why there is nothing to measure; empty where there is."""
        self._process = self._find_process(url)

    def _find_process(self, url: str) -> psutil.Process | None:
        place = urlsplit(url)
        if not is_loopback(place.hostname or ""):
            self.problem = (
                f"CPU and memory of the server are not measured: '{place.hostname}' is another machine."
            )
            return None
        port = place.port or _PORTS[place.scheme]
        try:
            return psutil.Process(find_listener(port))
        except (psutil.Error, LookupError) as error:
            why = str(error) if isinstance(error, LookupError) else type(error).__name__
            self.problem = f"CPU and memory of the server are not measured: {why}."
            return None

    @contextmanager
    def watch(self) -> Iterator[ProcessUsage]:
        """Measure what the process uses during the block, sampled in a thread so that peaks are seen."""
        # A look before and one after give the CPU time; those in between are for the peak of memory.
        used = ProcessUsage(self._process)
        sampler = Sampler({}, used.look, _INTERVAL, most=2).start()
        try:
            yield used
        finally:
            sampler.stop()


class ProcessUsage:
    """CPU and memory of a process and its children, which may hold the model, from the first sample to the last."""

    def __init__(self, process: psutil.Process | None) -> None:
        self._process = process
        self._first = self._last = self._take_sample()
        self._most_bytes = self._first.rss_bytes if self._first else 0

    def look(self) -> Row:
        """A process that is gone has used what it had used before; the rows of a sampler are of no interest here."""
        seen = self._take_sample()
        if seen is not None:
            self._last = seen
            self._most_bytes = max(self._most_bytes, seen.rss_bytes)
        return {}

    def measurements(self) -> dict[str, float]:
        first, last = self._first, self._last
        if first is None or last is None:
            return {}
        spent = max(0.0, last.cpu_seconds - first.cpu_seconds)
        return {
            "server_cpu_seconds": spent,
            "server_cpu_percent": 100 * spent / max(last.at - first.at, 1e-9),
            "server_memory_bytes": float(self._most_bytes),
        }

    def _take_sample(self) -> _UsageSample | None:
        """One look at the process and its children; None where it is gone. One server may be many processes."""
        if self._process is None:
            return None
        at = time.perf_counter()
        try:
            seen = [_of_one(self._process)]
        except psutil.Error:
            return None
        for process in open_descendants(self._process.pid):
            with suppress(psutil.Error):  # it may end while it is looked at
                seen.append(_of_one(process))
        return _UsageSample(at, sum(cpu for cpu, _ in seen), sum(rss for _, rss in seen))


@dataclass(frozen=True, slots=True)
class _UsageSample:
    """The sums over a process and its descendants at one moment; `at` is by perf_counter."""

    at: float
    cpu_seconds: float
    rss_bytes: int


def _of_one(process: psutil.Process) -> tuple[float, int]:
    """CPU time of its own and of children that have ended, and memory held."""
    with process.oneshot():
        return sum(process.cpu_times()[:4]), process.memory_info().rss
