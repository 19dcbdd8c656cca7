"""Calls sync functions in threads and awaits them on the event loop.

This is how a sync agent that is thread-safe works on many cases at a time, driven by the same tasks as an async one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Thread

Call = Callable[[], None]
_Item = tuple[Call, Context, "asyncio.Future[BaseException | None]"]


class CallingThread:
    """Makes one call after the other in a thread of its own, so that what an agent keeps for each thread is kept.

    A call that is not waited for any longer cannot be ended: its thread is left alone with it, and ends with the process.
    """

    def __init__(self) -> None:
        self._items: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, name="assay-execution", daemon=True)
        self._thread.start()

    async def call(self, function: Call) -> None:
        """Have the thread call the function, in a copy of the caller's context; raises what the function raised."""
        future = asyncio.get_running_loop().create_future()
        self._items.put((function, copy_context(), future))
        if (error := await future) is not None:
            raise error

    def close(self) -> None:
        """Let the thread end after the call in progress."""
        self._items.put(None)

    def _serve(self) -> None:
        while (item := self._items.get()) is not None:
            function, context, future = item
            error: BaseException | None = None
            try:
                context.run(function)
            except BaseException as raised:
                error = raised
            # The loop may be closed already if the answer is no longer awaited.
            with contextlib.suppress(RuntimeError):
                future.get_loop().call_soon_threadsafe(_settle, future, error)


def _settle(future: asyncio.Future[BaseException | None], error: BaseException | None) -> None:
    if not future.done():
        future.set_result(error)


_BUSY_SHARE = 0.7
"""The share of the elapsed time in CPU seconds of all threads from which on they count as held up by each other."""


def describe_contention(threads: int, cpu_seconds: float, elapsed: float) -> str | None:
    """A doubt about the times of threads that compute: Python runs the code of one thread at a time.

    >>> describe_contention(8, cpu_seconds=0.1, elapsed=1.0)
    >>> describe_contention(8, cpu_seconds=0.9, elapsed=1.0)[:51]
    '8 executions at a time kept Python busy for 90 % of'
    """
    if not elapsed or cpu_seconds < _BUSY_SHARE * elapsed:
        return None
    return (
        f"{threads} executions at a time kept Python busy for {100 * cpu_seconds / elapsed:.0f} % of the time. Only one thread "
        "computes at a time, so their seconds include waiting for each other. Use concurrency: 1 for an agent that computes "
        "rather than waits."
    )
