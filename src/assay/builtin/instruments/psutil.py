"""The instrument that samples a process and all that it starts.

Samples are needed because memory has no counter of its peak for a whole tree, and because processes come and go. The sums
over all samples are computed as they are taken; the rows that are kept for charts may be fewer (see `sampling`).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import psutil

from assay.builtin.instruments.options import at_least, whole
from assay.builtin.instruments.sampling import Row, SampledState, Sampler
from assay.execute.process_tree import open_descendants
from assay.model import Better, Metric
from assay.plugin import ExperimentContext, Reading, SteadyClock


class Psutil:
    """CPU, resident memory and I/O of the process and all its descendants, sampled in a thread.

    Memory that processes share counts once for each of them. I/O is what reached the storage, not the page cache.

    Args:
        interval_ms: Milliseconds between two samples.
        max_samples: Maximum samples per execution; beyond it they are taken less often.

    Example:
        instrumentation: [timing, {name: psutil, interval_ms: 100}]
    """

    slows: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Metric]] = {
        "cpu_percent": Metric("cpu_percent", "%"),
        "cpu_percent_max": Metric("cpu_percent_max", "%"),
        "rss_mean_bytes": Metric("rss_mean_bytes", "bytes", Better.LOWER),
        "rss_max_bytes": Metric("rss_max_bytes", "bytes", Better.LOWER),
        "read_bytes": Metric("read_bytes", "bytes", Better.LOWER),
        "write_bytes": Metric("write_bytes", "bytes", Better.LOWER),
        "psutil_samples": Metric("psutil_samples"),
    }

    def __init__(self, *, interval_ms: float = 200, max_samples: int = 1000) -> None:
        self._interval = at_least("psutil", "interval_ms", interval_ms, 1) / 1000
        self._max_samples = whole("psutil", "max_samples", max_samples, 2)

    def start(self, context: ExperimentContext) -> SampledState:
        tree = _Tree()
        sampler = Sampler(tree.first_row(), tree.sample, self._interval, self._max_samples)
        return SampledState(context, tree.measurements, sampler.start())

    def stop(self, state: SampledState) -> Reading:
        return state.stop("psutil")


@dataclass(frozen=True, slots=True)
class _Io:
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """Sums over the whole process tree at one moment; `io` is None if the system does not report it."""

    at: float
    cpu_seconds: float
    rss_bytes: int
    io: _Io | None


class _Tree:
    """The process and its descendants, with figures over all samples, also those that are not kept as rows."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._first = self._last = _sum_usage(self._own)
        self._cpu_max = 0.0
        self._rss_max = self._rss_total = self._first.rss_bytes
        self._count = 1
        self._clock = SteadyClock()

    def first_row(self) -> Row:
        return self._row(self._first, None)

    def sample(self) -> Row:
        before, self._last = self._last, _sum_usage(self._own)
        cpu = _percent(before, self._last)
        self._cpu_max = max(self._cpu_max, cpu)
        self._rss_max = max(self._rss_max, self._last.rss_bytes)
        self._rss_total += self._last.rss_bytes
        self._count += 1
        return self._row(self._last, cpu)

    def _row(self, seen: _Sum, cpu_percent: float | None) -> Row:
        """CPU is that since the sample before, so the first has none."""
        return {
            "ts": self._clock.now().timestamp(),
            "cpu_percent": cpu_percent,
            "rss_bytes": seen.rss_bytes,
            "read_bytes": seen.io.read_bytes if seen.io else None,
            "write_bytes": seen.io.write_bytes if seen.io else None,
        }

    def measurements(self) -> dict[str, float]:
        first, last = self._first, self._last
        found: dict[str, float] = {
            "cpu_percent": _percent(first, last),
            "cpu_percent_max": self._cpu_max,
            "rss_mean_bytes": self._rss_total / self._count,
            "rss_max_bytes": self._rss_max,
        }
        if first.io and last.io:
            found["read_bytes"] = max(0, last.io.read_bytes - first.io.read_bytes)
            found["write_bytes"] = max(0, last.io.write_bytes - first.io.write_bytes)
        return found


def _percent(before: _Sum, after: _Sum) -> float:
    # A descendant that leaves the tree takes its share along: that is no negative work.
    worked = max(0.0, after.cpu_seconds - before.cpu_seconds)
    return 100 * worked / max(after.at - before.at, 1e-9)


def _sum_usage(own: psutil.Process) -> _Sum:
    """What the process and its descendants have used until now; one that ends meanwhile is left out."""
    at = time.perf_counter()
    # The process's own clocks are exact; what psutil reads counts in ticks of 10 ms.
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() + reaped.ru_utime + reaped.ru_stime
    rss, io = own.memory_info().rss, [_io(own)]
    for process in open_descendants(own.pid):
        with suppress(psutil.Error), process.oneshot():
            rss += process.memory_info().rss
            cpu += sum(process.cpu_times()[:4])  # its own and those of its children that have ended
            io.append(_io(process))
    known = [counters for counters in io if counters]
    total = _Io(
        sum(counters.read_bytes for counters in known), sum(counters.write_bytes for counters in known)
    )
    return _Sum(at, cpu, rss, total if known else None)


def _io(process: psutil.Process) -> _Io | None:
    if not hasattr(process, "io_counters"):  # macOS
        return None
    try:
        counters = process.io_counters()
    except (psutil.Error, OSError):
        return None
    return _Io(counters.read_bytes, counters.write_bytes)
