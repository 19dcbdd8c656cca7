"""How something is executed: what plans, suites and jobs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Isolation(StrEnum):
    """How far an execution is kept apart from the runner and from its neighbours.

    `process`: one supervised worker process makes all executions of a job, and is killed when it exceeds a limit. `cold`: each
    execution has a fresh process. `inline`: in the runner itself, where limits of time and memory cannot be enforced.
    """

    PROCESS = "process"
    COLD = "cold"
    INLINE = "inline"


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """What one job needs of the node that it runs on. An executor with nodes chooses one that has them."""

    cpu: float = 1.0
    gpu: float = 0.0
    custom: Mapping[str, float] = field(default_factory=dict)
    """Resources that the operator of a cluster has given a name, and how much of each."""

    def together_with(self, other: ResourceRequest) -> ResourceRequest:
        """
        >>> ResourceRequest(1, 0, {"tpu": 1}).together_with(ResourceRequest(2, 1))
        ResourceRequest(cpu=3, gpu=1, custom={'tpu': 1.0})
        """
        names = {**self.custom, **other.custom}
        custom = {name: self.custom.get(name, 0.0) + other.custom.get(name, 0.0) for name in names}
        return ResourceRequest(self.cpu + other.cpu, self.gpu + other.gpu, custom)


@dataclass(frozen=True, slots=True)
class AgentUse:
    """How to make an agent: its type and options as written, with `${NAME}` for what only the environment knows."""

    name: str
    type: str
    options: Mapping[str, object] = field(default_factory=dict)
    version: str = ""
    price: Mapping[str, float] | None = None
    """usd per million tokens, `input` and `output`, and `request`; goes before the price list."""
    folder: str = ""
    """Folder of the file that defines it: relative paths in its options count from here."""
    resources: ResourceRequest | None = None
    """What it needs of a node; None where it asks for nothing in particular."""


@dataclass(frozen=True, slots=True)
class Until:
    """When `measured: auto` has seen enough: the interval is this narrow, or the maximum is reached."""

    interval: float = 0.05
    max: int = 50
    min: int = 6
    metric: str = "seconds"


@dataclass(frozen=True, slots=True)
class Iterations:
    """How often one process does it; `until` is set when `measured` is only a ceiling."""

    warmup: int = 0
    measured: int = 1
    until: Until | None = None
    loops: int | None = 1
    """Calls within one execution; None finds a number that the clock can see (autorange)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one execution; None is no ceiling."""

    seconds: float | None = None
    memory_bytes: int | None = None
    tokens: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """Ceilings for a whole run; None is no ceiling."""

    usd: float | None = None
    tokens: float | None = None

    def override_with(self, other: Budget) -> Budget:
        """With the ceilings that the other has in the place of its own.

        >>> Budget(usd=1.0, tokens=5.0).override_with(Budget(usd=2.0))
        Budget(usd=2.0, tokens=5.0)
        """
        return Budget(
            self.usd if other.usd is None else other.usd,
            self.tokens if other.tokens is None else other.tokens,
        )


@dataclass(frozen=True, slots=True)
class Cleanup:
    """A command that runs after a worker was killed or crashed, and the folder that it runs in."""

    command: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class InstrumentUse:
    name: str
    options: Mapping[str, object] = field(default_factory=dict)


RECORDED = "recorded"
"""The type of agents whose answers were made earlier."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit in a temporary folder, from which some trials of a run take their code."""

    commit: str
    original: str
    """Top folder of the repository."""
    folder: str
    """Where the commit is checked out."""

    def map_path(self, path: str) -> str:
        """The same place in the checkout; what is outside of the repository stays where it is.

        >>> Checkout("ab12", "/project", "/tmp/old").map_path("/project/agents.py:fast")
        '/tmp/old/agents.py:fast'
        """
        if path == self.original or path.startswith(f"{self.original}/"):
            return self.folder + path[len(self.original) :]
        return path
