"""A scenario is a kind of pressure that an agent is put under."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from assay.model.load import Distribution, Load, Objective, Quality
from assay.model.stress import CalmErrors, Sample, ScenarioFinding, Stretch


class Bench(Protocol):
    """What a scenario is handed: the agent, what is known of it in calm, and the means to put it under load."""

    @property
    def base(self) -> float:
        """Requests per second that it bears comfortably."""
        ...

    @property
    def calm(self) -> Distribution:
        """Its latency at that rate."""
        ...

    @property
    def calm_quality(self) -> Quality | None:
        """Of its answers at that rate; None where no suite tells right from wrong."""
        ...

    @property
    def calm_errors(self) -> CalmErrors:
        """Of the requests at that rate: what fails as often in calm is no doing of the load."""
        ...

    @property
    def objectives(self) -> Sequence[Objective]: ...

    @property
    def is_derived(self) -> bool:
        """Whether the objective was derived from the calm rather than given."""
        ...

    @property
    def sustain(self) -> float:
        """Seconds that a breach has to last to count."""
        ...

    @property
    def subject(self) -> Any:
        """The agent or URL: how to ask it otherwise."""
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
        """Put the load on the agent. It is asked its own prompts, whose answers are held against the suite if there is one;
        or `prompts`, or all that `asked` holds, as the subject makes it. `during` is called many times a second with the seconds since the start; after
        `grace` more seconds than the load lasts, what is still under way is given up; a single request that takes longer
        than `limit` has failed."""
        ...

    def samples(self) -> Sequence[Sample]:
        """CPU and memory of the agent's processes since the scenario began; none where they are elsewhere."""
        ...


@runtime_checkable
class Scenario(Protocol):
    """Made without arguments in full size, and by `quick` in small."""

    name: ClassVar[str]

    @classmethod
    def quick(cls) -> Scenario: ...

    def not_for(self, bench: Bench) -> str:
        """Why it does not apply to this agent; "" where it does."""
        ...

    def run(self, bench: Bench) -> ScenarioFinding: ...
