"""Values compared as data: in depth, by what JSON would say of them.

The scorers `json`, `tool_calls` and `exact` share this, so that the same two values are equal for all of them. Where order
does not matter, `placements` says which of the expected items an output has, each given item counted at most once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """When two values count as equal.

    A list is like a tuple, a mapping is like any other with the same keys, and 1 equals 1.0. True and 1 differ, as they
    do in JSON, and NaN equals NaN, because a case that expects it means it.
    """

    tolerance: float = 0.0
    ignore_order: bool = False
    subset: bool = False
    """What is expected must be there; what is there beside it does not matter."""

    def same(self, expected: Any, given: Any) -> bool:
        if isinstance(expected, Mapping) and isinstance(given, Mapping):
            if not self.subset and len(expected) != len(given):
                return False
            return all(key in given and self.same(value, given[key]) for key, value in expected.items())
        if isinstance(expected, list | tuple) and isinstance(given, list | tuple):
            return self._same_list(expected, given)
        return self.same_leaf(expected, given)

    def same_leaf(self, expected: Any, given: Any) -> bool:
        if isinstance(expected, bool) or isinstance(given, bool):
            return expected is given
        if isinstance(expected, int | float) and isinstance(given, int | float):
            return self._same_number(expected, given)
        try:
            return bool(expected == given)
        except (ValueError, TypeError):
            # Arrays and the like compare item by item and have no single answer.
            return False

    def _same_number(self, expected: float, given: float) -> bool:
        if expected == given or (expected != expected and given != given):
            return True
        try:
            return abs(expected - given) <= self.tolerance
        except OverflowError:
            return False

    def _same_list(self, expected: Sequence[Any], given: Sequence[Any]) -> bool:
        if len(expected) > len(given) or (not self.subset and len(expected) != len(given)):
            return False
        if self.ignore_order:
            return all(placements(expected, given, self.same))
        if self.subset:
            return common_in_order(expected, given, self.same) == len(expected)
        return all(map(self.same, expected, given))


def leaves(value: Any, ignore_order: bool) -> Iterator[tuple[Path, Any]]:
    """Every value without parts, with the way to it; empty mappings and lists count as such."""
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, Mapping) and item:
            pending += [((*path, ("key", key)), part) for key, part in item.items()]
        elif isinstance(item, list | tuple) and item:
            pending += [((*path, None if ignore_order else n), part) for n, part in enumerate(item)]
        else:
            yield path, item


Fits = Callable[[Any, Any], bool]


def placements(expected: Sequence[Any], given: Sequence[Any], fits: Fits) -> Iterator[bool]:
    """For each expected item, whether one of the given is left for it, if others make room.

    `fits(expected, given)` decides whether two items belong together. It need not be symmetric or transitive, because a
    subset of arguments fits several calls; so items are matched and not merely counted.

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
