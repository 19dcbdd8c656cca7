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
    """End a worker's process group and every process that carries its mark; how many there were beside it."""
    outlived = _marked(mark) - {pid}
    kill_group(pid)
    return len((outlived | kill_marked(mark)) - {pid})


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_marked(prefix: str) -> set[int]:
    """End every process whose mark begins so, until a look finds none that was not found before."""
    killed: set[int] = set()
    while fresh := _marked(prefix) - killed:
        for pid in fresh:
            _kill(pid)
        killed |= fresh
    return killed


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _marked(prefix: str) -> set[int]:
    wanted = f"{MARK}={prefix}".encode()
    return {pid for pid in _all_processes() if wanted in _environment(pid)}


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    """As the process was given it; nothing for one that has ended, or is none of ours."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
