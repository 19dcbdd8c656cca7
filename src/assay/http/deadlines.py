"""Calls functions at absolute times, about 0.1 ms late instead of 1 ms.

The simulated server sends each token at a moment of its own, and asyncio's timers on Linux round up to the millisecond of
epoll. So one timer of the kernel is set to the earliest of all deadlines, which are kept in a heap.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import sys
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Protocol

from assay.http.timerfd import open_timer


class _Alarm(Protocol):
    """Calls a function once, at the time that was set last.

    The time is on the monotonic clock in seconds; None means never. Setting another time replaces the one
    before, so an owner with many deadlines sets only the earliest.
    """

    def set(self, when: float | None) -> None: ...

    def close(self) -> None: ...


class Deadlines:
    """Calls functions when their time on the monotonic clock has come, in the order of their times."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = count()
        self._armed = float("inf")
        self._is_firing = False
        self._alarm: _Alarm = (
            _KernelAlarm(loop, self._fire) if sys.platform == "linux" else _LoopAlarm(loop, self._fire)
        )

    def at(self, when: float, call: Callable[[], None]) -> None:
        # The running number keeps the order of equal times, and keeps the heap from comparing functions.
        heapq.heappush(self._heap, (when, next(self._ties), call))
        if not self._is_firing and when < self._armed:
            self._arm()

    def close(self) -> None:
        self._heap.clear()
        self._alarm.close()

    def _arm(self) -> None:
        if self._heap:
            self._armed = self._heap[0][0]
            self._alarm.set(self._armed)
        else:
            self._armed = float("inf")
            self._alarm.set(None)

    def _fire(self) -> None:
        """Call all that is due. What they schedule meanwhile does not set the alarm each time, only once at the end."""
        # The clock is read once: what falls due during these calls waits for the next round, and the event loop gets its turn.
        self._is_firing = True
        now = monotonic()
        try:
            while self._heap and self._heap[0][0] <= now:
                heapq.heappop(self._heap)[2]()
        finally:
            self._is_firing = False
            self._arm()


class _LoopAlarm:
    """An alarm for event loops whose own timers are precise enough, as with kqueue."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    def set(self, when: float | None) -> None:
        self.close()
        if when is not None:
            self._timer = self._loop.call_later(when - monotonic(), self._call)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _KernelAlarm:
    """A timerfd among the event loop's descriptors; it need not be read, because setting it clears it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self._fd, self._set = open_timer()
        loop.add_reader(self._fd, call)

    def set(self, when: float | None) -> None:
        self._set(max(1, round(when * 1e9)) if when is not None else 0)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
