"""Starts the processes that work for the server: its own computing would delay every other request."""

from __future__ import annotations

import os
import subprocess
import sys


def start_worker(
    module: str, db: str, workspace: str, *arguments: str, stdout: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """A module of the server as a process of its own, which ends when its standard input is closed."""
    # A session of its own: Ctrl-C in the terminal of the server is for the server, which then ends its workers.
    return subprocess.Popen(
        [sys.executable, "-m", f"assay.server.{module}", *arguments],
        env={**os.environ, "ASSAY_DB": db, "ASSAY_WORKSPACE": workspace},
        stdin=subprocess.PIPE,
        stdout=stdout,
        start_new_session=True,
    )
