"""Waking at a moment: the kernel's timer where there is one, which is ten times more exact than a poll's time limit."""

from __future__ import annotations

import contextlib
import os
import sys
import time

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

    def patience(self, longest: float) -> float:
        """Seconds that a poll may wait: the longest allowed or, where there is no timer, until it would ring."""
        if self.fd >= 0:
            return longest
        return max(0.0, min(longest, self._set_at - time.monotonic()))
