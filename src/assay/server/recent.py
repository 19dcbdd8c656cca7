"""Keeps what was computed a moment ago, so that many who ask for the same cost as much as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by key, each at most `seconds` old. One is computed at a time; others who ask for it wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[Hashable, tuple[float, Value]] = {}
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        with self._lock:
            now = monotonic()
            self._kept = {name: one for name, one in self._kept.items() if now - one[0] < self._seconds}
            if key not in self._kept:
                # Its age counts from before it was computed: it may lack what has happened since.
                self._kept[key] = (now, compute())
            return self._kept[key][1]
