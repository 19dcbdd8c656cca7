"""Indexes over points in the plane: SciPy's and scikit-learn's trees, a quadtree and a spatial hash.

All of them answer the same three questions for a batch of queries, each by the interface that suits it best: one call for the
trees written in C, a loop for those written in Python. `describe` reports what is really in use, read from the object itself.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from assay.errors import MissingExtra

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Found = Sequence[Sequence[int] | Ids]
"""For each query, the entities that it found, in any order."""
Algorithm = Literal[
    "kd_tree", "quadtree", "spatial_hash", "sklearn_kd_tree", "sklearn_ball_tree", "brute_force"
]


class SpatialIndex(Protocol):
    """Finds entities by their place. Entities are numbered from 0; a box is given by its centre and half its sides."""

    def radius(self, centres: Floats, radius: float) -> Found:
        """The entities within a distance of each centre, the rim included."""
        ...

    def box(self, centres: Floats, half: Floats) -> Found:
        """The entities in a box around each centre, the edges included."""
        ...

    def nearest(self, centres: Floats) -> Ids:
        """The entity nearest to each centre."""
        ...

    def move(self, ids: Ids, places: Floats) -> None:
        """Give entities new places; the next query must find them there."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """The algorithm, the number of entities and the parameters that are in effect."""
        ...


class BruteForce:
    """Looks at every entity: the reference that the others are checked against, and an arm of its own."""

    def __init__(self, places: Floats) -> None:
        self.places = places.copy()

    def radius(self, centres: Floats, radius: float) -> Found:
        return [
            np.flatnonzero(_squares(self.places, centre) <= radius * radius).astype(np.int64)
            for centre in centres
        ]

    def box(self, centres: Floats, half: Floats) -> Found:
        return [
            np.flatnonzero((np.abs(self.places - centre) <= half).all(axis=1)).astype(np.int64)
            for centre in centres
        ]

    def nearest(self, centres: Floats) -> Ids:
        return np.array([_squares(self.places, centre).argmin() for centre in centres], dtype=np.int64)

    def move(self, ids: Ids, places: Floats) -> None:
        self.places[ids] = places

    def describe(self) -> Mapping[str, Any]:
        return {"algorithm": "brute_force", "agent_count": len(self.places)}


class _StaticTree:
    """A tree that cannot be changed: to move entities is to build it again."""

    def __init__(self, places: Floats, build: Callable[[Floats], Any]) -> None:
        self.places = places.copy()
        self._build = build
        self._tree = build(self.places)

    def move(self, ids: Ids, places: Floats) -> None:
        self.places[ids] = places
        self._tree = self._build(self.places)


class ScipyTree(_StaticTree):
    """`scipy.spatial.cKDTree`."""

    def __init__(self, places: Floats, leaf_size: int) -> None:
        try:
            from scipy.spatial import cKDTree
        except ModuleNotFoundError:
            raise MissingExtra(_missing("kd_tree", "scipy", "'assay-bench[simulation]'")) from None
        super().__init__(places, partial(cKDTree, leafsize=leaf_size))

    def radius(self, centres: Floats, radius: float) -> Found:
        found: Found = self._tree.query_ball_point(centres, radius)
        return found

    def box(self, centres: Floats, half: Floats) -> Found:
        # The tree knows squares (the maximum norm); what lies beyond the shorter side is left out afterwards.
        squares = self._tree.query_ball_point(centres, float(half.max()), p=math.inf)
        return _select_in_box(self.places, squares, centres, half)

    def nearest(self, centres: Floats) -> Ids:
        return np.asarray(self._tree.query(centres)[1], dtype=np.int64)

    def describe(self) -> Mapping[str, Any]:
        names = {"cKDTree": "kd_tree", "KDTree": "kd_tree"}
        leaf_size = int(self._tree.leafsize)
        return {
            "algorithm": names.get(type(self._tree).__name__),
            "agent_count": int(self._tree.n),
            "leaf_size": leaf_size,
        }


class SklearnTree(_StaticTree):
    """`KDTree` or `BallTree` of scikit-learn."""

    def __init__(self, places: Floats, leaf_size: int, kind: str) -> None:
        try:
            from sklearn import neighbors
        except ModuleNotFoundError:
            raise MissingExtra(_missing(f"sklearn_{kind}", "scikit-learn", "scikit-learn")) from None
        member = {"kd_tree": neighbors.KDTree, "ball_tree": neighbors.BallTree}[kind]
        super().__init__(places, partial(member, leaf_size=leaf_size))

    def radius(self, centres: Floats, radius: float) -> Found:
        found: Found = self._tree.query_radius(centres, radius)
        return found

    def box(self, centres: Floats, half: Floats) -> Found:
        circles = self._tree.query_radius(centres, float(np.hypot(*half)))
        return _select_in_box(self.places, circles, centres, half)

    def nearest(self, centres: Floats) -> Ids:
        return np.asarray(self._tree.query(centres, return_distance=False)[:, 0], dtype=np.int64)

    def describe(self) -> Mapping[str, Any]:
        names = {"KDTree": "sklearn_kd_tree", "BallTree": "sklearn_ball_tree"}
        kind = type(self._tree).__name__.removesuffix("64")
        return {
            "algorithm": names.get(kind),
            "agent_count": len(self._tree.get_arrays()[1]),
            **_read_leaf_size(self._tree),
        }


def _read_leaf_size(tree: Any) -> dict[str, int]:
    """Read the leaf size from the pickled state of a scikit-learn tree, as no attribute has it; None if that state has an unknown form."""
    match tree.__getstate__():
        case (_, _, _, _, int(leaf_size), int(levels), int(nodes), *_) if nodes == 2**levels - 1:
            return {"leaf_size": leaf_size}
        case _:
            return {}


class _IncrementalIndex:
    """What the indexes written in Python share: entities are put in and taken out one by one.

    An index of this kind says which entities a box may contain; whether they are within it is decided here.
    """

    places: list[tuple[float, float]]

    def _insert(self, number: int) -> None:
        raise NotImplementedError

    def _remove(self, number: int) -> None:
        raise NotImplementedError

    def _candidates(self, x0: float, y0: float, x1: float, y1: float) -> Iterator[Sequence[int] | set[int]]:
        raise NotImplementedError

    def _fill(self, places: Floats) -> None:
        self.places = list(map(tuple, places.tolist()))
        self.span = max(1e-9, float(np.ptp(places, axis=0).max()))
        for number in range(len(self.places)):
            self._insert(number)

    def radius(self, centres: Floats, radius: float) -> Found:
        return [self._within(x, y, radius) for x, y in centres.tolist()]

    def _within(self, x: float, y: float, radius: float) -> list[int]:
        places, square = self.places, radius * radius
        return [
            number
            for group in self._candidates(x - radius, y - radius, x + radius, y + radius)
            for number in group
            if (places[number][0] - x) ** 2 + (places[number][1] - y) ** 2 <= square
        ]

    def box(self, centres: Floats, half: Floats) -> Found:
        places, (width, height) = self.places, half.tolist()
        return [
            [
                number
                for group in self._candidates(x - width, y - height, x + width, y + height)
                for number in group
                if abs(places[number][0] - x) <= width and abs(places[number][1] - y) <= height
            ]
            for x, y in centres.tolist()
        ]

    def nearest(self, centres: Floats) -> Ids:
        return np.array([self._nearest(x, y) for x, y in centres.tolist()], dtype=np.int64)

    def _nearest(self, x: float, y: float) -> int:
        """Search circles of doubling radius: the nearest entity within a circle is the nearest of all."""
        places, radius = self.places, self.span / math.sqrt(len(self.places))
        while not (found := self._within(x, y, radius)):
            if radius > 1e300:
                raise LookupError("The index has lost all of its entities.")
            radius *= 2
        return min(found, key=lambda number: (places[number][0] - x) ** 2 + (places[number][1] - y) ** 2)

    def move(self, ids: Ids, places: Floats) -> None:
        for number, (x, y) in zip(ids.tolist(), places.tolist(), strict=True):
            self._remove(number)
            self.places[number] = (x, y)
            self._insert(number)


class SpatialHash(_IncrementalIndex):
    """Square cells in a dictionary, each with the entities in it. Cells without entities take no room."""

    def __init__(self, places: Floats, cell_size: float) -> None:
        self.cell_size = cell_size
        self._cells: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        self._fill(places)

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        return math.floor(x / self.cell_size), math.floor(y / self.cell_size)

    def _insert(self, number: int) -> None:
        self._cells[self._cell(*self.places[number])].add(number)

    def _remove(self, number: int) -> None:
        cell = self._cell(*self.places[number])
        self._cells[cell].remove(number)
        if not self._cells[cell]:
            del self._cells[cell]

    def _candidates(self, x0: float, y0: float, x1: float, y1: float) -> Iterator[set[int]]:
        (left, bottom), (right, top) = self._cell(x0, y0), self._cell(x1, y1)
        cells = self._cells
        if (right - left + 1) * (top - bottom + 1) > len(cells):  # quicker to look at all that there are
            return (group for (x, y), group in cells.items() if left <= x <= right and bottom <= y <= top)
        covered = product(range(left, right + 1), range(bottom, top + 1))
        return (cells[cell] for cell in covered if cell in cells)

    def describe(self) -> Mapping[str, Any]:
        return {
            "algorithm": "spatial_hash",
            "agent_count": sum(map(len, self._cells.values())),
            "cell_size": self.cell_size,
        }


class _Quad:
    """A square of the quadtree: a leaf with entities, or four quarters."""

    __slots__ = ("entities", "half", "quarters", "x", "y")

    def __init__(self, x: float, y: float, half: float) -> None:
        self.x, self.y, self.half = x, y, half
        self.entities: set[int] = set()
        self.quarters: tuple[_Quad, ...] = ()

    def holds(self, x: float, y: float) -> bool:
        half = self.half
        return self.x - half <= x < self.x + half and self.y - half <= y < self.y + half

    def quarter_of(self, x: float, y: float) -> _Quad:
        return self.quarters[(x >= self.x) + 2 * (y >= self.y)]


class Quadtree(_IncrementalIndex):
    """Squares that are split in four when they hold more than `leaf_size` entities; a split is never undone."""

    _SMALLEST = 1e-9
    """Smallest square as a share of the whole: entities at one place cannot be told apart by splitting."""

    def __init__(self, places: Floats, leaf_size: int) -> None:
        self.leaf_size = leaf_size
        low, high = places.min(axis=0), places.max(axis=0)
        x, y = ((low + high) / 2).tolist()
        # A little larger than it need be: upper edges belong to the next square, and no entity may be on that of the root.
        self._root = _Quad(x, y, max(1e-9, 0.5001 * float((high - low).max())))
        self._fill(places)

    def _leaf(self, x: float, y: float) -> _Quad:
        quad = self._root
        while quad.quarters:
            quad = quad.quarter_of(x, y)
        return quad

    def _insert(self, number: int) -> None:
        x, y = self.places[number]
        self._widen(x, y)
        leaf = self._leaf(x, y)
        leaf.entities.add(number)
        while len(leaf.entities) > self.leaf_size and leaf.half > self._SMALLEST * self._root.half:
            self._split(leaf)
            leaf = leaf.quarter_of(x, y)

    def _widen(self, x: float, y: float) -> None:
        """Squares above the root until it holds the place, so that entities may move anywhere."""
        while not self._root.holds(x, y):
            old = self._root
            right, up = x >= old.x, y >= old.y
            middle = (old.x + (old.half if right else -old.half), old.y + (old.half if up else -old.half))
            self._root = _Quad(*middle, 2 * old.half)
            self._root.quarters = tuple(
                old if (column, row) == (not right, not up) else _quarter(self._root, column, row)
                for row, column in product((False, True), repeat=2)
            )

    def _split(self, leaf: _Quad) -> None:
        leaf.quarters = tuple(_quarter(leaf, column, row) for row, column in product((False, True), repeat=2))
        for number in leaf.entities:
            leaf.quarter_of(*self.places[number]).entities.add(number)
        leaf.entities = set()

    def _remove(self, number: int) -> None:
        self._leaf(*self.places[number]).entities.remove(number)

    def _candidates(self, x0: float, y0: float, x1: float, y1: float) -> Iterator[set[int]]:
        waiting = [self._root]
        while waiting:
            quad = waiting.pop()
            half = quad.half
            if quad.x - half > x1 or quad.x + half < x0 or quad.y - half > y1 or quad.y + half < y0:
                continue
            if quad.quarters:
                waiting += quad.quarters
            else:
                yield quad.entities

    def describe(self) -> Mapping[str, Any]:
        held = sum(map(len, self._candidates(-math.inf, -math.inf, math.inf, math.inf)))
        return {"algorithm": "quadtree", "agent_count": held, "leaf_size": self.leaf_size}


def _quarter(quad: _Quad, column: bool, row: bool) -> _Quad:
    half = quad.half / 2
    return _Quad(quad.x + (half if column else -half), quad.y + (half if row else -half), half)


def build_index(algorithm: Algorithm, places: Floats, *, cell_size: float, leaf_size: int) -> SpatialIndex:
    """A new index over these places. MissingExtra where the algorithm needs a package that is not installed."""
    match algorithm:
        case "kd_tree":
            return ScipyTree(places, leaf_size)
        case "sklearn_kd_tree" | "sklearn_ball_tree":
            return SklearnTree(places, leaf_size, algorithm.removeprefix("sklearn_"))
        case "quadtree":
            return Quadtree(places, leaf_size)
        case "spatial_hash":
            return SpatialHash(places, cell_size)
        case "brute_force":
            return BruteForce(places)


def _missing(algorithm: str, package: str, install: str) -> str:
    return f"The algorithm '{algorithm}' needs the package '{package}': pip install {install}"


def _squares(places: Floats, centre: Floats) -> Floats:
    across = places - centre
    squares: Floats = (across * across).sum(axis=1)
    return squares


def select_found(places: Floats, found: Found, centres: Floats, is_within: Callable[[Floats], Any]) -> Found:
    """Select those found in a larger area whose offset from the centre is within.

    For all queries at once, as a call for each would take longer.
    """
    counts = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
    all_found = (
        np.concatenate([np.asarray(indices, dtype=np.int64) for indices in found])
        if counts.sum()
        else _NOBODY
    )
    within = is_within(places[all_found] - np.repeat(centres, counts, axis=0))
    ends = np.cumsum(np.bincount(np.repeat(np.arange(len(found)), counts)[within], minlength=len(found)))
    return np.split(all_found[within], ends[:-1])


def _select_in_box(places: Floats, found: Found, centres: Floats, half: Floats) -> Found:
    return select_found(places, found, centres, lambda offsets: (np.abs(offsets) <= half).all(axis=1))


_NOBODY: Ids = np.empty(0, dtype=np.int64)
