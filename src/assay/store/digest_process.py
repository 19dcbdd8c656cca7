"""Reads the digests of a SQLite file in a process of its own, while a copy continues to write the file.

SQLite works in the process that asks it, and two threads of one would mostly wait for each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import sqlalchemy as sa

from assay.store import database
from assay.store.address import Address, read_address
from assay.store.copy_digests import Digests, read_digests


class DigestProcess:
    """A process that ends when it is closed, and by itself when this one is killed: nothing can be asked of it any more."""

    def __init__(self, address: Address) -> None:
        url = address.url.render_as_string()
        # -P: what lies in the working folder is not imported in place of a library.
        command = [sys.executable, "-P", "-m", __name__, url]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, first: int, last: int) -> Digests | None:
        """The digests of the trials from one id to another; None if the process cannot tell."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        try:
            requests.write(f"{first} {last}\n".encode())
            requests.flush()
            answered = replies.readline()
        except OSError:
            return None
        return {tuple(key): tuple(digests) for key, digests in json.loads(answered)} if answered else None

    def close(self) -> None:
        self._process.communicate()


def _answer(url: str) -> None:
    """Write the digests of the trials that each line asks for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the copy, which closes the pipe
    engine = database.connect(read_address(url))
    for line in sys.stdin:
        first, last = map(int, line.split())
        try:
            with engine.connect() as connection:
                found = read_digests(connection, first, last)
        except sa.exc.DBAPIError:  # The copy will see it when it reads for itself.
            return
        reply = f"{json.dumps(list(found.items()))}\n".encode()
        with contextlib.suppress(BrokenPipeError):  # The copy was killed, which ends the loop.
            while reply:  # A pipe takes a part of a long reply where a signal comes in between.
                reply = reply[os.write(1, reply) :]


if __name__ == "__main__":
    _answer(sys.argv[1])
