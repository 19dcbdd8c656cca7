"""How far the clock of another machine is ahead of ours, measured as NTP does: by asking it several times.

The asking side knows that the other clock was read between question and answer, and takes the middle; the error is at most half of
the round trip. The shortest of several round trips therefore knows best. See Mills, RFC 5905, section 10, the clock filter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

ROUND_TRIPS = 10


@dataclass(frozen=True, slots=True)
class ClockTimes:
    """One reading of a machine's clocks, in seconds: the monotonic one, by which loads are timed, and that of the wall."""

    monotonic: float
    wall: float

    @classmethod
    def read(cls) -> ClockTimes:
        return cls(time.monotonic(), time.time())


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The seconds by which another machine's clocks are ahead of ours, each within `uncertainty`."""

    monotonic: float
    wall: float
    uncertainty: float


def measure_clock_offset(
    ask: Callable[[], ClockTimes],
    read: Callable[[], ClockTimes] = ClockTimes.read,
    round_trips: int = ROUND_TRIPS,
) -> ClockOffset:
    """`ask` returns the other machine's clocks, and `read` ours."""
    return min((_ask_once(ask, read) for _ in range(round_trips)), key=lambda offset: offset.uncertainty)


def _ask_once(ask: Callable[[], ClockTimes], read: Callable[[], ClockTimes]) -> ClockOffset:
    before = read()
    reading = ask()
    after = read()
    return ClockOffset(
        reading.monotonic - (before.monotonic + after.monotonic) / 2,
        reading.wall - (before.wall + after.wall) / 2,
        (after.monotonic - before.monotonic) / 2,
    )
