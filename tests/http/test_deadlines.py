from __future__ import annotations

import asyncio
import statistics
from functools import partial
from time import monotonic

from assay.http.deadlines import Deadlines


def test_calls_come_in_the_order_of_their_times_and_never_early() -> None:
    async def scene() -> list[tuple[int, float]]:
        deadlines = Deadlines(asyncio.get_running_loop())
        start = monotonic()
        called: list[tuple[int, float]] = []
        done = asyncio.Event()

        def call(place: int, when: float) -> None:
            called.append((place, monotonic() - when))

        for place in (3, 1, 4, 2, 0):
            when = start + place * 0.01
            deadlines.at(when, partial(call, place, when))
        deadlines.at(start + 0.05, done.set)
        await done.wait()
        deadlines.close()
        return called

    called = asyncio.run(scene())

    assert [place for place, _ in called] == [0, 1, 2, 3, 4]
    assert all(late >= 0 for _, late in called)


def test_a_call_may_ask_for_the_next_one() -> None:
    async def scene() -> list[float]:
        deadlines = Deadlines(asyncio.get_running_loop())
        start, done = monotonic(), asyncio.Event()
        late: list[float] = []

        def tick() -> None:
            due = start + (len(late) + 1) * 0.0013
            late.append(monotonic() - due)
            if len(late) < 20:
                deadlines.at(due + 0.0013, tick)
            else:
                done.set()

        deadlines.at(start + 0.0013, tick)
        await done.wait()
        deadlines.close()
        return late

    def look() -> float:
        late = asyncio.run(scene())
        assert min(late) >= 0
        return statistics.median(late)

    # The event loop's own timers are 0.5 ms late at the median, on any machine: they are rounded up to whole ones.
    # The best of many: where others want the processor as well, most are late, but not all.
    assert any(look() < 0.0005 for _ in range(200))
