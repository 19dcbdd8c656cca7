"""The load generator of one node: worker processes that get their orders from another machine.

An executor makes a `LoadGenerator` at each of its sites, and `distributed` calls its methods from afar. It only starts workers
and passes on what they report, unchanged: the caller adds up the reports of all nodes as if their
workers were its own, so that nothing is lost or rounded on the way.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.load.channel import kind_of
from assay.load.engine import end_worker, stdin_of, stdout_of, widen_pipe
from assay.load.warm_workers import server_worker

READY = b"ready\n"
_MOST_BYTES = 4 * 2**20
"""Maximum bytes of one worker in one reply."""
_SECONDS_TO_ACCEPT = 2.0


class LoadGenerator:
    """Methods take and return plain data and never wait for workers, except that `start` waits until they have their orders.

    One load is: `add_order` for every part of every worker's order, `start`, `poll` until it is ready, `begin`, `poll` until
    every worker has ended, and `close`. After that the next load may follow.
    """

    def __init__(self) -> None:
        self._orders: dict[int, bytearray] = {}
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._waiting: dict[int, bytearray] = {}
        """For workers that have not said that they are ready: what they said so far."""

    def read_clocks(self) -> tuple[float, float]:
        """The monotonic clock of this machine, which all its processes share, and its wall clock."""
        return time.monotonic(), time.time()

    def identify_loopback(self) -> str:
        """Return an id of the loopback network: equal for all processes of a machine, or of one container."""
        with contextlib.suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            return f"{boot} {Path('/proc/self/ns/net').readlink()}"
        return socket.gethostname()

    def find_unreachable(self, addresses: Sequence[tuple[int, Any]]) -> str | None:
        """Why no connection to one of the addresses (family, address) can be made from here; None where all accept one."""
        for family, address in addresses:
            try:
                with socket.socket(family, socket.SOCK_STREAM) as attempt:
                    attempt.settimeout(_SECONDS_TO_ACCEPT)
                    attempt.connect(tuple(address) if isinstance(address, list) else address)
            except TimeoutError:
                return "connect_timeout"
            except OSError as error:
                return kind_of(error)
        return None

    def add_order(self, worker: int, part: bytes) -> None:
        """One more part of the order of a worker; parts are small, so that none of them has to be kept outside of memory."""
        self._orders.setdefault(worker, bytearray()).extend(part)

    def start(self) -> None:
        orders, self._orders = self._orders, {}
        # All are started before the first order is written, so that they start side by side.
        self._workers = {worker: server_worker() for worker in orders}
        self._waiting = {worker: bytearray() for worker in orders}
        for worker, process in self._workers.items():
            widen_pipe(stdout_of(process))
            os.set_blocking(stdout_of(process).fileno(), False)
            with contextlib.suppress(BrokenPipeError):
                stdin_of(process).write(orders[worker])
                stdin_of(process).flush()

    def begin(self, at: float) -> float:
        """Tell all workers when to begin, on this machine's monotonic clock; returns how many seconds are left until then."""
        for process in self._workers.values():
            with contextlib.suppress(BrokenPipeError):
                stdin_of(process).write(f"{at!r}\n".encode())
                stdin_of(process).flush()
        return at - time.monotonic()

    def poll(self) -> dict[str, Any]:
        """What workers have reported since the last time, by worker, which of them have ended, and whether all are ready."""
        reports: list[tuple[int, bytes]] = []
        ended = []
        for worker, process in self._workers.items():
            data, is_over = _read_pipe(stdout_of(process).fileno())
            if worker in self._waiting:
                data = self._read_greeting(worker, data)
            if data:
                reports.append((worker, data))
            if is_over:
                ended.append(worker)
        return {"reports": reports, "ended": ended, "is_ready": not self._waiting}

    def _read_greeting(self, worker: int, data: bytes) -> bytes:
        """The bytes that follow the word by which a worker says that it is ready."""
        greeting = self._waiting[worker]
        greeting += data
        if not greeting.startswith(READY):
            return b""
        del self._waiting[worker]
        return bytes(greeting[len(READY) :])

    def stop(self) -> None:
        """Close the worker's input, which tells it to end; it still reports what it has."""
        for process in self._workers.values():
            with contextlib.suppress(BrokenPipeError):
                stdin_of(process).close()

    def close(self) -> None:
        """End the workers; none of them stays behind."""
        self.stop()
        workers, self._workers, self._waiting, self._orders = self._workers, {}, {}, {}
        for process in workers.values():
            end_worker(process)


def _read_pipe(fd: int) -> tuple[bytes, bool]:
    """What there is to read, and whether the other end is closed."""
    parts: list[bytes] = []
    size = 0
    while size < _MOST_BYTES:
        try:
            data = os.read(fd, _MOST_BYTES - size)
        except BlockingIOError:
            return b"".join(parts), False
        if not data:
            return b"".join(parts), True
        parts.append(data)
        size += len(data)
    return b"".join(parts), False
