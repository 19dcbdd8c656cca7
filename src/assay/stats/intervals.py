"""Sets of intervals on a line: stretches of time in which something was the case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same points in disjoint intervals, in order.

    >>> union([(3, 4), (0, 1), (0.5, 2), (4, 4)])
    [(0, 2), (3, 4)]
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def intersect(first: Sequence[Interval], second: Sequence[Interval]) -> list[Interval]:
    """What is in both; each is given as `union` returns it.

    >>> intersect([(0, 2), (3, 5)], [(1, 4)])
    [(1, 2), (3, 4)]
    """
    found: list[Interval] = []
    i = j = 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if start < end:
            found.append((start, end))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return found


def length(intervals: Iterable[Interval]) -> float:
    """Return the total length of disjoint intervals, as `union` returns them."""
    return sum(end - start for start, end in intervals)
