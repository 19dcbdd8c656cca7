"""Priorities of what works beside a load and must not take the processor from its workers.

Reading metrics, adding up results and drawing the live view are work that can wait, while a request that
leaves late falsifies the measurement. Threads for such work therefore run at the lowest priority, and get
the usual one back only when they fall behind.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

_LOWEST = 19
_LATE = 0.1
"""Seconds after which a thread that should have woken up gets too little of the processor."""
_PILED_UP = 1 / 8
"""Share of a pipe beyond which a worker may soon have to wait for it to be read."""


def lower_priority() -> None:
    """Lower the priority of the calling thread and of those that it starts.

    Only Linux knows priorities of threads; elsewhere nothing happens.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)


_IDLE_SECONDS = 2.0
"""After which work that should be done by then gets its share of the processor."""


def take_usual_priority() -> None:
    """Take the usual priority back, for a thread that must not wait.

    It inherits the priority of the thread that started it, which may have been lowered.
    """
    if sys.platform == "linux" and os.sched_getscheduler(0) in (os.SCHED_IDLE, os.SCHED_BATCH):
        _schedule(os.SCHED_OTHER)


class BackgroundPriority:
    """While workers have to be on time, the thread that adds up their results takes no processor from them.

    Scheduled as *idle*, it runs only while nothing else wants its core: a worker that wakes up preempts it at once, also in the
    middle of a progress line. *Batch*, a gentler priority, is where it begins, and what it goes back to on a machine so busy that
    being idle would leave it no time at all, or where results pile up.
    """

    def __init__(self) -> None:
        self._is_possible = False
        self._is_idle = False
        self._punctual = 0
        self._punctual_needed = 1

    def __enter__(self) -> BackgroundPriority:
        # A user's own choice, as with `nice` or `chrt`, is left alone.
        with contextlib.suppress(OSError):
            self._is_possible = sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER
        if self._is_possible:
            _schedule(os.SCHED_BATCH)
        return self

    @contextlib.contextmanager
    def idle(self) -> Iterator[None]:
        """Work that cannot adapt to how busy the machine is, as loading modules: idle, but not for ever."""
        if not self._is_possible:
            yield
            return
        hurry = threading.Timer(_IDLE_SECONDS, _schedule, (os.SCHED_BATCH, threading.get_native_id()))
        hurry.daemon = True
        # Before, as a thread takes over the priority of the one that starts it.
        hurry.start()
        _schedule(os.SCHED_IDLE)
        try:
            yield
        finally:
            hurry.cancel()
            _schedule(os.SCHED_BATCH)

    def adapt(self, delay: float = 0.0, backlog: float = 0.0) -> None:
        """Adapt the priority to how late this thread woke up, and to how full a pipe of results is.

        A thread that comes late or whose pipe fills up gets its share of the processor back at once; it
        is lowered again only after a while without delay.
        """
        if not self._is_possible:
            return
        is_short_of_time = delay > _LATE or backlog > _PILED_UP
        self._punctual = 0 if is_short_of_time else self._punctual + 1
        if is_short_of_time and self._is_idle:
            # Each time that it was wrong to be idle, it takes ten times as many punctual wake-ups to try again.
            self._is_idle = False
            self._punctual_needed *= 10
            _schedule(os.SCHED_BATCH)
        elif not self._is_idle and self._punctual >= self._punctual_needed:
            self._is_idle = True
            _schedule(os.SCHED_IDLE)

    def restore(self) -> None:
        if self._is_possible:
            self._is_possible = self._is_idle = False
            _schedule(os.SCHED_OTHER)

    def __exit__(self, *_: object) -> None:
        self.restore()


def _schedule(policy: int, thread: int = 0) -> None:
    """A thread by the system's number, or the one that calls this."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(thread, policy, os.sched_param(0))
