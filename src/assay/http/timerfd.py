"""The kernel's timer as a file descriptor that can be polled (timerfd_create(2)).

It is about 0.1 ms late, where the time limit of a poll is rounded up to 1 ms. `os` has it since Python 3.13; before that it
is called in the C library. Load workers use it as well, so it imports little.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

_ABSOLUTE = 1
_CLOSE_ON_EXEC = 0o2000000
_NONBLOCKING = 0o4000
_CLOCK_MONOTONIC = 1


def open_timer() -> tuple[int, Callable[[int], None]]:
    """A timerfd, and a function that sets it to a time of the monotonic clock in nanoseconds; 0 for never. On Linux only.

    Setting it also clears it: it need not be read.
    """
    if sys.version_info >= (3, 13):
        fd = os.timerfd_create(_CLOCK_MONOTONIC, flags=os.TFD_CLOEXEC | os.TFD_NONBLOCK)
        return fd, lambda ns: os.timerfd_settime_ns(fd, flags=os.TFD_TIMER_ABSTIME, initial=ns) and None
    return _open_timer_of_libc()


def _open_timer_of_libc() -> tuple[int, Callable[[int], None]]:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.timerfd_create(_CLOCK_MONOTONIC, _CLOSE_ON_EXEC | _NONBLOCKING)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create failed")
    # struct itimerspec: seconds and nanoseconds of the interval, which stays 0, and of the time to ring.
    interval_and_value = (ctypes.c_long * 4)()
    settime, pointer = libc.timerfd_settime, ctypes.byref(interval_and_value)

    def set_timer(ns: int) -> None:
        interval_and_value[2], interval_and_value[3] = divmod(ns, 1_000_000_000)
        settime(fd, _ABSOLUTE, pointer, None)

    return fd, set_timer
