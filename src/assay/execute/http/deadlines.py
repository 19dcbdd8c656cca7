"""Calls at absolute times, a tenth of a millisecond late rather than one: asyncio's own timers round up to 1 ms."""

from __future__ import annotations

import asyncio
import heapq
import os
import sys
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Protocol

_ABSOLUTE = 1
_CLOSE_ON_EXEC = 0o2000000
_NONBLOCKING = 0o4000
_CLOCK_MONOTONIC = 1


class _Alarm(Protocol):
    """Calls once at the time that was set last; None: never."""

    def set(self, when: float | None) -> None: ...

    def close(self) -> None: ...


class Deadlines:
    """Calls functions when their time on the monotonic clock has come, in the order of their times."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = count()
        self._armed = float("inf")
        self._is_firing = False
        self._alarm = _alarm(loop, self._fire)

    def at(self, when: float, call: Callable[[], None]) -> None:
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
        self._is_firing = True
        now = monotonic()
        try:
            while self._heap and self._heap[0][0] <= now:
                heapq.heappop(self._heap)[2]()
        finally:
            self._is_firing = False
            self._arm()


def _alarm(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> _Alarm:
    return _KernelAlarm(loop, call) if sys.platform == "linux" else _LoopAlarm(loop, call)


class _LoopAlarm:
    """Where the event loop's own timers are fine enough, as with kqueue."""

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
        self._fd, self._set = _timer_descriptor()
        loop.add_reader(self._fd, call)

    def set(self, when: float | None) -> None:
        self._set(max(1, round(when * 1e9)) if when is not None else 0)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)


def _timer_descriptor() -> tuple[int, Callable[[int], None]]:
    """A timerfd, and a function that sets it to a time in nanoseconds."""
    if sys.version_info >= (3, 13):
        fd = os.timerfd_create(_CLOCK_MONOTONIC, flags=os.TFD_CLOEXEC | os.TFD_NONBLOCK)
        return fd, lambda ns: os.timerfd_settime_ns(fd, flags=os.TFD_TIMER_ABSTIME, initial=ns) and None
    return _libc_timer_descriptor()


def _libc_timer_descriptor() -> tuple[int, Callable[[int], None]]:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.timerfd_create(_CLOCK_MONOTONIC, _CLOSE_ON_EXEC | _NONBLOCKING)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create failed")
    interval_and_value = (ctypes.c_long * 4)()
    settime, pointer = libc.timerfd_settime, ctypes.byref(interval_and_value)

    def set_timer(ns: int) -> None:
        interval_and_value[2], interval_and_value[3] = divmod(ns, 1_000_000_000)
        settime(fd, _ABSOLUTE, pointer, None)

    return fd, set_timer
