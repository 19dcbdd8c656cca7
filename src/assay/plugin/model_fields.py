"""Pydantic models: the base of our own, and what models say of their fields: the names under which each may be written, and the
models within them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import RLock
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict

_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
_building = RLock()
"""The variable belongs to the whole process: one thread at a time sets it."""


class OwnModel(BaseModel):
    """A model that is built when it is first used, as most commands need one or two, and without pydantic's plug-ins.

    Those are for the user's models. To find them, pydantic reads the metadata of every installed package, which takes longer
    than building the model.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        with _building:
            before = os.environ.get(_PLUGINS)
            os.environ[_PLUGINS] = "__all__"
            try:
                return super().model_rebuild(**options)
            finally:
                del os.environ[_PLUGINS]
                if before is not None:
                    os.environ[_PLUGINS] = before


def names_of(section: type[BaseModel], field: str) -> tuple[str, ...]:
    """The names under which a field may be written, the usual one first."""
    alias = section.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices)
    return (alias,) if isinstance(alias, str) else (field,)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation, also within a list, a mapping or a choice."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def find_siblings(model: type[BaseModel], place: tuple[str | int, ...]) -> list[str]:
    """The keys that may stand where one that is not known stands, under their usual names."""
    for part in place[:-1]:
        if isinstance(part, int):
            continue
        field = next((f for n, f in model.model_fields.items() if part in names_of(model, n)), None)
        inner = next(models_in(field.annotation), None) if field else None
        if inner is None:
            return []
        model = inner
    return [names_of(model, field)[0] for field in model.model_fields]
