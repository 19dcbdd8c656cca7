"""Options of plug-ins, read from the code that takes them: pydantic fields, or a signature and its docstring.

The same models check files before a run, make the JSON schemas for editors, and make the reference pages. An option is thus
documented where it is implemented and nowhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from assay.errors import AssayError, did_you_mean
from assay.plugin import lookup
from assay.plugin.params import param_model, signature_model
from assay.plugin.validation_messages import problem_and_hint

KINDS = ("agents", "scorers", "instruments", "experiments")
"""Plug-ins whose options people write in files."""
GIVEN_BY_THE_RUNNER = ("agent_pool", "folder")
"""Arguments of agents and scorers that no file sets."""
OF_EVERY_AGENT = ("cassette", "concurrency")
"""Keys of an agent's definition that hold for every type, and that are passed on as options."""


@cache
def option_model(kind: str, member: Any) -> type[BaseModel]:
    """The options that a plug-in takes; of a plain function that scores, without output and expected output."""
    if kind == "experiments":
        return param_model(member)
    given = list(inspect.signature(member).parameters)[:2] if inspect.isfunction(member) else []
    common = OF_EVERY_AGENT if kind == "agents" else ()
    return signature_model(member, (*GIVEN_BY_THE_RUNNER, *common, *given))


def option_schema(kind: str, member: Any) -> dict[str, Any]:
    """JSON schema of the options: `properties` with type, default and description, and what is `required`."""
    return option_model(kind, member).model_json_schema()


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """What is wrong with one option; no key where it is about all of them."""

    key: str
    text: str


def option_problems(kind: str, name: str, options: Mapping[str, object]) -> list[OptionProblem]:
    """A plug-in that does not exist, options that it does not have, and of agents options that are missing or mistyped.

    Scorers and instruments check the values of their options themselves.
    """
    try:
        model = option_model(kind, lookup.find(kind, name))
    except AssayError as error:
        return [OptionProblem("", str(error))]
    known = list(model.model_fields)
    accepted = {*known, "folder", *(OF_EVERY_AGENT if kind == "agents" else ())}
    unknown = [key for key in options if key not in accepted]
    problems = []
    if model.model_config.get("extra") != "allow":
        has = ", ".join(known) or "it has none"
        problems = [
            OptionProblem(
                key, f"'{key}' is not an option of '{name}' ({has}). {did_you_mean(key, known)}".strip()
            )
            for key in unknown
        ]
    return problems + (_value_problems(model, name, options) if kind == "agents" else [])


def _value_problems(model: type[BaseModel], name: str, options: Mapping[str, object]) -> list[OptionProblem]:
    """Values that come from the environment are not known yet."""
    plain = {
        key: value
        for key, value in options.items()
        if key in model.model_fields and not (isinstance(value, str) and "${" in value)
    }
    try:
        model.model_validate(plain)
    except ValidationError as error:
        faults: dict[str, list[Any]] = {}
        for fault in error.errors():
            faults.setdefault(str(fault["loc"][0]), []).append(fault)
    else:
        return []
    problems = []
    for key, key_faults in faults.items():
        if key not in options:
            problems.append(OptionProblem("", f"an agent of type '{name}' needs '{key}'."))
        elif key in plain:
            problems.append(OptionProblem(key, f"'{key}' {' '.join(problem_and_hint(key_faults))}".strip()))
    return problems


def type_text(field: Mapping[str, Any]) -> str:
    """The type of a field of a JSON schema, in words.

    >>> type_text({"anyOf": [{"type": "integer"}, {"const": "auto"}, {"type": "null"}]})
    'whole number or `auto`'
    """
    if "anyOf" in field:
        parts = (type_text(part) for part in field["anyOf"] if part.get("type") != "null")
        return " or ".join(dict.fromkeys(parts))
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return "mapping"
    words = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "true or false",
        "array": "list",
        "object": "mapping",
    }
    return words.get(field.get("type", ""), "anything")
