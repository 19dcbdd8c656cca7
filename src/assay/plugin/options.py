"""Options of plug-ins, read from the code that takes them: pydantic fields, or a signature and its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from assay.plugin.params import param_model, signature_model

KINDS = ("agents", "scorers", "instruments", "experiments")
"""Plug-ins whose options people write in files."""
GIVEN_BY_THE_RUNNER = ("stable", "folder")
"""Arguments of agents and scorers that no file sets."""


def option_model(kind: str, member: Any) -> type[BaseModel]:
    """The options that a plug-in takes; of a plain function that scores, without output and expected output."""
    if kind == "experiments":
        return param_model(member)
    given = list(inspect.signature(member).parameters)[:2] if inspect.isfunction(member) else []
    return signature_model(member, (*GIVEN_BY_THE_RUNNER, *given))


def option_schema(kind: str, member: Any) -> dict[str, Any]:
    """JSON schema of the options: `properties` with type, default and description, and what is `required`."""
    return option_model(kind, member).model_json_schema()


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
