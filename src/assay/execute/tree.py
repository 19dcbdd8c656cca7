"""A worker and everything it started: how much memory it holds, and how to end all of it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARK = "ASSAY_WORKER"
"""Environment variable that all descendants of a worker inherit, also those that detach themselves."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree_rss(pid: int) -> int:
    """Resident bytes of a process and its descendants."""
    return sum(_rss(member) for member in _family(pid))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from _family(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except OSError:
        return found or _children_elsewhere(pid)
    return found


def _children_elsewhere(pid: int) -> list[int]:
    if Path("/proc/self/task").exists():
        return []
    import psutil

    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return _rss_elsewhere(pid)


def _rss_elsewhere(pid: int) -> int:
    if Path("/proc/self/statm").exists():
        return 0
    import psutil

    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def kill_all(pid: int, mark: str) -> int:
    """End a worker's process group and every process that carries its mark; how many had outlived it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    outlived = 0
    for other in _marked(mark):
        if other != pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(other, signal.SIGKILL)
                outlived += 1
    return outlived


def _marked(mark: str) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in filter(str.isdigit, names):
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                yield int(name)
