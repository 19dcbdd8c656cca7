"""How many requests of one agent may be under way: fewer after each refusal, slowly more after successes."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from time import monotonic

_CUT = 0.5


class Throttle:
    """Additive increase, multiplicative decrease; unlimited until the server refuses for the first time.

    `enter` before a request and `leave` after it. Refusals of requests that were sent before the last cut say nothing
    new: the cut had not had its effect yet.
    """

    def __init__(self) -> None:
        self.limit = math.inf
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shut_until = 0.0
        self._cut_at = 0.0

    async def enter(self) -> None:
        while (pause := self._shut_until - monotonic()) > 0:
            await asyncio.sleep(pause)
        while self._under_way >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake_next()
                raise
        self._under_way += 1

    def leave(self) -> None:
        self._under_way -= 1
        self._wake_next()

    def succeeded(self) -> None:
        if self.limit < math.inf:
            self.limit += 1 / self.limit
            self._wake_next()

    def refused(self, sent: float, pause: float) -> None:
        """The server wants fewer: `sent` is when the request began (monotonic), `pause` what it asks to wait."""
        now = monotonic()
        self._shut_until = max(self._shut_until, now + pause)
        if sent >= self._cut_at:
            self._cut_at = now
            self.limit = max(1.0, _CUT * min(self.limit, self._under_way))

    def _wake_next(self) -> None:
        """As many as may go; each looks again for itself, because another may have been quicker."""
        free = self.limit - self._under_way
        while self._waiting and free >= 1:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
