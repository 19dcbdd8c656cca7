"""Event loops: the fastest that is installed, and one in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, Self, TypeVar

_CLOSING_ROUNDS = 5
"""Rounds of a loop from accepting a connection to having closed it: task, protocol, transport, abort, loss."""
T = TypeVar("T")


def fast_loop() -> asyncio.AbstractEventLoop:
    """uvloop's if it is installed; use as the loop_factory of asyncio.Runner."""
    try:
        loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    except ImportError:
        loop = asyncio.new_event_loop()
    return loop


class LoopThread:
    """An event loop in a thread of its own, for servers that must answer while the main thread is busy.

    `prepare` is called in the thread before the loop starts, to set its priority for instance.
    """

    def __init__(self, name: str, prepare: Callable[[], None] | None = None) -> None:
        self._prepare = prepare
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()
        # The loop exists only once the thread runs, and `run` needs it.
        self._is_ready.wait()

    def stop(self) -> None:
        """Tasks that still run there are cancelled."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run the coroutine on the loop and wait for it; returns or raises what it does."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def _run(self) -> None:
        if self._prepare is not None:
            self._prepare()

        async def live() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            self._is_ready.set()
            await self._ended.wait()
            for _ in range(_CLOSING_ROUNDS):
                await asyncio.sleep(0)

        asyncio.run(live())
