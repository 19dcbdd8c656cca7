"""Axes become points."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Point = dict[str, Any]


def points(axes: Mapping[str, Sequence[Any]], strategy: str, samples: int | None, seed: int) -> list[Point]:
    """Every point of a sweep, in a fixed order; one empty point when there are no axes.

    >>> points({"b": [1, 2], "a": ["x"]}, "cartesian", None, 0)
    [{'a': 'x', 'b': 1}, {'a': 'x', 'b': 2}]
    """
    if not axes:
        return [{}]
    makers = {"cartesian": _cartesian, "zip": _zip}
    if strategy == "random":
        return _random(axes, samples or 1, seed)
    return list(makers[strategy](axes))


def _cartesian(axes: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    names = sorted(axes)
    for values in itertools.product(*(axes[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def _zip(axes: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    names = sorted(axes)
    for values in zip(*(axes[name] for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def _random(axes: Mapping[str, Sequence[Any]], samples: int, seed: int) -> list[Point]:
    """Each axis drawn independently, until there are enough different points or no more to be had."""
    chance = random.Random(seed)
    names = sorted(axes)
    wanted = min(samples, sum(1 for _ in itertools.islice(_distinct(axes), samples)))
    drawn: list[Point] = []
    while len(drawn) < wanted:
        point = {name: chance.choice(axes[name]) for name in names}
        if point not in drawn:
            drawn.append(point)
    return drawn


def _distinct(axes: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    seen: list[Point] = []
    for point in _cartesian(axes):
        if point not in seen:
            seen.append(point)
            yield point
