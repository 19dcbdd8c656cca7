"""How a worker waits: for sockets by epoll or what comes nearest to it, and for a moment by the kernel's timer.

The timer is ten times more exact than the time limit of a poll, which the kernel rounds up to whole milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from typing import Any

from assay.http.timerfd import open_timer


class Alarm:
    """Readable from the moment it is set to; `fd` is -1 on systems that have no such timer."""

    def __init__(self) -> None:
        self.fd = -1
        self._set_at = float("inf")
        if sys.platform == "linux":
            # Where a sandbox forbids it, polls wait by their time limit.
            with contextlib.suppress(OSError):
                self.fd, self._set_timer = open_timer()

    def set(self, at: float) -> None:
        """`at` on the clock of `time.monotonic`; infinity for never."""
        if at == self._set_at or self.fd < 0:
            self._set_at = at
            return
        self._set_at = at
        self._set_timer(0 if at == float("inf") else max(1, int(at * 1e9)))

    def stop_ringing(self) -> None:
        self._set_at = float("inf")
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)

    def compute_timeout(self, longest: float) -> float:
        """Seconds that a poll may wait: the longest allowed or, where there is no timer, until it would ring."""
        if self.fd >= 0:
            return longest
        return max(0.0, min(longest, self._set_at - time.monotonic()))


def poller() -> Any:
    """`select.epoll`, or as much of it as a worker needs where the system has none, as on macOS."""
    return select.epoll() if hasattr(select, "epoll") else Poll()


class Poll:
    """Takes and gives the bits of epoll, of which a worker uses 1 (readable) and 4 (writable)."""

    def __init__(self) -> None:
        # Imported here: on Linux no worker needs it, and every import delays the first request.
        import selectors

        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int) -> None:
        self._selector.register(fd, _to_selector_events(events))

    def modify(self, fd: int, events: int) -> None:
        self._selector.modify(fd, _to_selector_events(events))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        # EVENT_READ is 1 as in epoll; EVENT_WRITE is 2 and not 4.
        return [(key.fd, events & 1 | (events & 2) << 1) for key, events in self._selector.select(timeout)]


def _to_selector_events(events: int) -> int:
    return events & 1 | (events & 4) >> 1
