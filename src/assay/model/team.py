"""Teams: agents that work at the same time, and what they gain and lose by it.

The same work is done in two legs, one agent after the other and all at once, in several pairs of legs back to back. Figures are
computed pair by pair, so that a machine that slows down meanwhile does not count as contention. `builtin.findings.team_pairs` makes a
`TeamFinding` for each point of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.model.estimate import Comparison, Verdict
from assay.model.figure import Figure
from assay.model.secret import is_secret


class Leg(StrEnum):
    """A leg of a pair: the same work, done by one agent after the other or by all at once."""

    SEQUENTIAL = "sequential"
    CONCURRENT = "concurrent"


def options_asked(agents: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """Options of the agents of a team and of their models, by the names under which they are read back.

    >>> options_asked([{"name": "insight", "options": {"model": "m", "runtime": "threads", "params": {"num_ctx": 512}}}])
    {'insight.model': 'm', 'insight.runtime': 'threads', 'insight.num_ctx': 512}
    """
    by_name: dict[str, object] = {}
    for agent in agents:
        options = {**client_options(agent), **model_options(agent)}
        by_name |= {f"{agent['name']}.{name}": value for name, value in options.items()}
    return by_name


def client_options(agent: Mapping[str, object]) -> dict[str, object]:
    """What the agent itself does with every request, the name of its model included."""
    return {
        name: value
        for name, value in _mapping(agent.get("options")).items()
        if isinstance(value, (str, int, float)) and not is_secret(name, is_sent=False)
    }


def model_options(agent: Mapping[str, object]) -> dict[str, object]:
    """What it asks of its model."""
    params = _mapping(_mapping(agent.get("options")).get("params"))
    return {name: value for name, value in params.items() if value is not None}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Contention:
    """Requests that were slower in the concurrent leg than in the sequential leg of the same pair.

    Chance makes requests slower and faster alike, so those that were faster by as much are subtracted from the slower ones.
    """

    events: int
    """Slower by more than 3 % and 5 ms."""
    requests: int
    rate: Figure
    """The share of slower requests less that of requests which were faster by as much; not below 0."""
    limit_seconds: float
    """The smallest delay that counted."""
    by_chance: float
    """The share of requests that were faster by as much: chance makes as many slower."""
    verdict: Verdict
    """Worse where requests did wait for each other; never from fewer than six pairs."""
    delay_seconds: float | None
    """Median of the slower requests."""


@dataclass(frozen=True, slots=True)
class Teammate:
    """One agent of a team; deltas are concurrent − sequential."""

    name: str
    type: str
    model: str
    requests: int
    figures: Mapping[str, Figure]
    """slowdown, seconds, ttft, tokens_per_second of either leg, and their deltas."""
    contention: Contention | None = None
    """None where no pair is whole."""


@dataclass(frozen=True, slots=True)
class Stint:
    """One agent at work on one case; times are seconds after the leg began."""

    agent: str
    case: str
    start: float
    end: float
    ttft: float | None = None
    waited: float = 0.0
    """For a permit, before the start."""
    tokens: float | None = None
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Round:
    """One pair of legs: the same prompts, back to back."""

    number: int
    sequential_seconds: float
    concurrent_seconds: float
    sequential: tuple[Stint, ...]
    concurrent: tuple[Stint, ...]
    skew_seconds: float
    answers: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Answers in the concurrent leg: agent to case to output."""
    slower: int = 0
    """Requests that were slower in the concurrent leg."""

    @property
    def speedup(self) -> float:
        return self.sequential_seconds / self.concurrent_seconds


@dataclass(frozen=True, slots=True)
class Grade:
    """A figure held against a target that others have set."""

    figure: str
    target: str
    verdict: str
    """met, missed, or unsure where the interval holds the target."""


@dataclass(frozen=True, slots=True)
class TeamFinding:
    """One team at one point: its two legs compared pair by pair."""

    name: str
    label: str
    axes: Mapping[str, object]
    agents: tuple[Teammate, ...]
    at_once: int
    """How many work at the same time: the permits, or all."""
    figures: Mapping[str, Figure]
    contention: Contention | None
    grades: tuple[Grade, ...]
    rounds: tuple[Round, ...]
    comparison: Comparison | None = None
    """Working at the same time compared with working one after the other, by the speedup."""
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Agent to its definition as written."""
    prompts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Agent to case to what is asked."""
    is_simulated: bool = False
    doubts: tuple[str, ...] = ()

    @property
    def speedup(self) -> Figure | None:
        return self.figures.get("speedup")
