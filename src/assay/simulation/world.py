"""The world: agents of three kinds on a grid where food grows, one step at a time, all agents at once.

Every agent does one thing in a step. It looks at one of the eight cells around it, drawn at random, and decides:

    reproduce   it has energy enough and that cell is free: half of its energy goes to a child there
    share       a system agent with energy to spare gives some to a poorer agent there
    gather      there is food in its own cell
    attack      an independent agent that is hungry takes energy from the agent there
    move        to the richest free cell around it; a control agent to the cell that it looked at

What an agent does to another cell needs that cell, and each cell goes to one agent a step, drawn at random; the others pass. Energy and food are whole
numbers, so that nothing is lost to rounding: `StepMetrics` has every flow, and the sums balance exactly.

The grid is stored flat with a border of one cell, so that no look beyond the edge needs a check. All chance comes from one generator.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from assay.simulation.config import KINDS, SimulationConfig

Array: TypeAlias = np.ndarray[Any, Any]

EMPTY, WALL = -1, -2
"""Values of `World.occupant` beside the place of an agent."""
SYSTEM, INDEPENDENT, CONTROL = range(len(KINDS))
GATHERED_AT_MOST = 10
PASSED_AT_MOST = 5
"""Energy that one agent gives to or takes from another in a step."""
NEVER = -(2**30)
_UNCLAIMED = 2**31 - 1


class AgentAction(IntEnum):
    """What an agent did in a step."""

    PASS = 0
    MOVE = 1
    GATHER = 2
    SHARE = 3
    ATTACK = 4
    REPRODUCE = 5


class StepMetrics(NamedTuple):
    """The world after a step, and what flowed in it: energy = energy before + gathered - spent, food = food before - gathered + regrown."""

    step: int
    system_agents: int
    independent_agents: int
    control_agents: int
    births: int
    deaths: int
    energy: int
    food: int
    gathered: int
    shared: int
    taken: int
    spent: int
    regrown: int

    @property
    def num_agents(self) -> int:
        return self.system_agents + self.independent_agents + self.control_agents


@dataclass(slots=True)
class Population:
    """The living agents, one array for each property; what dies is removed, what is born comes last."""

    id: Array
    kind: Array
    cell: Array
    offset: Array
    """Position within the cell, from 0 to 1: x and y of each agent."""
    energy: Array
    age: Array
    action: Array

    def __len__(self) -> int:
        return len(self.id)

    def keep(self, places: Array) -> None:
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name)[places])

    def extend(self, born: Population) -> None:
        for part in fields(self):
            setattr(self, part.name, np.concatenate([getattr(self, part.name), getattr(born, part.name)]))


class World:
    """The state of a simulation; `step` carries it on by one step.

    The same config gives the same history in every process: all chance comes from one generator, and
    every rule is applied to all agents at once in a fixed order. The grid has a border of walls, so that
    the neighbours of a cell are eight fixed offsets and no agent needs a test for the edge. Agents that
    want the same cell draw lots.
    """

    def __init__(self, config: SimulationConfig) -> None:
        self.config = config.model_copy()
        self.number = 0
        """Steps so far."""
        self.chance = np.random.Generator(np.random.PCG64(config.seed))
        self.stride = config.width + 2
        cells = self.stride * (config.height + 2)
        self.food = np.zeros(cells, dtype=np.int64)
        self.occupant = np.full(cells, WALL, dtype=np.int64)
        self.occupant.reshape(-1, self.stride)[1:-1, 1:-1] = EMPTY
        self.visited, self.attacked, self.shared = (np.full(cells, NEVER, dtype=np.int64) for _ in range(3))
        """The last step in which an agent was in a cell, was attacked there, was given something there."""
        self.resources = self._draw_cells(config.initial_resources)
        self.resource_offset = self.chance.random((len(self.resources), 2), dtype=np.float32)
        self.food[self.resources] = self.chance.integers(
            0, config.max_resource_amount + 1, len(self.resources)
        )
        self.agents = self._first_agents()
        self.occupant[self.agents.cell] = np.arange(len(self.agents))
        self._next_id = len(self.agents)
        self._claims = np.full(cells, _UNCLAIMED, dtype=np.int64)
        s = self.stride
        self._around = np.array([-s - 1, -s, -s + 1, -1, 1, s - 1, s, s + 1])
        self._turns = (np.arange(8) - np.arange(8)[:, None]) % 8
        """A rank from 0 to 7 for each direction, beginning with each of them: what decides among cells with equal food."""

    def _draw_cells(self, number: int) -> Array:
        config = self.config
        cells = self.chance.choice(config.width * config.height, number, replace=False)
        return (cells // config.width + 1) * self.stride + cells % config.width + 1

    def _first_agents(self) -> Population:
        n = self.config.num_agents
        return Population(
            id=np.arange(n),
            kind=np.repeat(np.arange(len(KINDS), dtype=np.int8), self.config.agents_by_kind),
            cell=self._draw_cells(n),
            offset=self.chance.random((n, 2), dtype=np.float32),
            energy=np.full(n, self.config.initial_energy, dtype=np.int64),
            age=np.zeros(n, dtype=np.int64),
            action=np.zeros(n, dtype=np.int8),
        )

    def step(self) -> StepMetrics:
        """Carry the world on by one step of every agent, after which the food grows.

        All agents look at the same state and choose first; conflicts over cells are settled before
        anything happens. Then come gathering, sharing, attacks, births, moves, and last what living
        costs, by which agents die. The order is part of what makes a history reproducible.
        """
        self.number += 1
        agents = self.agents
        near = agents.cell + self._around[self.chance.integers(0, 8, len(agents))]
        self._decide(near)
        self._settle_claims(near)
        gathered = self._gather()
        shared, taken = self._share(near), self._attack(near)
        births = self._reproduce(near)
        moving = np.flatnonzero(agents.action[: len(near)] == AgentAction.MOVE)
        self._move(moving, near[moving])
        spent, deaths = self._metabolise()
        regrown, food = self._regrow()
        system, independent, control = np.bincount(agents.kind, minlength=len(KINDS)).tolist()
        energy = int(agents.energy.sum())
        return StepMetrics(
            self.number, system, independent, control, births, deaths,
            energy, food, gathered, shared, taken, spent, regrown,
        )  # fmt: skip

    def _decide(self, near: Array) -> None:
        """Choose an action for every agent from what it is, has and sees in the one cell.

        Later rules replace earlier ones: to move, to attack if hungry, to gather, to share, to reproduce.
        For agents that move, `near` becomes the cell where they go; control agents move at random, the
        others to the most food. An agent that finds the cell taken passes.
        """
        agents, config = self.agents, self.config
        other = self.occupant[near]
        meets = other >= 0
        other_energy = agents.energy[np.maximum(other, 0)]
        is_hungry = agents.energy < config.initial_energy // 2
        finds_food = self.food[agents.cell] > 0
        can_share = (agents.kind == SYSTEM) & meets & ~is_hungry & (agents.energy > other_energy + 1)
        can_attack = (agents.kind == INDEPENDENT) & meets & is_hungry
        can_reproduce = (agents.energy >= config.reproduction_energy) & (other == EMPTY)
        action = np.full(len(agents), AgentAction.MOVE, dtype=np.int8)
        action[can_attack] = AgentAction.ATTACK
        action[finds_food] = AgentAction.GATHER
        action[can_share] = AgentAction.SHARE
        action[can_reproduce] = AgentAction.REPRODUCE
        agents.action = action
        seeking = np.flatnonzero((action == AgentAction.MOVE) & (agents.kind != CONTROL))
        near[seeking] = self._find_richest(agents.cell[seeking])
        action[(action == AgentAction.MOVE) & (self.occupant[near] != EMPTY)] = AgentAction.PASS

    def _find_richest(self, cells: Array) -> Array:
        """Choose, for each agent, the free cell around it with the most food.

        Among equal cells one is chosen from a direction drawn at random. A wall stands for "no free
        cell".
        """
        around = cells[:, None] + self._around
        score = np.where(self.occupant[around] == EMPTY, self.food[around] * 8, -8)
        score += self._turns[self.chance.integers(0, 8, len(cells))]
        best = score.argmax(axis=1)
        rows = np.arange(len(cells))
        return np.where(score[rows, best] < 0, 0, around[rows, best])  # cell 0 is a corner of the border

    def _settle_claims(self, near: Array) -> None:
        """Let one of the agents that need the same cell have it, drawn at random; the others pass."""
        action = self.agents.action
        claiming = np.flatnonzero((action != AgentAction.GATHER) & (action != AgentAction.PASS))
        wanted, rank = near[claiming], self.chance.permutation(len(claiming))
        np.minimum.at(self._claims, wanted, rank)
        action[claiming[self._claims[wanted] != rank]] = AgentAction.PASS
        self._claims[wanted] = _UNCLAIMED

    def _gather(self) -> int:
        agents = self.agents
        gathering = np.flatnonzero(agents.action == AgentAction.GATHER)
        cells = agents.cell[gathering]
        amount = np.minimum(self.food[cells], GATHERED_AT_MOST)
        self.food[cells] -= amount
        agents.energy[gathering] += amount
        return int(amount.sum())

    def _share(self, near: Array) -> int:
        agents = self.agents
        giving = np.flatnonzero(agents.action == AgentAction.SHARE)
        receiving = self.occupant[near[giving]]
        spare = (agents.energy[giving] - agents.energy[receiving]) // 2
        amount = np.clip(spare, 0, PASSED_AT_MOST)
        agents.energy[giving] -= amount
        agents.energy[receiving] += amount
        self.shared[near[giving]] = self.number
        return int(amount.sum())

    def _attack(self, near: Array) -> int:
        agents = self.agents
        attacking = np.flatnonzero(agents.action == AgentAction.ATTACK)
        victims = self.occupant[near[attacking]]
        amount = np.minimum(agents.energy[victims], PASSED_AT_MOST)
        agents.energy[victims] -= amount
        agents.energy[attacking] += amount
        self.attacked[near[attacking]] = self.number
        return int(amount.sum())

    def _reproduce(self, near: Array) -> int:
        """Let every agent that chose to reproduce have a child in its cell nearby.

        The child gets half of the parent's energy, so that energy is neither made nor lost. Returns the
        number of births.
        """
        agents = self.agents
        parents = np.flatnonzero(agents.action == AgentAction.REPRODUCE)
        if not len(parents):
            return 0
        energy = agents.energy[parents] // 2
        agents.energy[parents] -= energy
        n = len(parents)
        born = Population(
            id=np.arange(self._next_id, self._next_id + n),
            kind=agents.kind[parents],
            cell=near[parents],
            offset=self.chance.random((n, 2), dtype=np.float32),
            energy=energy,
            age=np.zeros(n, dtype=np.int64),
            action=np.zeros(n, dtype=np.int8),
        )
        self._next_id += n
        self.occupant[born.cell] = np.arange(len(agents), len(agents) + n)
        agents.extend(born)
        return n

    def _move(self, moving: Array, to: Array) -> None:
        agents = self.agents
        self.occupant[agents.cell[moving]] = EMPTY
        self.occupant[to] = moving
        agents.cell[moving] = to
        agents.offset[moving] = self.chance.random((len(moving), 2), dtype=np.float32)

    def _metabolise(self) -> tuple[int, int]:
        """What living costs; who has nothing left dies. Returns the energy spent and the number of deaths."""
        agents = self.agents
        spent = np.minimum(agents.energy, self.config.base_consumption)
        agents.energy -= spent
        agents.age += 1
        alive = agents.energy > 0
        deaths = len(agents) - int(np.count_nonzero(alive))
        self.visited[agents.cell] = self.number
        if deaths:
            self.occupant[agents.cell[~alive]] = EMPTY
            agents.keep(np.flatnonzero(alive))
            self.occupant[agents.cell] = np.arange(len(agents))
        return int(spent.sum()), deaths

    def _regrow(self) -> tuple[int, int]:
        """What grew in this step, and all the food there is now."""
        config, before = self.config, self.food[self.resources]
        grows = self.chance.random(len(before)) < config.resource_regen_rate
        after = np.minimum(before + grows * config.resource_regen_amount, config.max_resource_amount)
        self.food[self.resources] = after
        food = int(after.sum())
        return food - int(before.sum()), food

    def positions(self) -> Array:
        """x and y of every agent, within the width and height of the world."""
        return self._place(self.agents.cell) + self.agents.offset

    def resource_positions(self) -> Array:
        return self._place(self.resources) + self.resource_offset

    def _place(self, cells: Array) -> Array:
        return np.stack([cells % self.stride - 1, cells // self.stride - 1], axis=1).astype(np.float64)

    def digest(self) -> str:
        """A hash of the whole state: equal for equal histories."""
        found = hashlib.sha256()
        agents = self.agents
        for part in (
            agents.id,
            agents.kind,
            agents.cell,
            agents.offset,
            agents.energy,
            agents.age,
            self.food,
        ):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()[:16]
