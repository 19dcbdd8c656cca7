"""How much of its time limit the case at hand has left, for agents that wait on purpose."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from contextvars import ContextVar
from time import monotonic

_ends_at: ContextVar[float] = ContextVar("case_ends_at", default=math.inf)


def seconds_left() -> float:
    """Return the seconds until the case of the current task times out; infinite outside of a case."""
    return max(0.0, _ends_at.get() - monotonic())


async def limit_case(asking: Awaitable[None], seconds: float) -> None:
    """Await a case and tell what it calls how long it may take; ending it in time is up to the caller."""
    # Set in here and not by the caller, because a loop that is kept between runs has a context of its own.
    token = _ends_at.set(monotonic() + seconds)
    try:
        await asking
    finally:
        _ends_at.reset(token)
