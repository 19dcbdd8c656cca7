"""What spatial indexes are put through: entities, queries and moves, drawn from a seed and alike for every index.

A `SpatialWorkload` does not know which index it will meet. Before anything is timed, `check_index` compares the answers of an index with
those of brute force, before and after moves; `digest` identifies the workload, so that two indexes can be seen to have met the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from math import ceil, sqrt
from time import perf_counter
from typing import Any, Literal

import numpy as np

from assay.builtin.experiments.spatial_indexes import (
    BruteForce,
    Floats,
    Found,
    Ids,
    SpatialIndex,
    select_found,
)

Distribution = Literal["uniform", "clustered", "linear", "sparse"]
QueryPattern = Literal["random", "uniform", "clustered", "linear"]
QueryType = Literal["radius", "nearest", "range", "intersection"]

_CLUSTERS = 5
_SPARSE = 10
"""A sparse world has sides ten times as long, so a hundredth of the density."""
_MOVED = 0.1
_STRIDE = 0.02
"""The longest move along each axis, as a share of the side of the world."""
_STEP_MOVES, _STEP_QUERIES = 18, 25
_BODY = 0.1
"""Radius of an entity, as a share of the query radius, for queries that ask what a box touches."""


class WrongIndex(Exception):
    """An index gave a different answer than brute force, so its times mean nothing."""


@dataclass(frozen=True)
class Queries:
    """A batch of queries of one type. Boxes are twice as wide as high, as wide as the circles."""

    type: QueryType
    centres: Floats
    radius: float

    @cached_property
    def half(self) -> Floats:
        return np.array([self.radius, self.radius / 2])

    def ask(self, index: SpatialIndex, places: Floats) -> Found | Ids:
        """What the index finds; `places` are those that it holds."""
        match self.type:
            case "radius":
                return index.radius(self.centres, self.radius)
            case "nearest":
                return index.nearest(self.centres)
            case "range":
                return index.box(self.centres, self.half)
            case "intersection":
                body = _BODY * self.radius
                near = index.box(self.centres, self.half + body)
                return select_found(places, near, self.centres, lambda at: self._touches(at, body))

    def _touches(self, offsets: Floats, body: float) -> Any:
        """Whether discs at these offsets from the middle of the box touch it."""
        outside = np.maximum(np.abs(offsets) - self.half, 0.0)
        return (outside * outside).sum(axis=1) <= body * body

    def first(self, number: int) -> Queries:
        return Queries(self.type, self.centres[:number], self.radius)


@dataclass(frozen=True)
class Moves:
    """Entities that change their place at the same time."""

    ids: Ids
    places: Floats

    def apply(self, index: SpatialIndex, *, is_immediate: bool) -> None:
        """Apply moves in one batch, or one by one so that each is visible to queries at once."""
        if not is_immediate:
            index.move(self.ids, self.places)
            return
        for number in range(len(self.ids)):
            index.move(self.ids[number : number + 1], self.places[number : number + 1])

    def first(self, number: int) -> Moves:
        return Moves(self.ids[:number], self.places[:number])


@dataclass(frozen=True)
class SpatialWorkload:
    """Entities with their places, the queries put to an index over them, and how they move."""

    places: Floats
    side: float
    queries: tuple[Queries, ...]
    moves: Moves
    """A tenth of the entities, once."""
    steps: tuple[Moves, ...]
    """A few entities at each step of a simulation, which then asks a few queries."""

    @property
    def digest(self) -> str:
        """A hash that identifies the entities, queries and moves."""
        parts = [
            self.places,
            *(part for moves in (self.moves, *self.steps) for part in (moves.ids, moves.places)),
        ]
        for queries in self.queries:
            parts += [queries.centres, np.array([queries.radius])]
        named = " ".join(queries.type for queries in self.queries)
        return sha256(named.encode() + b"".join(part.tobytes() for part in parts)).hexdigest()[:16]

    @cached_property
    def results(self) -> tuple[int, ...]:
        """How many entities brute force finds for each batch of queries."""
        truth = BruteForce(self.places)
        return tuple(count_found(queries.ask(truth, self.places)) for queries in self.queries)

    @cached_property
    def step_results(self) -> int:
        """How many entities brute force finds in all steps together."""
        return self._walk(BruteForce(self.places), is_immediate=False)

    def run_steps(self, index: SpatialIndex, *, is_immediate: bool) -> float:
        """Seconds of one step: moves, then queries. The index must hold the entities at their first places."""
        begin = perf_counter()
        found = self._walk(index, is_immediate=is_immediate)
        seconds = perf_counter() - begin
        if found != self.step_results:
            raise WrongIndex(
                f"The index {describe_index(index)} found {found:,} entities in {len(self.steps):,} steps; "
                f"brute force finds {self.step_results:,}."
            )
        return seconds / len(self.steps)

    def _walk(self, index: SpatialIndex, *, is_immediate: bool) -> int:
        queries, places, found = self.queries[0].first(_STEP_QUERIES), self.places.copy(), 0
        for moves in self.steps:
            moves.apply(index, is_immediate=is_immediate)
            places[moves.ids] = moves.places
            found += count_found(queries.ask(index, places))
        return found


@dataclass(frozen=True)
class WorkloadSize:
    """How much of everything, and what it looks like."""

    entities: int
    side: float
    radius: float
    queries: int
    steps: int
    distribution: Distribution = "uniform"
    pattern: QueryPattern = "random"


def draw_workload(size: WorkloadSize, types: Sequence[QueryType], seed: int) -> SpatialWorkload:
    """Draw the workload from the seed alone, so that every process, machine and index gets the same one."""
    chance = np.random.default_rng(seed)
    side = size.side * (_SPARSE if size.distribution == "sparse" else 1)
    places = scatter(size.distribution, size.entities, side, chance)
    # Uniform by chance is `random`; evenly spread, it is a lattice.
    is_lattice = size.pattern == "uniform"
    centres = lattice(size.queries, side) if is_lattice else scatter(size.pattern, size.queries, side, chance)
    queries = tuple(Queries(type_, centres, size.radius) for type_ in types)
    moves = draw_moves(places, max(1, round(_MOVED * size.entities)), side, chance)
    steps, at = [], places.copy()
    for _ in range(size.steps):
        step = draw_moves(at, min(_STEP_MOVES, size.entities), side, chance)
        at[step.ids] = step.places
        steps.append(step)
    return SpatialWorkload(places, side, queries, moves, tuple(steps))


def scatter(
    distribution: Distribution | QueryPattern, number: int, side: float, chance: np.random.Generator
) -> Floats:
    """Points in a square; those of a sparse world are uniform, it is the world that is larger."""
    match distribution:
        case "clustered":
            middles = chance.uniform(0.1 * side, 0.9 * side, (_CLUSTERS, 2))
            spreads = chance.uniform(0.05 * side, 0.15 * side, _CLUSTERS)
            member = chance.integers(_CLUSTERS, size=number)
            points = middles[member] + chance.normal(size=(number, 2)) * spreads[member, np.newaxis]
        case "linear":
            along = chance.uniform(0, side, number)
            across = np.where(chance.random(number) < 0.5, along, side - along)
            points = np.column_stack([along, across]) + chance.normal(0, 0.01 * side, (number, 2))
        case _:
            points = chance.uniform(0, side, (number, 2))
    return _reflect(points, side)


def lattice(number: int, side: float) -> Floats:
    """The first points of the smallest square lattice that has enough of them."""
    across = ceil(sqrt(number))
    ticks = (np.arange(across) + 0.5) * side / across
    return np.array(list(product(ticks, ticks)))[:number]


def draw_moves(places: Floats, number: int, side: float, chance: np.random.Generator) -> Moves:
    ids = chance.choice(len(places), size=number, replace=False).astype(np.int64)
    stride = chance.uniform(-_STRIDE * side, _STRIDE * side, (number, 2))
    return Moves(ids, _reflect(places[ids] + stride, side))


def _reflect(points: Floats, side: float) -> Floats:
    """What lies beyond an edge is mirrored at it: to cut it off would pile entities up at the edge."""
    folded = np.abs(points) % (2 * side)
    return np.minimum(folded, 2 * side - folded)


def count_found(found: Found | Ids) -> int:
    return len(found) if isinstance(found, np.ndarray) and found.dtype != object else sum(map(len, found))


def check_index(index: SpatialIndex, workload: SpatialWorkload) -> None:
    """WrongIndex unless the index answers as brute force does, before and after its entities have moved."""
    truth = BruteForce(workload.places)
    for when in ("", " after moves"):
        for queries in workload.queries:
            _check_answers(index, truth, queries, when)
        for target in (index, truth):
            workload.moves.apply(target, is_immediate=False)


def _check_answers(index: SpatialIndex, truth: BruteForce, queries: Queries, when: str) -> None:
    found, right = (queries.ask(target, truth.places) for target in (index, truth))
    for number, (answer, known) in enumerate(zip(found, right, strict=True)):
        if queries.type == "nearest":
            # Two entities may be equally near: then either is right.
            answer, known = (
                float(np.hypot(*(truth.places[entity] - queries.centres[number])))
                for entity in (answer, known)
            )
        else:
            answer, known = sorted(map(int, answer)), sorted(map(int, known))
        if answer != known:
            x, y = queries.centres[number]
            results = (
                (answer, known) if queries.type == "nearest" else (f"{len(answer)} entities", len(known))
            )
            raise WrongIndex(
                f"The index {describe_index(index)} is wrong{when}: query {number + 1} ({queries.type}, "
                f"{queries.radius:g} around {x:.6g}, {y:.6g}) found {results[0]}, brute force {results[1]}."
            )


def describe_index(index: SpatialIndex) -> str:
    return f"'{index.describe()['algorithm']}'"
