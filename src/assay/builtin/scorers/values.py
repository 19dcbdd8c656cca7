"""Values compared as data: in depth, by what JSON would say of them.

The scorers `json`, `tool_calls` and `exact` share this, so that the same two values are equal for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.builtin.scorers.matching import common_in_order, placements

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
