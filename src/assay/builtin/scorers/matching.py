"""Which of the expected items an output has, each given item counted at most once.

`fits(expected, given)` decides whether two items belong together. It need not be symmetric or transitive, because a
subset of arguments fits several calls; so items are matched and not merely counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Fits = Callable[[Any, Any], bool]


def placements(expected: Sequence[Any], given: Sequence[Any], fits: Fits) -> Iterator[bool]:
    """For each expected item, whether one of the given is left for it, if others make room.

    The number of True is the size of a maximum bipartite matching. It is built by augmenting paths (Kuhn's algorithm):
    each expected item takes a free given one, or one whose owner can move on to another.
    """
    # By index: the expected item that has a given one, and the given one that an expected item has.
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
    """A free given item that can be reached from the expected one, or None; and from where each given item was reached.

    Breadth first and not by recursion, because what is given may be long.
    """
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
    """Every expected item on the way to the free one takes the given item that follows its own."""
    next_free: int | None = index
    while next_free is not None:
        mover = reached[next_free]
        left = seat.get(mover)
        owner[next_free], seat[mover] = mover, next_free
        next_free = left


def common_in_order(expected: Sequence[Any], given: Sequence[Any], fits: Fits) -> int:
    """Length of the longest common subsequence, by the usual table of which only the last row is kept."""
    above = [0] * (len(given) + 1)
    for wanted in expected:
        row = [0]
        for index, item in enumerate(given):
            row.append(above[index] + 1 if fits(wanted, item) else max(above[index + 1], row[index]))
        above = row
    return above[-1]
