"""CPU and memory of the agent's own processes, sampled while a scenario runs.

When there are too many samples, neighbouring ones are merged and the one with more memory is kept, so
that a peak is never lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psutil

from assay.execute.process_tree import find_listener, open_descendants
from assay.model.stress import Resources, Sample

EVERY = 0.1
MOST = 1200
_OWN = ("assay.execute.", "assay.load.")
_RUNS_AGENTS = "assay.load.agent_worker"

Find = Callable[[], Sequence[psutil.Process]]


def listening_on(port: int) -> psutil.Process | None:
    """The process that serves this port here; None if there is none, or if it belongs to a different user."""
    try:
        return psutil.Process(find_listener(port))
    except (psutil.Error, LookupError):
        return None


def with_children(process: psutil.Process) -> list[psutil.Process]:
    """Servers may compute in processes of their own; empty where it has ended."""
    return list(filter(_is_running, (process, *open_descendants(process.pid))))


def find_agent_processes() -> list[psutil.Process]:
    """Processes of an agent that a worker of ours keeps: every descendant but the workers and their guardians."""
    return [process for process in _descendants() if not _names(process, _OWN)]


def running_its_code() -> list[psutil.Process]:
    """Workers in which code of the agent runs, and whatever it started: an agent that is a function has no other process."""
    return [
        process for process in _descendants() if _names(process, _RUNS_AGENTS) or not _names(process, _OWN)
    ]


def _descendants() -> Iterator[psutil.Process]:
    return filter(_is_running, open_descendants(os.getpid()))


def _is_running(process: psutil.Process) -> bool:
    """Whether it has not ended, as a zombie has too."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _names(process: psutil.Process, module: str | tuple[str, ...]) -> bool:
    """Whether its command line names a module of ours that begins so; unknown for one that has ended."""
    try:
        return any(word.startswith(module) for word in process.cmdline())
    except psutil.Error:
        return module == _OWN


class Gauge:
    """Looks every tenth of a second, and less often once there is much to keep.

    `find` gives the processes anew for each look, because an agent under stress starts and loses some. A look that fails, as
    processes end while they are read, is left out: a gap is better than a figure that leaves one of them out.
    """

    def __init__(self, name: str, find: Find, every: float = EVERY) -> None:
        self._name, self._find, self._every = name, find, every
        self._samples: list[Sample] = []
        self._cpu: dict[int, float] = {}
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gauge", daemon=True)

    @contextmanager
    def watching(self) -> Iterator[Gauge]:
        self._begun = time.monotonic()
        self._look()
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()
            self._look()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self._look()
            if len(self._samples) > MOST:
                # The one of two neighbours with more memory stays, because peaks are of interest.
                pairs = zip(self._samples[::2], self._samples[1::2], strict=False)
                self._samples = [max(pair, key=lambda sample: sample.memory_bytes) for pair in pairs]
                self._every *= 2

    def _look(self) -> None:
        """Add a sample: memory now, and CPU as cores, the time that all processes worked since the last sample ÷ that time."""
        memory, cpu = 0, dict[int, float]()
        for process in self._find():
            try:
                with process.oneshot():
                    memory += process.memory_info().rss
                    times = process.cpu_times()
                    cpu[process.pid] = times.user + times.system
            except psutil.Error:
                continue
        if not cpu:
            return
        # To find all processes may take longer than to read them.
        at = time.monotonic() - self._begun
        since = at - self._samples[-1].at if self._samples else 0.0
        # A process that is new since the last look has worked all of its time meanwhile; at the first look this is unknown.
        worked = sum(
            spent - self._cpu.get(pid, spent if not self._samples else 0.0) for pid, spent in cpu.items()
        )
        self._samples.append(Sample(at, max(0.0, worked) / since if since > 0 else 0.0, memory))
        self._cpu = cpu

    def since(self, moment: float) -> tuple[Sample, ...]:
        """Samples from a moment of the monotonic clock on, in seconds after it."""
        offset = moment - self._begun
        return tuple(
            Sample(sample.at - offset, sample.cpu, sample.memory_bytes)
            for sample in list(self._samples)
            if sample.at >= offset
        )

    def summarize(self) -> Resources | None:
        return Resources(self._name, tuple(self._samples)) if self._samples else None
