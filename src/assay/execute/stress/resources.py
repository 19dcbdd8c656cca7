"""CPU and memory of the agent's own processes, sampled while a scenario runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psutil

from assay.model.stress import Resources, Sample

EVERY = 0.1
MOST = 1200
_OWN = "assay.execute.load."

Find = Callable[[], Sequence[psutil.Process]]


def listening_on(port: int) -> psutil.Process | None:
    """Whoever serves this port here; None where nobody does, or another user."""
    try:
        found = [
            one.pid
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid
        ]
        return psutil.Process(found[0]) if found else None
    except psutil.Error:
        return None


def with_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def started_by_us() -> list[psutil.Process]:
    """Processes of an agent that a worker of ours keeps: every descendant but the workers themselves."""
    return [process for process in psutil.Process().children(recursive=True) if not _is_worker(process)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any(word.startswith(_OWN) for word in process.cmdline()) or process.status() == "zombie"
    except psutil.Error:
        return True


class Gauge:
    """Looks every tenth of a second, and less often once there is much to keep."""

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
                # Of two neighbours the one with more memory stays: peaks are what is looked for.
                pairs = zip(self._samples[::2], self._samples[1::2], strict=False)
                self._samples = [max(pair, key=lambda one: one.memory_bytes) for pair in pairs]
                self._every *= 2

    def _look(self) -> None:
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
        worked = sum(
            spent - self._cpu.get(pid, spent if not self._samples else 0.0) for pid, spent in cpu.items()
        )
        self._samples.append(Sample(at, max(0.0, worked) / since if since > 0 else 0.0, memory))
        self._cpu = cpu

    def taken(self) -> Resources | None:
        return Resources(self._name, tuple(self._samples)) if self._samples else None
