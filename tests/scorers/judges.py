"""Agents that judge in known ways; a suite names them as `tests.scorers.judges:Name`."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from assay.model import Answer, Request


class Steady:
    """Always gives the same reply, and keeps what it was asked."""

    is_simulated: ClassVar[bool] = True
    is_free: ClassVar[bool] = True
    asked: ClassVar[list[Request]] = []

    def __init__(self, reply: object = '{"score": 4}') -> None:
        self._reply = reply
        self.opened = 0

    def open(self) -> None:
        self.opened += 1

    def answer(self, request: Request) -> Answer:
        assert self.opened == 1
        Steady.asked.append(request)
        return Answer(self._reply)

    def close(self) -> None:
        return None

    def found_version(self) -> str:
        return ""


class Wavering(Steady):
    """Another mark each time."""

    def __init__(self, marks: list[float]) -> None:
        super().__init__()
        self._marks = marks
        self._turn = 0

    def answer(self, request: Request) -> Answer:
        self._turn += 1
        return Answer(f"score: {self._marks[(self._turn - 1) % len(self._marks)]}")


class Patient:
    """Async throughout."""

    is_simulated: ClassVar[bool] = True
    is_free: ClassVar[bool] = True

    def __init__(self) -> None:
        self.opened = 0

    async def open(self) -> None:
        await asyncio.sleep(0)
        self.opened += 1

    async def answer(self, request: Request) -> Answer:
        assert self.opened == 1
        await asyncio.sleep(0)
        return Answer({"score": 5})

    async def close(self) -> None:
        return None

    def found_version(self) -> str:
        return ""
