"""What people write in a spec file, key by key.

Each key is declared once, with its type, default, description and example. From these models come the checks of `read`, the JSON
schema of `json_schema` and the reference pages, so a description is written for users. A spec file is `SpecFile`: the keys of
the run (`RunSection`) and those of an experiment (`ExperimentEntry`), which may also appear once for each of several experiments.
"""

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

from assay.model.settings import Limits, ResourceRequest
from assay.plugin.model_fields import OwnModel, names_of


class Section(OwnModel):
    """The base of all sections: unknown keys, NaN and values of a different type are refused, and `1` is not taken for `true`."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def no_items() -> list[Any]:
    """The default of lists. Pydantic asks each factory for its signature, and parses text to find that of `list` itself."""
    return []


def _read_percentage(value: Any) -> Any:
    """`5%` and `0.05` mean the same."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*", value)):
        return float(match[1]) / 100
    return value


Share = Annotated[
    float,
    BeforeValidator(_read_percentage),
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
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
]
Version = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, (int, float)) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]


def _check_command(value: Any) -> Any:
    """Refuse a command that is written as one text: splitting it would take a shell, with its rules about quotes and
    variables."""
    if not isinstance(value, list) or not value or value[0] == "":
        raise ValueError(
            'must be a list of at least one text, the command and its arguments: ["rm", "-rf", "scratch"].'
        )
    return value


Command = Annotated[
    list[str],
    BeforeValidator(_check_command),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1}),
]
Count = Annotated[int, Field(ge=0, le=100_000_000)]
Number = Annotated[int, Field(ge=1, le=100_000_000)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]

# Keys that several kinds of files have, with their defaults and descriptions.
OutputDir = Annotated[
    str | None,
    Field(None, description="Folder for the JSON result and the Markdown report.", examples=["results"]),
]
Tags = Annotated[Names, Field(default_factory=no_items, description="Tags of the run.", examples=["nightly"])]
Notes = Annotated[str, Field("", description="Notes for the report.", examples=["before the release"])]
TrialOrder = Annotated[
    Literal["interleaved", "sequential"],
    Field("interleaved", description="Order of the trials.", examples=["sequential"]),
]
ExecutorName = Annotated[
    str, Field("local", description="Where workers run: local, or ray.", examples=["ray"])
]


class UntilSection(Section):
    """When `measured: auto` has seen enough."""

    interval: Share = Field(
        0.05,
        description="Half the width of the 95 % interval of the median, relative to it.",
        examples=["2%"],
    )
    max: Number = Field(50, description="Maximum executions.", examples=[200])
    metric: str = Field("seconds", description="The metric whose interval is watched.", examples=["seconds"])


class IterationsSection(Section):
    """Warm-ups and measured executions."""

    warmup: Count = Field(
        0, description="Warm-up executions of each process, which are not counted.", examples=[1]
    )
    measured: Number | Literal["auto"] = Field(
        1, description="Measured executions of each process; auto: see until.", examples=[5]
    )
    until: UntilSection | None = Field(
        None, description="With `measured: auto`: when to stop.", examples=[{"interval": "5%", "max": 50}]
    )
    loops: Number | Literal["auto"] | None = Field(
        None,
        description="Calls within one execution; auto: as many as the clock needs. Default: 1, for functions auto.",
        examples=["auto"],
    )


class UntilDecidedSection(Section):
    """When a run of two arms may end: as soon as it is decided whether the second is better than the first."""

    decided: str = Field(
        description="The metric to decide by: `seconds`, `score`, `usd`, `tokens` or one of the experiment's own.",
        examples=["score"],
    )
    tolerance: Share | None = Field(
        None,
        description="Differences within this count as no difference. Default: 3 %, for scores one point of a hundred.",
        examples=["5%"],
    )
    max: Annotated[int, Field(ge=10, le=100_000)] | None = Field(
        None,
        description="Maximum pairs. Default: 60 processes per side, or all cases of a suite.",
        examples=[100],
    )


class LimitsSection(Section):
    """Limits of time, memory, tokens and cost."""

    seconds: PositiveFloat | None = Field(
        None, description="An execution that takes longer is stopped. Default: 600.", examples=[20]
    )
    memory_mb: PositiveFloat | None = Field(
        None, description="Memory of the whole process tree.", examples=[512]
    )
    tokens: PositiveFloat | None = Field(None, description="Tokens used by one execution.", examples=[1000])
    usd: PositiveFloat | None = Field(None, description="Cost of one execution.", examples=[0.01])

    def to_noun(self) -> Limits:
        memory_bytes = None if self.memory_mb is None else int(self.memory_mb * 2**20)
        return Limits(self.seconds, memory_bytes, self.tokens, self.usd)


class ResourcesSection(Section):
    """What one job needs of the machine that it runs on. An executor with several machines chooses one that has it."""

    cpu: PositiveFloat = Field(1.0, description="Processors.", examples=[2])
    gpu: Annotated[float, Field(ge=0)] = Field(0.0, description="GPUs.", examples=[1])
    custom: dict[str, PositiveFloat] = Field(
        default_factory=dict,
        description="Custom resources of a cluster, by name; a single machine ignores them.",
        examples=[{"tpu": 1}],
    )

    def to_noun(self) -> ResourceRequest:
        return ResourceRequest(self.cpu, self.gpu, self.custom)


class InstrumentSection(OwnModel):
    """An instrument by name; the other keys are its options."""

    model_config = ConfigDict(strict=True, extra="allow")

    name: str = Field(
        description="Name of the instrument; see the reference of instruments.", examples=["psutil"]
    )


Instrument = Annotated[
    InstrumentSection,
    BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            ]
        }
    ),
]


class ExperimentEntry(Section):
    """One experiment and how to run it."""

    experiment: str = Field(
        description="A name, `module:attribute` or `file.py::name`.", examples=["pragma_profile"]
    )
    group: str | None = Field(
        None,
        description="Group that this experiment belongs to; `assay run --group` runs one group.",
        min_length=1,
        examples=["latency"],
    )
    params: dict[str, Any] = Field(
        default_factory=dict, description="Params of the experiment.", examples=[{"num_records": 10000}]
    )
    sweep: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="Params with the values to try.",
        examples=[{"profile": ["balanced", "performance"]}],
    )
    strategy: Literal["cartesian", "random", "zip"] = Field(
        "cartesian",
        description="How to combine the sweep: all combinations, a random sample of them, or value by value (first with first, and so on).",
        examples=["zip"],
    )
    samples: Number | None = Field(
        None, description="With `strategy: random`: how many points to draw.", examples=[10]
    )
    iterations: IterationsSection = Field(
        default_factory=lambda: IterationsSection.model_validate({}),
        description="Warm-up and measured executions per process.",
        examples=[{"warmup": 1, "measured": 5}],
    )
    processes: Number = Field(1, description="Fresh processes, the unit of comparison.", examples=[10])
    instrumentation: list[Instrument] = Field(
        default_factory=lambda: [InstrumentSection(name="timing")],
        description="Instruments, each a name or a mapping with options. Default: timing.",
        examples=[["timing", {"name": "psutil", "interval_ms": 100}]],
    )
    isolation: Literal["process", "cold", "inline"] = Field(
        "process",
        description="process: one supervised worker; cold: a fresh process for each execution; inline: the runner itself.",
        examples=["cold"],
    )
    limits: LimitsSection = Field(
        default_factory=lambda: LimitsSection.model_validate({}),
        description="Limits of one execution.",
        examples=[{"seconds": 30, "memory_mb": 512}],
    )
    resources: ResourcesSection | None = Field(
        None,
        description="Resources that each process needs. Default: one processor.",
        examples=[{"cpu": 2, "gpu": 1}],
    )
    cleanup: Command | None = Field(
        None,
        description="Command, as a list of arguments, that runs in the folder of this file after a process was "
        "killed for time or memory, or crashed. No shell is involved.",
        examples=[["rm", "-rf", "scratch"]],
    )


class RunSection(Section):
    """What holds for the whole run."""

    name: str | None = Field(
        None, description="Name of the run. Default: the experiment.", examples=["nightly"]
    )
    agents: list[Any] = Field(
        default_factory=no_items,
        description="For experiments that test agents: their names or definitions.",
        examples=[["fast", "careful"]],
    )
    load: Names = Field(
        default_factory=no_items,
        description="Python files that define experiments of your own.",
        examples=["experiments/*.py"],
    )
    order: TrialOrder
    executor: ExecutorName
    parallelism: Number | None = Field(
        None,
        description="Concurrent workers. Default: 1, or the number of slots of a cluster.",
        examples=[2],
    )
    seed: Seed | None = Field(
        None, description="Seed for the order of trials and for experiments.", examples=[42]
    )
    output_dir: OutputDir
    tags: Tags
    notes: Notes
    until: UntilDecidedSection | None = Field(
        None,
        description="With two arms: stop as soon as one is decided to be better.",
        examples=[{"decided": "seconds"}],
    )


class OwnEntry(ExperimentEntry):
    """One of several experiments; the keys of the file are its defaults."""

    experiment: str = Field("", description="A name, `module:attribute` or `file.py::name`.")
    tags: Names = Field(default_factory=no_items, description="Tags for the run.", examples=["nightly"])


class SpecFile(RunSection, OwnEntry):
    """A spec file: one experiment, or several under `experiments` with the other keys as their defaults."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["experiment"]}, {"required": ["experiments"]}]}
    )

    experiments: list[OwnEntry] = Field(
        default_factory=no_items,
        min_length=1,
        description="A list, each entry with the keys of a single one.",
    )


RUN_KEYS = frozenset(RunSection.model_fields)
ENTRY_KEYS = frozenset(ExperimentEntry.model_fields)
SPEC_KEYS = (*ExperimentEntry.model_fields, "experiments", *RunSection.model_fields)


def keys_of(section: type[BaseModel]) -> frozenset[str]:
    """Every name that a section gives a meaning."""
    return frozenset(name for field in section.model_fields for name in names_of(section, field))
