"""Scorers as they are written, in a benchmark or in a turn of a case, become `ScorerUse`.

A scorer is written as a name, as a mapping with a name and options, or as a list of these. Its options are checked when the run is
planned, as that imports the scorer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, NonNegativeFloat, WithJsonSchema

from assay.model import ScorerUse
from assay.spec.schema import Section


class ScorerSection(Section):
    """Keys of every scorer; the other keys are its options."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    name: str = Field(
        description="One of the scorers below, or your own: file.py:function or module:function.",
        examples=["contains"],
    )
    weight: NonNegativeFloat = Field(
        1.0,
        description="Weight of its score in the score of a case. With 0 the score is only shown.",
        examples=[0.5],
    )
    label: str = Field(
        "",
        alias="as",
        description="Name of its score. Default: the scorer's name.",
        examples=["completeness"],
    )


def as_scorer(value: Any) -> Any:
    """A scorer that is written as a plain name, as the mapping that it stands for."""
    return {"name": value} if isinstance(value, str) else value


def as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


Scorers = Annotated[
    list[Annotated[ScorerSection, BeforeValidator(as_scorer)]],
    BeforeValidator(as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]}),
]


def scorer_use(section: ScorerSection, folder: Path) -> ScorerUse:
    """The noun for a checked section.

    `own.py:grade`, whose path counts from the folder of the suite, and `module:grade` give a score called `grade`.
    """
    file, _, function = section.name.rpartition(":")
    file = file.removesuffix(":")
    is_file = file.endswith(".py")
    name = f"{(folder / file).resolve()}::{function}" if is_file else section.name
    label = section.label or (function if file else "")
    return ScorerUse(name, section.weight, dict(section.model_extra or {}), label)


def identity_of(scorer: ScorerUse) -> list[Any]:
    """What makes a scorer what it is, for the hash of a benchmark: the same wherever the folder of the suite is."""
    return [scorer.name.rpartition("/")[2], scorer.weight, dict(scorer.options), scorer.label]
