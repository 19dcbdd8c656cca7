"""What a worker prints: kept with the execution that printed it, and bounded however much it is.

Standard output and error of a worker are one temporary file, which both processes have open. The worker takes its content
after each execution; the supervisor takes it when the worker has died, and cuts it back when it grows too large.
"""

from __future__ import annotations

import fcntl
import os

KEPT_BYTES = 16_384
FLOOD_BYTES = 32 * 2**20


def log_file() -> int:
    """A file descriptor that appends, so that a writer begins anew where the file was emptied."""
    # Imported here, because only the supervisor makes the file, and the worker is to start fast.
    import tempfile

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
        """Cut the file back to its beginning if it has grown beyond `FLOOD_BYTES`, while it is being written to."""
        size = os.lseek(self._fd, 0, os.SEEK_END)
        if size > FLOOD_BYTES:
            os.ftruncate(self._fd, KEPT_BYTES // 2)
            # Said at once: if nothing is printed any more, the rest looks like all there was.
            os.write(self._fd, _format_omission(size - KEPT_BYTES // 2).encode())


def excerpt(fd: int, size: int) -> str:
    if size <= KEPT_BYTES:
        return os.pread(fd, size, 0).decode("utf-8", "replace")
    half = KEPT_BYTES // 2
    head, tail = os.pread(fd, half, 0), os.pread(fd, half, size - half)
    return (
        head.decode("utf-8", "replace")
        + _format_omission(size - KEPT_BYTES)
        + tail.decode("utf-8", "replace")
    )


def _format_omission(size: int) -> str:
    return f"\n[at least {size:,} bytes left out]\n"
