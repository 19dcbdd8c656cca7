"""Promises about speed, held against how fast this machine is at the moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

QUICK_SECONDS = 0.02
"""What the same work takes on a machine of today."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """The block may take so much processor time of its own thread, on a slow machine so many times more as that machine is slower."""
    began = thread_time()
    yield
    taken = thread_time() - began
    if taken < seconds:
        return  # on any machine; how slow this one is takes longer to find out than most blocks
    allowed = seconds * max(_slowness(), _slowness())
    assert taken < allowed, f"took {taken:.3f} s of processor time, more than {allowed:.3f} s"


def _slowness() -> float:
    """The best of five, for what others do on the same processor makes it slower for moments only."""
    return max(1.0, min(_worked() for _ in range(5)) / QUICK_SECONDS)


def _worked() -> float:
    began = thread_time()
    text = ""
    for number in range(100_000):
        text = f"{number * number % 97}{text[:5]}"
    return thread_time() - began
