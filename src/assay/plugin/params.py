"""Params of an experiment: declared by a nested model, by a constructor, or by a function's arguments.

Whichever it is, a pydantic model is made of it, and that model checks what a spec or `--set` gives, fills in defaults and
makes the JSON schema. Params are stored and sent to workers, so they leave here as plain data.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticSerializationError

from assay.errors import PlanError, known_names
from assay.plugin.documentation import documentation_of
from assay.plugin.experiment import experiment_class
from assay.plugin.model_fields import OwnModel, find_siblings
from assay.plugin.validation_messages import group_by_place, problem_and_hint


@dataclass(frozen=True, slots=True)
class ParamMistake:
    """What is wrong with one param; `problem` continues its name, as in "must be a number."."""

    name: str
    problem: str
    hint: str = ""


def is_experiment(member: Any) -> bool:
    if isinstance(member, type):
        return callable(getattr(member, "execute_once", None))
    return hasattr(member, "bound")


def check_params(
    member: Any, params: Mapping[str, Any], called: str = "this experiment"
) -> tuple[dict[str, Any], list[ParamMistake]]:
    """All params with defaults filled in, as plain data, and what is wrong with those given."""
    model = param_model(member)
    try:
        valid = model.model_validate(dict(params))
    except ValidationError as error:
        by_place = group_by_place(error, params)
        return dict(params), [_mistake(place, faults, model, called) for place, faults in by_place.items()]
    endless = [name for name, value in valid if not _is_finite(value)]
    mistakes = [ParamMistake(name, "must be finite, not infinity or NaN.") for name in endless]
    # To pydantic, true is the number 1.
    given = {name: value for name, value in params.items() if isinstance(value, bool)}
    for name, field in model.model_fields.items():
        if name in given and (wanted := _describe_number(field.annotation)):
            mistakes.append(ParamMistake(name, f"must be {wanted}, not {str(given[name]).lower()}."))
    return _plain(valid, is_declared=_find_declared_params(member) is not None), mistakes


def _describe_number(annotation: Any) -> str | None:
    """What numbers a type takes; None if it takes anything else as well, except nothing."""
    is_union = get_origin(annotation) in (Union, UnionType)
    kinds = {*(get_args(annotation) if is_union else (annotation,))} - {type(None)}
    if not kinds or not kinds <= {int, float}:
        return None
    return "a number" if float in kinds else "a whole number"


def is_axis(member: Any, name: str, value: Any) -> bool:
    """Whether a list under `params` is an axis: its items fit the param, the list itself does not."""
    field = param_model(member).model_fields.get(name)
    if not isinstance(value, list) or not value or field is None:
        return False
    annotation: Any = field.annotation
    try:
        kind: TypeAdapter[Any] = TypeAdapter(annotation)
    except PydanticSchemaGenerationError:
        kind = TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    return not _fits(kind, value) and all(_fits(kind, item) for item in value)


def list_params(member: Any) -> Mapping[str, str]:
    """Names under which a spec may list values of a param, each with that param."""
    declared: Mapping[str, str] = getattr(experiment_class(member), "list_params", {})
    return declared


def param_schema(member: Any) -> dict[str, Any]:
    return param_model(member).model_json_schema()


@cache
def param_model(member: Any) -> type[BaseModel]:
    """The model of an experiment's params, made once for each; PlanError where its `Params` is not a pydantic model."""
    experiment, declared = experiment_class(member), _find_declared_params(member)
    if declared is None:
        return signature_model(experiment)
    if not isinstance(declared, type) or not issubclass(declared, BaseModel):
        raise PlanError(
            f"Params of '{experiment.__name__}' must be a pydantic model: class Params(BaseModel)."
        )
    return _forbid_extra_keys(declared)


def _find_declared_params(member: Any) -> Any:
    return getattr(experiment_class(member), "Params", None)


def _forbid_extra_keys(declared: type[BaseModel]) -> type[BaseModel]:
    """The declared model, refusing keys that it does not have."""

    class Closed(declared):  # type: ignore[misc, valid-type]
        model_config = ConfigDict(extra="forbid")

    return Closed


def signature_model(member: Any, without: Collection[str] = ()) -> type[BaseModel]:
    """A model of the arguments of a class or function, each described as its docstring does under `Args:`."""
    callable_ = member.__init__ if inspect.isclass(member) else member
    # A class without a constructor takes nothing, though the signature of `object` says otherwise.
    parameters = {} if callable_ is object.__init__ else dict(inspect.signature(callable_).parameters)
    described = documentation_of(member).arguments
    fields: dict[str, Any] = {
        name: (
            _hint(callable_, parameter),
            Field(
                ... if parameter.default is parameter.empty else parameter.default,
                description=described.get(name),
            ),
        )
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name != "self"
        and not name.startswith("_")
        and name not in without
    }
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    config = ConfigDict(
        extra="allow" if is_open else "forbid", arbitrary_types_allowed=True, protected_namespaces=()
    )
    with warnings.catch_warnings():
        # A param may be called `json` or `copy`; the model's methods of those names are not called.
        warnings.filterwarnings("ignore", message="Field name .* shadows", category=UserWarning)
        return create_model("Params", __base__=OwnModel, __config__=config, **fields)


def _hint(callable_: Any, parameter: inspect.Parameter) -> Any:
    """The type of a parameter; anything where its annotation stands under `if TYPE_CHECKING` and cannot be resolved."""
    if not isinstance(parameter.annotation, str):
        return Any if parameter.annotation is parameter.empty else parameter.annotation
    try:
        return eval(parameter.annotation, getattr(callable_, "__globals__", {}))  # noqa: S307
    except Exception:
        return Any


def _plain(params: BaseModel, is_declared: bool) -> dict[str, Any]:
    """Params as plain data; a default of a function or constructor that is none stays with it."""
    plain: dict[str, Any] = {}
    for name in (*type(params).model_fields, *(params.model_extra or {})):
        try:
            value = params.model_dump(mode="json", include={name})[name]
        except PydanticSerializationError:
            continue
        if is_declared or name in params.model_fields_set or value == getattr(params, name):
            plain[name] = value
    return plain


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _fits(kind: TypeAdapter[Any], value: Any) -> bool:
    try:
        kind.validate_python(value)
    except ValidationError:
        return False
    return True


def _mistake(
    place: tuple[str | int, ...], faults: list[Any], model: type[BaseModel], called: str
) -> ParamMistake:
    name, within = (str(place[0]), place[1:]) if place else ("", ())
    if faults[0]["type"] == "extra_forbidden" and not within:
        hint = known_names(name, sorted(model.model_fields)) or "It has none."
        return ParamMistake(name, f"is not a param of {called}.", hint)
    problem, hint = problem_and_hint(faults, find_siblings(model, place))
    inner = " of ".join(
        f"item {part + 1}" if isinstance(part, int) else f"'{part}'" for part in reversed(within)
    )
    return ParamMistake(name, f"{inner} {problem}".lstrip(), hint)
