"""Caches recent results, so that many equal requests cost as much as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class KeptValue(Generic[Value]):
    """A value, and what it was made of."""

    value: Value
    state: object
    at: float
    """On the monotonic clock."""


class KeptByState(Generic[Value]):
    """What takes long to make, by what was asked and the state of the store that it was made of.

    `most` is what all values may weigh together; by default each weighs one. What was not asked for longest goes first. With
    `seconds`, a value does not get older than that, whatever the state says.
    """

    def __init__(
        self, most: int, weigh: Callable[[Value], int] = lambda value: 1, seconds: float = inf
    ) -> None:
        self._most, self._weigh, self._seconds = most, weigh, seconds
        self._kept: dict[Hashable, KeptValue[Value]] = {}
        self._lock = Lock()

    def recall(self, key: Hashable) -> KeptValue[Value] | None:
        """What was kept last, whatever state it was made of."""
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is not None:
                self._kept[key] = kept  # at the end
            return kept

    def find(self, key: Hashable, state: object) -> Value | None:
        kept = self.recall(key)
        is_current = kept is not None and kept.state == state and monotonic() - kept.at <= self._seconds
        return kept.value if kept is not None and is_current else None

    def put(self, key: Hashable, state: object, value: Value) -> None:
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = KeptValue(value, state, monotonic())
            while len(self._kept) > 1 and self._weight > self._most:
                del self._kept[next(iter(self._kept))]

    @property
    def _weight(self) -> int:
        return sum(self._weigh(kept.value) for kept in self._kept.values())

    def get(self, key: Hashable, state: object, make: Callable[[], Value]) -> Value:
        """The kept value if it was made of the same state.

        The state is read before the value is made: what is stored in between makes the value count as old.
        """
        if (found := self.find(key, state)) is not None:
            return found
        value = make()
        self.put(key, state, value)
        return value


class Recent(Generic[Value]):
    """Values by key, each at most `seconds` old. One is computed at a time; others who ask for it wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[Hashable, tuple[float, Value]] = {}
        self._lock = Lock()

    def peek(self, key: Hashable) -> Value | None:
        """What is kept and fresh; never computes and never waits."""
        at, value = self._kept.get(key, (0.0, None))
        return value if monotonic() - at < self._seconds else None

    def put(self, key: Hashable, value: Value) -> None:
        with self._lock:
            now = monotonic()
            self._kept = {name: entry for name, entry in self._kept.items() if now - entry[0] < self._seconds}
            self._kept[key] = (now, value)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        with self._lock:
            now = monotonic()
            self._kept = {name: entry for name, entry in self._kept.items() if now - entry[0] < self._seconds}
            if key not in self._kept:
                # Its age counts from before it was computed: it may lack what has happened since.
                self._kept[key] = (now, compute())
            return self._kept[key][1]
