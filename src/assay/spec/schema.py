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
    WithJsonSchema,
)


class Section(BaseModel):
    # Built when it is first used: most commands need one or two of these.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


def _share(value: Any) -> Any:
    """`5%` and `0.05` mean the same."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*", value)):
        return float(match[1]) / 100
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Share = Annotated[
    float,
    BeforeValidator(_share),
    Field(gt=0, lt=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": r"^\s*[\d.]+\s*%\s*$"},
            ]
        }
    ),
]
Names = Annotated[
    list[str],
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
]
Version = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, (int, float)) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]
Count = Annotated[int, Field(ge=0, le=100_000_000)]
Number = Annotated[int, Field(ge=1, le=100_000_000)]


class UntilSection(Section):
    """When `measured: auto` has seen enough."""

    interval: Share = Field(
        0.05, description="Half the width of the 95 % interval of the median, relative to it."
    )
    max: Number = Field(50, description="Executions at the most.")
    metric: str = Field("seconds", description="The metric whose interval is watched.")


class IterationsSection(Section):
    warmup: Count = Field(0, description="Executions in each process before anything counts.")
    measured: Number | Literal["auto"] = Field(1, description="Executions in each process; auto: see until.")
    until: UntilSection | None = Field(None, description="With `measured: auto`: when to stop.")
    loops: Number | Literal["auto"] | None = Field(
        None,
        description="Calls within one execution; auto finds as many as the clock needs. Default: 1, for functions auto.",
    )


class UntilDecidedSection(Section):
    """When a run of two arms may end: as soon as it is decided whether the second is better than the first."""

    decided: str = Field(
        description="The metric to decide by: `seconds`, `score`, `usd`, `tokens` or one of the experiment's own."
    )
    tolerance: Share | None = Field(
        None,
        description="Differences within it count as none. Default: 3 %, for scores one point of a hundred.",
    )
    max: Annotated[int, Field(ge=10, le=100_000)] | None = Field(
        None,
        description="Pairs at the most. Default: 60 processes a side, or of a suite all of its cases.",
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

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    name: str


def _instrument(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Instrument = Annotated[
    InstrumentSection,
    BeforeValidator(_instrument),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            ]
        }
    ),
]


class Entry(Section):
    """One experiment and how to run it."""

    experiment: str = Field(description="A name, `module:attribute` or `file.py::name`.")
    params: dict[str, Any] = Field(default_factory=dict, description="Settings of the experiment.")
    sweep: dict[str, list[Any]] = Field(default_factory=dict, description="Axes: each name with its values.")
    strategy: Literal["cartesian", "random", "zip"] = Field("cartesian", description="How axes make points.")
    samples: Number | None = Field(None, description="With `strategy: random`: how many points to draw.")
    iterations: IterationsSection = Field(
        default_factory=lambda: IterationsSection.model_validate({}),
        description="How often each process does it.",
    )
    processes: Number = Field(1, description="Fresh processes, the unit of comparison.")
    instrumentation: list[Instrument] = Field(
        default_factory=lambda: [InstrumentSection(name="timing")], description="Instruments, with options."
    )
    isolation: Literal["process", "cold", "inline"] = Field(
        "process", description="One supervised worker, a process an execution, or in the runner itself."
    )
    limits: LimitsSection = Field(
        default_factory=lambda: LimitsSection.model_validate({}),
        description="What one execution may take at the most.",
    )


class RunSection(Section):
    """What holds for the whole run."""

    name: str | None = Field(None, description="What the run is called; default: the experiment.")
    agents: list[Any] = Field(
        default_factory=list, description="Of experiments that test agents: their names or definitions."
    )
    load: Names = Field(default_factory=list, description="Python files whose experiments are made known.")
    order: Literal["interleaved", "sequential"] = Field("interleaved", description="Order of the trials.")
    executor: str = Field("local", description="Where workers live.")
    parallelism: Number = Field(1, description="Workers at a time.")
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(
        None, description="Seed of order and experiments."
    )
    output_dir: str | None = Field(
        None, description="Folder that receives the JSON result and the Markdown report."
    )
    tags: Names = Field(default_factory=list, description="Words to find the run by.")
    notes: str = Field("", description="Why it is run, for whoever reads the report.")
    until: UntilDecidedSection | None = Field(
        None, description="With two arms: end as soon as it is decided which of them is better."
    )


class OwnEntry(Entry):
    """One of several experiments; the keys of the file are its defaults."""

    experiment: str = Field("", description="A name, `module:attribute` or `file.py::name`.")


class SpecFile(RunSection, OwnEntry):
    """A spec file: one experiment, or several under `experiments` with the other keys as their defaults."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["experiment"]}, {"required": ["experiments"]}]}
    )

    experiments: list[OwnEntry] = Field(
        default_factory=list, min_length=1, description="Several: each may have the keys of one."
    )


RUN_KEYS = frozenset(RunSection.model_fields)
ENTRY_KEYS = frozenset(Entry.model_fields)
