"""The axes of a sweep become points: each point has one value of every axis.

`cartesian` makes all combinations, `zip` the first values together, the second ones and so on, and `random` draws some of the
combinations without writing all of them down. Axes are taken in the order of their names, so the same sweep always gives
the same points in the same order.
"""

from __future__ import annotations

import itertools
import json
import math
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
    ordered = {name: axes[name] for name in sorted(axes)}
    match strategy:
        case "zip":
            return [_point(ordered, values) for values in zip(*ordered.values(), strict=True)]
        case "random":
            return list(_random(ordered, samples or 1, seed))
        case _:
            return [_point(ordered, values) for values in itertools.product(*ordered.values())]


def count(axes: Mapping[str, Sequence[Any]], strategy: str, samples: int | None) -> int:
    """How many points there would be at the most."""
    lengths = [len(values) for values in axes.values()]
    product = math.prod(lengths)
    return {"zip": max(lengths, default=1), "random": min(product, samples or 1)}.get(strategy, product)


def _point(axes: Mapping[str, Sequence[Any]], values: Sequence[Any]) -> Point:
    return dict(zip(axes, values, strict=True))


def _random(axes: Mapping[str, Sequence[Any]], samples: int, seed: int) -> Iterator[Point]:
    """Different points, each as likely as any other; all of them in random order where fewer than `samples` exist."""
    # A value that is written twice would make some points twice as likely, and the draw could not keep its promise of
    # different points. Points are numbered and drawn by number: a sweep of ten axes with ten values has ten billion points.
    different = {
        name: list({as_text(value): value for value in values}.values()) for name, values in axes.items()
    }
    for number in _draw_numbers(math.prod(map(len, different.values())), samples, random.Random(seed)):
        yield _build_point(different, number)


def _draw_numbers(total: int, samples: int, chance: random.Random) -> list[int]:
    """Different numbers below `total`; `random.sample` cannot take a range whose length does not fit into 63 bits."""
    if total < 2**62:
        return chance.sample(range(total), min(samples, total))
    numbers: dict[int, None] = {}
    while len(numbers) < samples:
        numbers[chance.randrange(total)] = None
    return list(numbers)


def _build_point(axes: Mapping[str, Sequence[Any]], number: int) -> Point:
    """The point of that number among all combinations: the digits of the number in a mixed radix, one digit an axis."""
    point = {}
    for name, values in axes.items():
        number, place = divmod(number, len(values))
        point[name] = values[place]
    return point


def as_text(value: Any) -> str:
    """The same text for the same value; 1, 1.0 and true are three values.

    Python takes them for equal, but a param of a different type may be treated in a different way by what is measured.
    """
    return json.dumps(value, sort_keys=True, default=repr)
