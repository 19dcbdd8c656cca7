"""How many requests of one agent may be under way, and how soon after one another they are sent.

The rule is that of TCP congestion control, additive increase and multiplicative decrease: it finds the rate that a server
allows without knowing its limits, and shares it fairly with other clients.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from time import monotonic

_CUT = 0.5
_FIRST_GAP = 0.005
_LONGEST_GAP = 1.0
"""Where the server does not say how long to wait."""
_SHRINK = 0.99


class Throttle:
    """Unlimited until the server refuses for the first time; from then on slower at each refusal, quicker at successes.

    The number under way is halved at a refusal and grows by one a round. Where answers come at once that is not
    enough to keep within a rate, so the gap between two requests is doubled, too, up to what the server asks to wait, and
    shrinks slowly.
    `enter` before a request and `leave` after it.
    """

    def __init__(self) -> None:
        self.limit = math.inf
        self.gap = 0.0
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_at = 0.0
        self._slowed_at = 0.0

    async def enter(self, timeout: float = math.inf) -> None:
        """Wait for a free place, and for the pause that a server asked for if it takes at most `timeout` seconds."""
        while self._under_way >= self.limit:
            await self._turn()
        self._under_way += 1
        try:
            while 0 < (pause := self._next_at - monotonic()) <= timeout:
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            self.leave()
            raise
        self._next_at = monotonic() + self.gap

    def leave(self) -> None:
        self._under_way -= 1
        self._wake_next()

    def record_success(self) -> None:
        self.gap *= _SHRINK
        if self.limit < math.inf:
            self.limit += 1 / self.limit
            self._wake_next()

    def record_refusal(self, sent: float, pause: float) -> None:
        """Slow down, because the server wants fewer requests: `sent` is when the refused one began,
        `pause` what the server asks to wait.

        The limit is cut multiplicatively and later raised additively, as TCP does it, so that several
        clients end up with fair shares. A refusal of what was sent before the last slowing down says
        nothing new: it had not had its effect yet.
        """
        now = monotonic()
        self._next_at = max(self._next_at, now + pause)
        if sent >= self._slowed_at:
            self._slowed_at = self._next_at
            self.limit = max(1.0, _CUT * min(self.limit, self._under_way))
            self.gap = min(max(_FIRST_GAP, 2 * self.gap), pause or _LONGEST_GAP)

    async def _turn(self) -> None:
        """Wait in line; a waiter that is cancelled passes its turn on."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._wake_next()
            raise

    def _wake_next(self) -> None:
        """Wake as many waiting requests as may go now.

        Each looks again for itself, because another one may have been quicker.
        """
        free = self.limit - self._under_way
        while self._waiting and free >= 1:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
