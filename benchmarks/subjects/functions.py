"""The functions that every tool is given."""

from __future__ import annotations


def empty() -> None:
    pass


def ten_microseconds() -> int:
    """About 10 µs of plain arithmetic on a processor of the 2020s.

    Only numbers that Python keeps ready: what an allocation costs depends on the heap that a tool leaves behind.
    """
    mixed = 0
    for number in range(145):
        mixed = (mixed ^ number) & 127
    for number in range(145):
        mixed = (mixed | number) & 127
    return mixed
