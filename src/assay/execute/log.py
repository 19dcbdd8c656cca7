"""What a worker prints: kept with the execution that printed it, bounded however much it is."""

from __future__ import annotations

import fcntl
import os
import tempfile

KEPT_BYTES = 16_384
FLOOD_BYTES = 32 * 2**20


def log_file() -> int:
    """A file descriptor that appends, so that a writer begins anew where the file was emptied."""
    with tempfile.TemporaryFile() as file:
        fd = os.dup(file.fileno())
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
    return fd


class Log:
    """A file at descriptors 1 and 2 of the worker, emptied after each execution."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def take(self) -> str | None:
        """What was printed since the last call; the middle of a flood is left out."""
        size = os.lseek(self._fd, 0, os.SEEK_END)
        if not size:
            return None
        text = excerpt(self._fd, size)
        os.ftruncate(self._fd, 0)
        return text

    def drain_flood(self) -> None:
        """Cut the file back to its beginning while it is written to, when it has grown beyond all measure."""
        size = os.lseek(self._fd, 0, os.SEEK_END)
        if size > FLOOD_BYTES:
            os.ftruncate(self._fd, KEPT_BYTES // 2)
            # Said at once: if nothing is printed any more, the rest looks like all there was.
            os.write(self._fd, _left_out(size - KEPT_BYTES // 2).encode())


def excerpt(fd: int, size: int) -> str:
    if size <= KEPT_BYTES:
        return os.pread(fd, size, 0).decode("utf-8", "replace")
    half = KEPT_BYTES // 2
    head, tail = os.pread(fd, half, 0), os.pread(fd, half, size - half)
    return head.decode("utf-8", "replace") + _left_out(size - KEPT_BYTES) + tail.decode("utf-8", "replace")


def _left_out(size: int) -> str:
    return f"\n[at least {size:,} bytes left out]\n"
