"""What agents see: for each agent a square window around its cell, in thirteen channels, for all agents at once.

A window has `2 · radius + 1` cells on each side. Cells farther away than `fov_radius` are not seen. How windows are stored is a choice between memory and time:

    dense    the whole array
    sparse   only values other than 0, as (agent, place, value), 12 bytes each; `dense()` builds the array at every call
    hybrid   sparse, and the array is kept once it was built

Resources lie anywhere within their cells. `nearest` shows each in its cell; `bilinear` spreads it over the four cells around it, by distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, get_args

import numpy as np

from assay.errors import PlanError
from assay.simulation.world import WALL, Array, World
from assay.units import size

CHANNELS = (
    "self_energy",
    "ally_energy",
    "enemy_energy",
    "resources",
    "obstacles",
    "regrowth",
    "damage",
    "trails",
    "signals",
    "goal",
    "landmarks",
    "visibility",
    "known_empty",
)
"""Energies relative to that of reproduction, food relative to the most a resource can hold. `regrowth` is what a resource lacks; damage,
trails and signals are where somebody was attacked, was, or was given something, fading with time; `goal` marks the most food in sight;
`landmarks` are resources, empty ones too."""
STORED = len(CHANNELS) - 2
"""The last two follow from the others and are not stored by `sparse` and `hybrid`."""
POINT_BYTES = 12
_FADING = np.append(0.9 ** np.arange(63), 0.0).astype(np.float32)

Storage = Literal["dense", "sparse", "hybrid"]
Interpolation = Literal["nearest", "bilinear"]


@dataclass(slots=True)
class PerceptionProfile:
    """Where the time of observing went, and how often arrays were built, since the perception was made."""

    spatial_query_seconds: float = 0.0
    """Finding windows and looking up what is in them."""
    bilinear_seconds: float = 0.0
    nearest_seconds: float = 0.0
    bilinear_points: int = 0
    nearest_points: int = 0
    rebuild_seconds: float = 0.0
    rebuilds: int = 0
    """Windows of single agents whose array was built from points."""
    hits: int = 0
    misses: int = 0
    stored_bytes: int = 0
    observations: int = 0


def _make_views(agents: int, side: int) -> Array:
    """Empty views of so many agents. PlanError where they do not fit into memory."""
    shape = (agents, len(CHANNELS), side, side)
    try:
        return np.zeros(shape, dtype=np.float32)
    except MemoryError:
        raise PlanError(
            f"The views of {agents:,} agents with a radius of {side // 2} take {size(4 * math.prod(shape))}, more memory than "
            "there is. Use fewer agents or a smaller 'radius'."
        ) from None


class Perception:
    """Looks at a world for its agents. PlanError for a radius below 1, and for a storage or interpolation that is not known."""

    def __init__(
        self,
        world: World,
        radius: int = 6,
        fov_radius: int | None = None,
        storage: Storage = "dense",
        interpolation: Interpolation = "nearest",
    ) -> None:
        for name, value in (("radius", radius), ("fov_radius", radius if fov_radius is None else fov_radius)):
            if type(value) is not int or value < 1:
                raise PlanError(f"'{name}' must be a whole number of at least 1, not {value!r}.")
        for name, given, known in (
            ("storage", storage, get_args(Storage)),
            ("interpolation", interpolation, get_args(Interpolation)),
        ):
            if given not in known:
                raise PlanError(f"'{name}' must be {' or '.join(map(repr, known))}, not {given!r}.")
        self.world, self.radius, self.side = world, radius, 2 * radius + 1
        self.storage, self.interpolation = storage, interpolation
        self.profile = PerceptionProfile()
        reach = np.arange(-radius, radius + 1)
        self._reach = reach
        farthest = radius if fov_radius is None else fov_radius
        self._is_visible = reach[:, None] ** 2 + reach**2 <= farthest**2
        self._amounts = np.zeros(len(world.food), dtype=np.float32)
        self._is_resource = np.zeros(len(world.food), dtype=np.float32)
        self._is_resource[world.resources] = 1
        self._corners = self._find_corners() if interpolation == "bilinear" else None

    def _find_corners(self) -> tuple[Array, Array]:
        """The four cells around each resource and its share in each; at the edge of the world all of it stays inside."""
        world = self.world
        position = world.resource_positions() - 0.5
        low = np.floor(position).astype(np.int64)
        part = position - low
        cells, shares = [], []
        for right in (0, 1):
            for down in (0, 1):
                x = np.clip(low[:, 0] + right, 0, world.config.width - 1)
                y = np.clip(low[:, 1] + down, 0, world.config.height - 1)
                cells.append((y + 1) * world.stride + x + 1)
                shares.append(np.abs(1 - right - part[:, 0]) * np.abs(1 - down - part[:, 1]))
        return np.concatenate(cells), np.concatenate(shares)

    def _place_resources(self) -> None:
        """Food of every cell as the channel `resources` shows it."""
        began, world, profile = perf_counter(), self.world, self.profile
        amounts = world.food[world.resources] / world.config.max_resource_amount
        if self._corners is None:
            self._amounts[world.resources] = amounts
            profile.nearest_points += len(amounts)
            profile.nearest_seconds += perf_counter() - began
        else:
            cells, shares = self._corners
            spread = np.bincount(cells, np.tile(amounts, 4) * shares, minlength=len(self._amounts))
            self._amounts = spread.astype(np.float32)
            profile.bilinear_points += len(amounts)
            profile.bilinear_seconds += perf_counter() - began

    def find_windows(self, cells: Array) -> Array:
        """The cells of each window; what lies beyond the edge is a cell of the border."""
        stride, height = self.world.stride, self.world.config.height
        rows = np.clip((cells // stride)[:, None] + self._reach, 0, height + 1)
        columns = np.clip((cells % stride)[:, None] + self._reach, 0, stride - 1)
        return (rows * stride)[:, :, None] + columns[:, None, :]

    def observe(self, places: Array | None = None) -> Observation:
        """What the agents at these places of `world.agents` see, by default all; the first axis of the result follows `places`."""
        agents = self.world.agents
        chosen = np.arange(len(agents)) if places is None else places
        self._place_resources()
        views = _make_views(len(chosen), self.side)
        self._look(views, chosen)
        self.profile.observations += len(chosen)
        return Observation(self, views)

    def _look(self, views: Array, chosen: Array) -> None:
        """Fill the channels. What is rare in a window, agents and resources, is written where it is; the rest for all cells at once."""
        world, agents, cells = self.world, self.world.agents, self.side**2
        began = perf_counter()
        window = self.find_windows(agents.cell[chosen]).reshape(len(chosen), cells)
        visible = self._is_visible.ravel()
        window[:, ~visible] = 0  # a corner of the border, where nothing is to be seen
        other, food = world.occupant.take(window), self._amounts.take(window)
        events = [grid.take(window) for grid in (world.attacked, world.visited, world.shared)]
        is_resource = self._is_resource.take(window)
        self.profile.spatial_query_seconds += perf_counter() - began
        flat = views.reshape(len(chosen), len(CHANNELS), cells)
        flat[:, 3] = food
        flat[:, 4] = (other == WALL) & visible
        for channel, last in enumerate(events, start=6):
            flat[:, channel] = _FADING.take(world.number - last, mode="clip")
        observers, places = np.divmod(np.flatnonzero(is_resource), cells)
        flat[observers, 10, places] = 1
        lacking = 1 - world.food[window[observers, places]] / world.config.max_resource_amount
        flat[observers, 5, places] = lacking
        observers, places = np.divmod(np.flatnonzero(other >= 0), cells)
        seen, middle = other[observers, places], cells // 2
        energy = (agents.energy / world.config.reproduction_energy).astype(np.float32)
        channels = np.where(agents.kind[seen] == agents.kind[chosen[observers]], 1, 2)
        flat[observers, np.where(places == middle, 0, channels), places] = energy[seen]
        best, rows = flat[:, 3].argmax(axis=1), np.arange(len(chosen))
        flat[rows, 9, best] = flat[rows, 3, best] > 0
        self.derive(views)

    def derive(self, views: Array) -> None:
        """The channels that follow from the others: what is visible, and which cells of it are empty."""
        views[:, 11] = self._is_visible
        views[:, 12] = self._is_visible & (views[:, :5].sum(axis=1) == 0)

    def find_resources_by_grid(self, chosen: Array) -> Array:
        """Food in each window, looked up cell by cell."""
        return self.world.food.take(self.find_windows(self.world.agents.cell[chosen])).astype(np.float32)

    def find_resources_by_search(self, chosen: Array) -> Array:
        """The same by comparing every agent with every resource, as a world without a grid would."""
        world, stride = self.world, self.world.stride
        own, places = world.agents.cell[chosen], world.resources
        down = (places // stride) - (own // stride)[:, None]
        right = (places % stride) - (own % stride)[:, None]
        agent_index, resource_index = np.nonzero(
            (np.abs(down) <= self.radius) & (np.abs(right) <= self.radius)
        )
        found = np.zeros((len(chosen), self.side, self.side), dtype=np.float32)
        found[
            agent_index,
            down[agent_index, resource_index] + self.radius,
            right[agent_index, resource_index] + self.radius,
        ] = world.food[places[resource_index]]
        return found


@dataclass(slots=True)
class Observation:
    """The windows of some agents, stored as the perception says."""

    perception: Perception
    _dense: Array | None
    _rows: Array = field(init=False)
    _places: Array = field(init=False)
    _values: Array = field(init=False)
    _size: int = field(init=False)

    def __post_init__(self) -> None:
        views = self._dense
        assert views is not None
        self._size = len(views)
        if self.perception.storage != "dense":
            flat = views[:, :STORED].reshape(self._size, STORED * self.perception.side**2)
            rows, places = np.nonzero(flat)
            self._rows, self._places = rows.astype(np.int32), places.astype(np.int32)
            self._values = flat[rows, places]
            self._dense = None
        self.perception.profile.stored_bytes += self.stored_bytes

    @property
    def stored_bytes(self) -> int:
        if self._dense is not None:
            return self._dense.nbytes
        return POINT_BYTES * len(self._values)

    def dense(self) -> Array:
        """The whole array: agents, channels, rows, columns."""
        perception, profile = self.perception, self.perception.profile
        if perception.storage == "dense":
            assert self._dense is not None
            return self._dense
        if self._dense is not None:
            profile.hits += self._size
            return self._dense
        began, side = perf_counter(), perception.side
        views = _make_views(self._size, side)
        views.reshape(self._size, len(CHANNELS) * side**2)[self._rows, self._places] = self._values
        perception.derive(views)
        profile.misses += self._size
        profile.rebuilds += self._size
        profile.rebuild_seconds += perf_counter() - began
        if perception.storage == "hybrid":
            self._dense = views
        return views
