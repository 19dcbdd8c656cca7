"""The fastest event loop to be had."""

from __future__ import annotations

import asyncio
from importlib import import_module


def fast_loop() -> asyncio.AbstractEventLoop:
    """uvloop's if it is installed; use as the loop_factory of asyncio.Runner."""
    try:
        loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    except ImportError:
        loop = asyncio.new_event_loop()
    return loop
