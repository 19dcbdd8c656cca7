"""Starts workers before the load is ready for them, so that both get ready at the same time.

A worker waits for its order on standard input, so it can start while the options are still being read and checked.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

SERVER_WORKER = "assay.load.worker"
_GRACE = 2.0
_waiting: list[subprocess.Popen[bytes]] = []


def server_worker() -> subprocess.Popen[bytes]:
    """A worker that was started ahead, or a new one; it sends nothing before it gets an order."""
    return _waiting.pop() if _waiting else _start()


@contextlib.contextmanager
def start_workers_ahead(workers: int) -> Iterator[None]:
    """Start so many workers, for `server_worker` to take; those that nobody has taken by the end are stopped."""
    try:
        for _ in range(workers):
            _waiting.append(_start())
        yield
    finally:
        while _waiting:
            _dismiss(_waiting.pop())


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", SERVER_WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    """A worker ends when its input does; one that is still starting need not finish that."""
    process.terminate()
    with process:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
