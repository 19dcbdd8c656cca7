"""Functions and vectors of a user, named in a suite as `tests.scorers.own_scorers:name`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.model import Case


def same_length(output: Any, expected: Any) -> float:
    return float(len(output) == len(expected))


def names_the_case(output: Any, expected: Any, case: Case, prefix: str = "") -> bool:
    return bool(output == prefix + case.id)


async def later(output: Any, expected: Any) -> float:
    return 0.25


def cannot_say(output: Any, expected: Any) -> None:
    return None


def letter_counts(texts: Sequence[str]) -> list[list[float]]:
    return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def broken_vectors(texts: Sequence[str]) -> list[list[float]]:
    return [[float("nan")] for _ in texts]
