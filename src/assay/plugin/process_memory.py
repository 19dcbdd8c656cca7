"""The peak memory of this process, read where the kernel reports it, on Linux: VmHWM in /proc/PID/status, see proc(5)."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

HIGH_WATER = re.compile(rb"^VmHWM:\s*(\d+) kB", re.MULTILINE)


def peak_memory() -> int | None:
    """The most resident bytes that this process, or one child of it that has ended, ever held; None off Linux.

    Not `ru_maxrss` of the process itself: that begins with what the process that started it held.
    """
    try:
        match = HIGH_WATER.search(Path(f"/proc/{os.getpid()}/status").read_bytes())
    except OSError:
        return None
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(int(match[1]), child) * 1024 if match else None
