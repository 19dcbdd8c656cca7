"""Owners of runs as processes of this machine: who we are, and whether another one has ended.

A process is known by its machine, its id and its start, since ids are used again. Only a process of the same machine can be
known to have ended: for others, the lease decides.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path


def current_owner() -> Owner:
    pid = os.getpid()
    try:
        folder = str(Path.cwd())
    except OSError:  # it was deleted
        folder = ""
    return Owner(socket.gethostname(), pid, _machine(), _start_of(pid) or "", folder)


def has_ended(owner: Owner) -> bool:
    """Whether the process is known to have ended; False if it ran on another machine, where only its lease counts."""
    if owner.machine != _machine():
        return False
    return _start_of(owner.pid) != owner.process_started


def is_current(owner: Owner) -> bool:
    return (owner.machine, owner.pid) == (_machine(), os.getpid()) and not has_ended(owner)


@cache
def _machine() -> str:
    # Containers may share a host name, but not the boot and the PID namespace.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _start_of(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None if it does not exist or has ended as a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _start_without_proc(pid)
    except (OSError, IndexError):
        return None


def _start_without_proc(pid: int) -> str | None:
    """When a process started on systems without /proc, such as macOS."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except psutil.NoSuchProcess:
        return None


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that executes a run."""

    host: str
    pid: int
    machine: str = ""
    """Which kernel counts the pid: the boot and the PID namespace; a pid means nothing on another one."""
    process_started: str = ""
    """When the process started, as its kernel counts; a reused pid has another start."""
    folder: str = ""
    """The working folder, where results that could not be stored are kept."""

    def __str__(self) -> str:
        return f"{self.host} process {self.pid}"
