"""Who carries out a run, and whether they are still at it."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def owner() -> str:
    """Who carries out a run: host and process, so that another can tell whether it is still at it."""
    return f"{socket.gethostname()} process {os.getpid()}"


def is_alive(owner: str) -> bool:
    host, _, pid = owner.partition(" process ")
    if host != socket.gethostname() or not pid.isdigit() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(int(pid))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False
