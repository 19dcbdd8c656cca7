"""CPU time and peak memory: of this process, of others between two moments, and summed up over the executions of a job.

Peaks are read where the kernel reports them, on Linux. It keeps the highest resident size of a process (VmHWM in
/proc/PID/status); writing 5 to /proc/PID/clear_refs sets it back to the current size. See proc(5).
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable
from time import process_time

from assay.model.execution import JobUsage
from assay.plugin.process_memory import HIGH_WATER

_STATUS_BYTES = 4096


def cpu_time() -> float:
    """CPU seconds of this process and of those of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + ended.ru_utime + ended.ru_stime


class UsageMeter:
    """Adds up the measured executions of a job.

    `peak` is asked once, at the end of the job, for the highest memory of the process; None where that says nothing about
    the subject, as for a job that runs inline in the runner.
    """

    def __init__(self, peak: Callable[[], int | None] | None) -> None:
        self._peak = peak
        self._peak_bytes: int | None = None
        self._cpu_seconds = self._wall_seconds = 0.0

    def add(self, cpu_seconds: float, wall_seconds: float) -> None:
        self._cpu_seconds += cpu_seconds
        self._wall_seconds += wall_seconds

    def see_peak(self, peak_bytes: int | None) -> None:
        """Note the peak of one execution: the processes of some agents only report the peak since they were last asked."""
        if peak_bytes is not None:
            self._peak_bytes = max(self._peak_bytes or 0, peak_bytes)

    def usage(self) -> JobUsage:
        if self._peak is not None:
            self.see_peak(self._peak())
        return JobUsage(self._cpu_seconds, self._wall_seconds, self._peak_bytes)


class Peak:
    """The peak of one process, without those it starts. The files stay open, so that a look takes some ten microseconds."""

    def __init__(self, pid: int) -> None:
        self._status = _try_open(f"/proc/{pid}/status", os.O_RDONLY)
        self._forget = _try_open(f"/proc/{pid}/clear_refs", os.O_WRONLY)

    def read(self) -> int | None:
        """Resident bytes at the most since this was called last; None where that cannot be known."""
        if self._status is None or self._forget is None:
            return None
        try:
            high_water = HIGH_WATER.search(os.pread(self._status, _STATUS_BYTES, 0))
            os.write(self._forget, b"5")
        except OSError:
            return None
        return int(high_water[1]) * 1024 if high_water else None

    def close(self) -> None:
        for fd in (self._status, self._forget):
            if fd is not None:
                os.close(fd)
        self._status = self._forget = None


def _try_open(path: str, how: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, how | os.O_CLOEXEC)
    return None
