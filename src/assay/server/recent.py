"""Keeps what was computed a moment ago, so that many who ask for the same cost as much as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")


class KeptByState(Generic[Value]):
    """What takes long to make, by what was asked and the state of the store that it was made of.

    `most` is what all values may weigh together; by default each weighs one.
    """

    def __init__(self, most: int, weigh: Callable[[Value], int] = lambda value: 1) -> None:
        self._most, self._weigh = most, weigh
        self._kept: dict[Hashable, tuple[object, Value]] = {}
        self._lock = Lock()

    def get(self, key: Hashable, state: object, make: Callable[[], Value]) -> Value:
        """The kept value if it was made of the same state; the state is read before anything else is."""
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is not None and kept[0] == state:
                self._kept[key] = kept  # at the end: what was not asked for longest goes first
                return kept[1]
        made = make()
        with self._lock:
            self._kept[key] = (state, made)
            while sum(self._weigh(value) for _, value in self._kept.values()) > self._most:
                del self._kept[next(iter(self._kept))]
        return made


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
            self._kept = {name: one for name, one in self._kept.items() if now - one[0] < self._seconds}
            self._kept[key] = (now, value)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        with self._lock:
            now = monotonic()
            self._kept = {name: one for name, one in self._kept.items() if now - one[0] < self._seconds}
            if key not in self._kept:
                # Its age counts from before it was computed: it may lack what has happened since.
                self._kept[key] = (now, compute())
            return self._kept[key][1]
