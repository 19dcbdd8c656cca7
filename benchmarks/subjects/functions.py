"""The functions that every tool is given."""

from __future__ import annotations


def empty() -> None:
    pass


def ten_microseconds() -> int:
    """About 10 µs of plain arithmetic on a processor of the 2020s."""
    total = 0
    for number in range(270):
        total += number * number
    return total
