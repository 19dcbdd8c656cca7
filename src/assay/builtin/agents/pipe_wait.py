"""Two ways to wait for a program: by polling its pipes, or on an event loop.

Both take what a dialogue yields (`Wait`) and return when that may have come, at the latest after `LONGEST_WAIT`. Polling is
for one request at a time, where the time of an answer is measured and a loop would add to it.
"""

from __future__ import annotations

import asyncio
import os
import select
import time

from assay.builtin.agents.child import Child
from assay.builtin.agents.dialogue import LONGEST_WAIT, MOMENT, Wait

_MILLISECONDS = int(LONGEST_WAIT * 1000)
_LOOKS = 60 if hasattr(os, "sched_yield") else 0
"""They take about a tenth of a millisecond."""


class Polling:
    """For one program at a time: no thread and no event loop between the caller and the pipe."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._poll = select.poll()
        self._poll.register(child.stdout, select.POLLIN)

    def wait(self, wait: Wait) -> None:
        if wait is Wait.READABLE:
            self._look_again() or self._poll.poll(_MILLISECONDS)
        elif wait is Wait.READABLE_OR_WRITABLE:
            self._poll.register(self.child.stdin, select.POLLOUT)
            self._poll.poll(_MILLISECONDS)
            self._poll.unregister(self.child.stdin)
        else:
            time.sleep(MOMENT)

    def _look_again(self) -> bool:
        """Look for a moment before going to sleep: waking up from that takes longer than a quick program's answer.

        The core is offered to others at every look, so that a program on the same one is not kept waiting.
        """
        for _ in range(_LOOKS):
            if self._poll.poll(0):
                return True
            os.sched_yield()
        return False


async def ready(child: Child, wait: Wait) -> None:
    """The same on the running loop, so that other requests go on meanwhile."""
    if wait is Wait.MOMENT:
        await asyncio.sleep(MOMENT)
        return
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()
    at_latest = loop.call_later(LONGEST_WAIT, _wake, woken)
    loop.add_reader(child.stdout, _wake, woken)
    if wait is Wait.READABLE_OR_WRITABLE:
        loop.add_writer(child.stdin, _wake, woken)
    try:
        await woken
    finally:
        at_latest.cancel()
        loop.remove_reader(child.stdout)
        if wait is Wait.READABLE_OR_WRITABLE:
            loop.remove_writer(child.stdin)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
