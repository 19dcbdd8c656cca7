"""Waits for what a server does by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
_PATIENCE = 60.0


def wait_for(read: Callable[[], Value], is_right: Callable[[Value], bool]) -> Value:
    """What `read` returns once it is right."""
    end = time.monotonic() + _PATIENCE
    while not is_right(found := read()):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found
