"""Params of an experiment: declared by a nested model, by a constructor, or by a function's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from assay.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class ParamMistake:
    name: str
    problem: str
    hint: str = ""


def experiment_class(member: Any) -> Any:
    """The experiment behind a looked-up member: a class, or an object that stands for a function."""
    return getattr(member, "experiment", member)


def checked(member: Any, params: Mapping[str, Any]) -> tuple[dict[str, Any], list[ParamMistake]]:
    """All params with defaults filled in, as plain data, and what is wrong with those given."""
    model = param_model(member)
    try:
        return model.model_validate(dict(params)).model_dump(mode="json"), []
    except ValidationError as error:
        return dict(params), [_told(fault, model) for fault in error.errors()]


def is_axis(member: Any, name: str, value: Any) -> bool:
    """Whether a list under `params` is an axis: its items fit the param, the list itself does not."""
    field = param_model(member).model_fields.get(name)
    if not isinstance(value, list) or not value or field is None:
        return False
    annotation: Any = field.annotation
    kind: TypeAdapter[Any] = TypeAdapter(annotation)
    return not _fits(kind, value) and all(_fits(kind, item) for item in value)


def param_schema(member: Any) -> dict[str, Any]:
    return param_model(member).model_json_schema()


@cache
def param_model(member: Any) -> type[BaseModel]:
    experiment = experiment_class(member)
    declared = getattr(experiment, "Params", None)
    if declared is not None:
        return _closed(declared)
    return _from_signature(experiment)


def _closed(declared: type[BaseModel]) -> type[BaseModel]:
    """The declared model, refusing keys that it does not have."""

    class Closed(declared):  # type: ignore[misc, valid-type]
        model_config = ConfigDict(extra="forbid")

    return Closed


def _from_signature(experiment: Any) -> type[BaseModel]:
    callable_ = experiment.__init__ if inspect.isclass(experiment) else experiment
    fields: dict[str, Any] = {}
    extra = "forbid"
    hints = _hints(callable_)
    for name, parameter in inspect.signature(callable_).parameters.items():
        if name == "self" or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = "allow"
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    config = ConfigDict(extra=extra, arbitrary_types_allowed=True, protected_namespaces=())  # type: ignore[typeddict-item]
    return create_model("Params", __config__=config, **fields)


def _hints(callable_: Any) -> dict[str, Any]:
    try:
        return inspect.get_annotations(callable_, eval_str=True)
    except Exception:
        # Annotations under `if TYPE_CHECKING` cannot be resolved: such params go unchecked.
        return {}


def _fits(kind: TypeAdapter[Any], value: Any) -> bool:
    try:
        kind.validate_python(value)
    except ValidationError:
        return False
    return True


def _told(fault: Any, model: type[BaseModel]) -> ParamMistake:
    name = ".".join(str(part) for part in fault["loc"]) or "?"
    if fault["type"] == "extra_forbidden":
        known = ", ".join(sorted(model.model_fields)) or "none"
        return ParamMistake(
            name, f"is not a param of this experiment ({known}).", did_you_mean(name, model.model_fields)
        )
    if fault["type"] == "missing":
        return ParamMistake(name, "is missing.")
    if fault["type"] == "literal_error":
        return ParamMistake(name, f"must be {fault['ctx']['expected']}, not {fault['input']!r}.")
    return ParamMistake(
        name, f"{fault['msg'].removeprefix('Input ').replace('should', 'must')}, not {fault['input']!r}."
    )
