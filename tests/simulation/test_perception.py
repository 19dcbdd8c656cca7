from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import PlanError
from assay.simulation import Perception, SimulationConfig, World
from assay.simulation.perception import CHANNELS, POINT_BYTES
from assay.simulation.world import Array

PLACES = {name: place for place, name in enumerate(CHANNELS)}


def make_world(seed: int = 1, steps: int = 6, **settings: int) -> World:
    sizes = {"width": 14, "height": 11, "num_agents": 40, "initial_resources": 30, **settings}
    world = World(SimulationConfig(seed=seed, **sizes))
    for _ in range(steps):
        world.step()
    return world


def look_cell_by_cell(world: World, agent: int, radius: int, fov: int) -> Array:
    """The channels as their descriptions say, for one agent, one cell after the other."""
    agents, config = world.agents, world.config
    view = np.zeros((len(CHANNELS), 2 * radius + 1, 2 * radius + 1), dtype=np.float32)
    row, column = divmod(int(agents.cell[agent]), world.stride)
    for down in range(-radius, radius + 1):
        for right in range(-radius, radius + 1):
            if down**2 + right**2 > fov**2:
                continue
            seen = {"visibility": 1.0}
            y, x = row + down, column + right
            if not (1 <= y <= config.height and 1 <= x <= config.width):
                seen["obstacles"] = 1
            else:
                cell = y * world.stride + x
                other = int(world.occupant[cell])
                food = world.food[cell] / config.max_resource_amount
                if other >= 0:
                    is_ally = agents.kind[other] == agents.kind[agent]
                    name = "self" if other == agent else "ally" if is_ally else "enemy"
                    seen[f"{name}_energy"] = agents.energy[other] / config.reproduction_energy
                if cell in world.resources:
                    seen |= {"landmarks": 1, "resources": food, "regrowth": 1 - food}
                seen["known_empty"] = float(other < 0 and food == 0)
                for name, last in (
                    ("damage", world.attacked),
                    ("trails", world.visited),
                    ("signals", world.shared),
                ):
                    age = world.number - last[cell]
                    seen[name] = 0.9**age if age < 63 else 0
            for name, value in seen.items():
                view[PLACES[name], down + radius, right + radius] = value
    best = view[PLACES["resources"]].argmax()
    if view[PLACES["resources"]].flat[best] > 0:
        view[PLACES["goal"]].flat[best] = 1
    return view


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_what_agents_see_is_what_is_there(seed: int, radius: int, fov: int) -> None:
    world = make_world(seed)
    views = Perception(world, radius, fov).observe().dense()
    for agent in range(0, len(world.agents), 7):
        np.testing.assert_allclose(views[agent], look_cell_by_cell(world, agent, radius, fov), rtol=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(1, 5), st.booleans())
def test_every_storage_gives_back_the_same_array(seed: int, radius: int, is_bilinear: bool) -> None:
    world = make_world(seed)
    way = "bilinear" if is_bilinear else "nearest"
    arrays = [
        Perception(world, radius, None, storage, way).observe().dense()  # type: ignore[arg-type]
        for storage in ("dense", "sparse", "hybrid")
    ]
    assert (arrays[0] == arrays[1]).all()
    assert (arrays[0] == arrays[2]).all()


def test_sparse_storage_takes_twelve_bytes_for_each_value_that_is_not_zero() -> None:
    observed = Perception(make_world(), 5, storage="sparse").observe()
    stored = np.count_nonzero(observed.dense()[:, :11])
    assert observed.stored_bytes == POINT_BYTES * stored
    assert observed.stored_bytes < observed.dense().nbytes / 2


@pytest.mark.parametrize(
    ("storage", "hits", "rebuilds"), [("dense", 0, 0), ("sparse", 0, 3), ("hybrid", 2, 1)]
)
def test_arrays_are_built_as_often_as_the_storage_needs(storage: str, hits: int, rebuilds: int) -> None:
    perception = Perception(make_world(), 3, storage=storage)  # type: ignore[arg-type]
    observed = perception.observe(np.arange(5))
    for _ in range(3):
        observed.dense()
    assert (perception.profile.hits, perception.profile.rebuilds) == (5 * hits, 5 * rebuilds)


def test_bilinear_moves_food_around_but_makes_none() -> None:
    world = make_world()
    for way in ("nearest", "bilinear"):
        perception = Perception(world, 3, interpolation=way)
        perception.observe()
        total = perception._amounts.sum() * world.config.max_resource_amount
        assert total == pytest.approx(world.food.sum(), rel=1e-5)
        assert perception._amounts.reshape(-1, world.stride)[1:-1, 1:-1].sum() == pytest.approx(
            perception._amounts.sum()
        )


def test_bilinear_shares_are_those_of_the_distance_to_the_four_cells() -> None:
    world = World(SimulationConfig(width=5, height=5, num_agents=1, initial_resources=1))
    world.resources = np.array([2 * world.stride + 3])  # column 2, row 1
    world.resource_offset = np.array([[0.75, 0.5]], dtype=np.float32)
    world.food[:] = 0
    world.food[world.resources] = world.config.max_resource_amount
    perception = Perception(world, 2, interpolation="bilinear")
    perception.observe()
    assert perception._amounts.reshape(-1, world.stride)[2, 3:5].tolist() == [0.75, 0.25]


def test_both_ways_to_find_resources_agree() -> None:
    perception = Perception(make_world(), 4)
    chosen = np.arange(20)
    assert (perception.find_resources_by_grid(chosen) == perception.find_resources_by_search(chosen)).all()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "6"])
def test_a_radius_below_one_or_of_another_type_is_refused(wrong: object) -> None:
    world = make_world(steps=0)
    with pytest.raises(PlanError, match="'radius'"):
        Perception(world, wrong)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="'fov_radius'"):
        Perception(world, 3, wrong)  # type: ignore[arg-type]


def test_views_that_no_memory_can_hold_are_refused_with_their_size() -> None:
    crowd = np.broadcast_to(np.int64(0), 10**15)
    with pytest.raises(
        PlanError, match=r"1,000,000,000,000,000 agents with a radius of 2 take [\d.e+,]+ \w+"
    ):
        Perception(make_world(), 2).observe(crowd)


def test_an_unknown_storage_or_interpolation_is_refused() -> None:
    world = make_world(steps=0)
    with pytest.raises(PlanError, match="'storage' must be 'dense' or 'sparse' or 'hybrid', not 'zip'"):
        Perception(world, storage="zip")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="'interpolation'"):
        Perception(world, interpolation=True)  # type: ignore[arg-type]


def test_one_agent_sees_itself_alone() -> None:
    world = make_world(num_agents=1, initial_resources=0, steps=0)
    view = Perception(world, 2).observe().dense()[0]
    assert np.count_nonzero(view[PLACES["self_energy"]]) == 1
    assert view[PLACES["ally_energy"]].sum() == view[PLACES["enemy_energy"]].sum() == 0
