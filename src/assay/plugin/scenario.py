"""A scenario is a kind of pressure that an agent is put under."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from assay.model import AgentUse
from assay.model.load import Distribution, Load, Objective, Quality
from assay.model.stress import CalmErrors, Sample, ScenarioFinding, Stretch


class ScenarioSubject(Protocol):
    """The agent or URL under stress: what it is, and the ways to ask it.

    A scenario reads the properties to find out whether it applies, and chooses a way to ask: `loaded`
    sends requests from the load generator, `through_its_own_code` runs the agent with its own retries.
    What these methods return is made to be handed to `Bench.put` as `asked`; a scenario does not look
    into it.
    """

    @property
    def use(self) -> AgentUse | None:
        """The agent as it is defined; None where a URL is under stress."""
        ...

    @property
    def options(self) -> Any:
        """The options of the load as they were given on the command line."""
        ...

    @property
    def target(self) -> Any:
        """The server that is asked, with its `url`; None for an agent that is asked through its own code."""
        ...

    @property
    def is_server(self) -> bool:
        """Whether the load generator itself speaks to it, by HTTP; otherwise the agent's own code runs in a worker."""
        ...

    @property
    def is_command(self) -> bool:
        """Whether it is a program, with one process for each request in flight."""
        ...

    @property
    def takes_input(self) -> bool:
        """Whether it is asked something; a plain page is only fetched."""
        ...

    @property
    def most_at_once(self) -> int | None:
        """The most requests in flight that make sense for a program; None for everything else."""
        ...

    @property
    def most_in_flight(self) -> int:
        """The most requests that can be in flight from this machine."""
        ...

    @property
    def can_be_told_apart(self) -> bool:
        """Whether each request can carry a mark, so that one that is sent again is recognised."""
        ...

    @property
    def not_through_its_own_code(self) -> str:
        """Why it cannot be asked through its own code; "" where it can."""
        ...

    def number_prompts(self, number: int) -> Sequence[object]:
        """Return at least so many prompts, each with a mark of its own.

        By the mark a server that stands in for the real one recognises a request that is sent again.
        """
        ...

    def loaded(self, prompts: Sequence[object] = (), via: str | None = None, *, is_own: bool = False) -> Any:
        """Return requests with these prompts, to the address `via` instead of its own; `is_own` if a suite can score them."""
        ...

    def through_its_own_code(
        self, prompts: Sequence[object] = (), use: AgentUse | None = None, *, is_own: bool = False
    ) -> Any:
        """Return requests through the agent's own code, with its retries; `use` replaces the definition of the agent."""
        ...

    def upstream(self) -> str | None:
        """The address of the model behind the agent, where that is known."""
        ...

    def with_upstream_at(self, via: str) -> AgentUse:
        """Return the same agent with its model at another address."""
        ...

    def proxy_before(self, upstream: str) -> Any:
        """Return a proxy that can delay, refuse and break requests to that address; a context manager with a `url`."""
        ...


class Bench(Protocol):
    """What a scenario is handed: the agent, what is known of it at the base rate, and the means to put it
    under load.

    The base rate is measured before any scenario runs. Everything that a scenario finds is compared with
    it, since a failure that is as frequent without pressure is not caused by the pressure. A scenario
    calls `put` once for each load and builds its finding from the stretches that come back.
    """

    @property
    def base(self) -> float:
        """Requests per second that the agent sustains comfortably: half of what a short search found, or `--base`."""
        ...

    @property
    def calm(self) -> Distribution:
        """The latency of the agent at the base rate."""
        ...

    @property
    def calm_quality(self) -> Quality | None:
        """The quality of the answers at the base rate; None if no suite tells right from wrong."""
        ...

    @property
    def calm_errors(self) -> CalmErrors:
        """The errors at the base rate: what fails as often there is not caused by the load."""
        ...

    @property
    def objectives(self) -> Sequence[Objective]: ...

    @property
    def is_derived(self) -> bool:
        """Whether the objective was derived from the base rate instead of given."""
        ...

    @property
    def sustain(self) -> float:
        """Seconds that a breach has to last to count."""
        ...

    @property
    def subject(self) -> ScenarioSubject:
        """The agent or URL: what it is, and how to ask it otherwise."""
        ...

    def put(
        self,
        load: Load,
        *,
        prompts: Sequence[str] = (),
        asked: Any = None,
        during: Callable[[float], None] = lambda seconds: None,
        objectives: Sequence[Objective] | None = None,
        grace: float | None = None,
        limit: float | None = None,
    ) -> Stretch:
        """Apply a load to the agent and return what happened.

        By default the agent gets its own prompts, and the suite, if there is one, scores the answers; `prompts` or `asked`
        (requests that the subject made) replace them. `during` is called many times a second with the seconds since the start.
        Requests that are still in flight `grace` seconds after the end of the load are given up, and a single request that takes
        longer than `limit` has failed.
        """
        ...

    def samples(self) -> Sequence[Sample]:
        """Return CPU and memory of the agent's processes since the scenario began; empty if they run elsewhere."""
        ...


@runtime_checkable
class Scenario(Protocol):
    """One kind of pressure on an agent, and the judgement of how the agent takes it.

    A scenario is made without arguments in full size, and by `quick` in small. Assay asks `not_for`
    first: a scenario that does not apply is skipped with the reason, which costs no points. `run` puts
    its loads on the bench one after the other and returns the finding; the score is computed from it, so
    no scenario scores itself.
    """

    name: ClassVar[str]

    @classmethod
    def quick(cls) -> Scenario: ...

    def not_for(self, bench: Bench) -> str:
        """Why it does not apply to this agent; "" where it does."""
        return ""

    def run(self, bench: Bench) -> ScenarioFinding: ...


class ScenarioHooks(Protocol):
    """What a scenario may have beyond Scenario; each attribute is looked up by its name."""

    order: float
    """Its place in `assay stress`: the lowest runs first, and scenarios without one run last, by name."""
