"""Expected things brought together with given ones, each at most once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Fits = Callable[[Any, Any], bool]


def placements(expected: Sequence[Any], given: Sequence[Any], fits: Fits) -> Iterator[bool]:
    """For each of the expected, whether it finds one of the given, if others make room: a largest matching."""
    owner: dict[int, int] = {}
    seat: dict[int, int] = {}
    for wanted in range(len(expected)):
        free, reached = _way_to_a_free_one(wanted, expected, given, fits, owner)
        if free is not None:
            _move_up(free, reached, owner, seat)
        yield free is not None


def _way_to_a_free_one(
    wanted: int, expected: Sequence[Any], given: Sequence[Any], fits: Fits, owner: dict[int, int]
) -> tuple[int | None, dict[int, int]]:
    """Breadth first, not by recursion: what is given may be long."""
    reached: dict[int, int] = {}
    queue = deque([wanted])
    while queue:
        current = queue.popleft()
        for index, item in enumerate(given):
            if index in reached or not fits(expected[current], item):
                continue
            reached[index] = current
            if index not in owner:
                return index, reached
            queue.append(owner[index])
    return None, reached


def _move_up(index: int, reached: dict[int, int], owner: dict[int, int], seat: dict[int, int]) -> None:
    """Everyone on the way takes the seat after their own."""
    next_free: int | None = index
    while next_free is not None:
        mover = reached[next_free]
        left = seat.get(mover)
        owner[next_free], seat[mover] = mover, next_free
        next_free = left


def common_in_order(expected: Sequence[Any], given: Sequence[Any], fits: Fits) -> int:
    """Length of the longest common subsequence."""
    above = [0] * (len(given) + 1)
    for wanted in expected:
        row = [0]
        for index, item in enumerate(given):
            row.append(above[index] + 1 if fits(wanted, item) else max(above[index + 1], row[index]))
        above = row
    return above[-1]
