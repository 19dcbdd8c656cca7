"""Answers that wait to be scored when the load is over.

A load may bring back millions; a random sample of them, drawn as they come, is enough to estimate their quality.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Generic, TypeVar

MOST_ANSWERS = 5000
MOST_CHARACTERS = 256 * 2**20
"""Of what they say together."""

T = TypeVar("T")


class Kept(Generic[T]):
    """A random sample of bounded size: of more than can be kept, each answer has the same chance to be among them.

    This is reservoir sampling (Vitter's algorithm R), with a fixed seed. Where answers are so long that the sample would
    take too many characters, half of it is dropped at random, and it stays that small.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[T, int]] = []
        self._seen, self._most, self._characters = 0, MOST_ANSWERS, 0
        self._chance = random.Random(1)

    def __iter__(self) -> Iterator[T]:
        return (answer for answer, _ in self._kept)

    def add(self, answer: T, characters: int) -> None:
        self._seen += 1
        if len(self._kept) < self._most:
            self._kept.append((answer, characters))
        elif (place := self._chance.randrange(self._seen)) < self._most:
            self._characters -= self._kept[place][1]
            self._kept[place] = (answer, characters)
        else:
            return
        self._characters += characters
        while self._characters > MOST_CHARACTERS and len(self._kept) > 1:
            self._chance.shuffle(self._kept)
            del self._kept[len(self._kept) // 2 :]
            self._most = len(self._kept)
            self._characters = sum(size for _, size in self._kept)
