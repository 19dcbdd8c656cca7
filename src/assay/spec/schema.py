"""What people write in a spec file, key by key."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _share(value: Any) -> Any:
    """`5%` and `0.05` mean the same."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([\d.]+)\s*%\s*", value)):
        return float(match[1]) / 100
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Share = Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1)]
Names = Annotated[list[str], BeforeValidator(_listed)]
Count = Annotated[int, Field(ge=0, le=100_000_000)]


class UntilSection(Section):
    """When `measured: auto` has seen enough."""

    interval: Share = Field(
        0.05, description="Half the width of the 95 % interval of the median, relative to it."
    )
    max: PositiveInt = Field(50, description="Executions at the most.")
    metric: str = Field("seconds", description="The metric whose interval is watched.")


class IterationsSection(Section):
    warmup: Count = Field(0, description="Executions in each process before anything counts.")
    measured: PositiveInt | Literal["auto"] = Field(
        1, description="Executions in each process; auto: see until."
    )
    until: UntilSection | None = Field(None, description="With `measured: auto`: when to stop.")
    loops: PositiveInt | Literal["auto"] | None = Field(
        None,
        description="Calls within one execution; auto finds as many as the clock needs. Default: 1, for functions auto.",
    )


class LimitsSection(Section):
    """Ceilings for one execution."""

    seconds: PositiveFloat | None = Field(
        None, description="It is killed when it takes longer. Default: 600."
    )
    memory_mb: PositiveFloat | None = Field(None, description="Memory of its whole process tree.")
    tokens: PositiveFloat | None = Field(None, description="Tokens it may report to have used.")
    usd: PositiveFloat | None = Field(None, description="Money it may report to have spent.")


class InstrumentSection(BaseModel):
    """An instrument by name; the other keys are its options."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: str


def _instrument(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Instrument = Annotated[InstrumentSection, BeforeValidator(_instrument)]


class Entry(Section):
    """One experiment and how to run it."""

    experiment: str = Field(description="A name, `module:attribute` or `file.py::name`.")
    params: dict[str, Any] = Field(default_factory=dict, description="Settings of the experiment.")
    sweep: dict[str, list[Any]] = Field(default_factory=dict, description="Axes: each name with its values.")
    strategy: Literal["cartesian", "random", "zip"] = Field("cartesian", description="How axes make points.")
    samples: PositiveInt | None = Field(None, description="With `strategy: random`: how many points to draw.")
    iterations: IterationsSection = Field(default_factory=lambda: IterationsSection.model_validate({}))
    processes: PositiveInt = Field(1, description="Fresh processes, the unit of comparison.")
    instrumentation: list[Instrument] = Field(
        default_factory=lambda: [InstrumentSection(name="timing")], description="Instruments, with options."
    )
    isolation: Literal["process", "cold", "inline"] = Field(
        "process", description="One supervised worker, a process an execution, or in the runner itself."
    )
    limits: LimitsSection = Field(default_factory=lambda: LimitsSection.model_validate({}))

    @model_validator(mode="after")
    def _random_needs_samples(self) -> Entry:
        if self.strategy == "random" and self.samples is None:
            raise ValueError("'strategy: random' needs 'samples', the number of points to draw.")
        return self


class RunSection(Section):
    """What holds for the whole run."""

    name: str | None = Field(None, description="What the run is called; default: the experiment.")
    load: Names = Field(default_factory=list, description="Python files whose experiments are made known.")
    order: Literal["interleaved", "sequential"] = Field("interleaved", description="Order of the trials.")
    executor: str = Field("local", description="Where workers live.")
    parallelism: PositiveInt = Field(1, description="Workers at a time.")
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(
        None, description="Seed of order and experiments."
    )
    output_dir: str | None = Field(
        None, description="Folder that receives the JSON result and the Markdown report."
    )
    tags: Names = Field(default_factory=list)
    notes: str = Field("")


class SpecFile(RunSection, Entry):
    """A spec file: one experiment, or several under `experiments` with the other keys as their defaults."""

    experiment: str | None = Field(None, description="A name, `module:attribute` or `file.py::name`.")  # type: ignore[assignment]
    experiments: list[dict[str, Any]] | None = Field(
        None, description="Several: each may have the keys of one."
    )


RUN_KEYS = frozenset(RunSection.model_fields)
ENTRY_KEYS = frozenset(Entry.model_fields)
