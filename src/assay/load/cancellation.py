"""Requests that the client gives up on purpose, as people close a page before it is there (option --cancel-after).

Servers that continue computing for clients who have left lose capacity; a load with cancellations shows it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.load.channel import Channel

CANCELLED = "cancelled"
_DRAWN = 1000


class Cancellations:
    """Which requests are given up, and when: the same for the same seed, and exactly the share that was asked for.

    A worker calls `plan` when it sends a request and `due` in its loop.
    """

    __slots__ = ("_is_chosen", "after", "pending")

    def __init__(self, after: float | None, share: float, seed: int) -> None:
        self.after = after
        # Shuffled and not drawn one by one: of any thousand requests exactly the share is given up.
        chosen = round(_DRAWN * share)
        self._is_chosen = [True] * chosen + [False] * (_DRAWN - chosen)
        random.Random(f"cancel {seed}").shuffle(self._is_chosen)
        self.pending: deque[tuple[float, Channel, int]] = deque()
        """When, on which connection, and which request; the next one first, as all wait as long."""

    def plan(self, channel: Channel, number: int, begun: float) -> None:
        if self.after is not None and self._is_chosen[number % _DRAWN]:
            self.pending.append((begun + self.after, channel, number))

    def due(self, now: float) -> Iterator[Channel]:
        """Connections to close now; a request that has ended by itself is left alone."""
        while self.pending and self.pending[0][0] <= now:
            _, channel, number = self.pending.popleft()
            if channel.number == number:
                yield channel
