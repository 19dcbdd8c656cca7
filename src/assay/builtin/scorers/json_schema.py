"""The scorer that validates an output against a JSON schema, by the package `jsonschema`.

References to other documents are not followed: a schema comes from a suite, and a scorer must not fetch anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from assay.builtin.scorers.code_blocks import NOT_JSON, json_value
from assay.builtin.scorers.options import option_error
from assay.builtin.scorers.text_normalization import NO_OUTPUT, RIGHT
from assay.errors import MissingExtra
from assay.model import Case
from assay.plugin import Judged, Judgement


class JsonSchema:
    """The output, read as JSON, is valid under a JSON schema. Needs the extra `json`.

    Args:
        schema: The schema. Default: the expected output of the case.

    Example:
        scorer: {name: json_schema, schema: {type: object, required: [amount]}}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected", "schema")

    def __init__(self, *, schema: Mapping[str, object] | bool | None = None) -> None:
        self._jsonschema = _jsonschema()
        self._validator = None
        if schema is not None:
            try:
                self._validator = self._build_validator(schema)
            except ValueError as problem:
                raise option_error("json_schema", "schema", f"{problem}.") from None

    def score(self, judged: Judged) -> Judgement:
        if self._validator is None and judged.expected is None:
            return Judgement(None, "there is no schema: neither an option nor an expected output")
        if judged.output is None:
            return NO_OUTPUT
        try:
            validator = self._validator or self._build_validator(judged.expected)
        except ValueError as problem:
            return Judgement(None, f"the expected output {problem}")
        given = json_value(judged.output)
        return (
            Judgement(0.0, "the output holds no JSON")
            if given is NOT_JSON
            else _judge_output(validator, given)
        )

    def example(self, expected: object, case: Case) -> str | None:
        """The smallest value of the schema, where that can be made from its types, required keys and lower bounds."""
        schema = expected if self._validator is None else self._validator.schema
        text = json.dumps(_instance(json_value(schema)), default=str)
        return text if self.score(Judged(text, expected, case)).value == 1 else None

    def _build_validator(self, schema: object) -> Any:
        """A validator that fetches nothing from anywhere; ValueError says what is wrong with the schema."""
        from referencing import Registry

        schema = json_value(schema)
        if not isinstance(schema, dict | bool):
            raise ValueError("is not a JSON schema: a mapping is needed")
        cls = self._jsonschema.validators.validator_for(schema, default=self._jsonschema.Draft202012Validator)
        try:
            cls.check_schema(schema)
        except self._jsonschema.SchemaError as error:
            raise ValueError(f"is not a JSON schema: {error.message}") from None
        return cls(schema, registry=Registry())


def _instance(schema: Any) -> Any:
    """A small value that may be valid under the schema; the caller validates it, because not every keyword is obeyed."""
    if not isinstance(schema, dict):
        return {}
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    if "default" in schema:
        return schema["default"]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _instance(schema[key][0])
    kinds = schema.get("type", "object")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            properties = schema.get("properties", {})
            return {name: _instance(properties.get(name)) for name in schema.get("required", ())}
        case "array":
            return [_instance(schema.get("items"))] * schema.get("minItems", 0)
        case "string":
            return "x" * max(1, schema.get("minLength", 1))
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return True
    return None


def _judge_output(validator: Any, given: Any) -> Judgement:
    from referencing.exceptions import Unresolvable

    try:
        error = next(iter(validator.iter_errors(given)), None)
    except Unresolvable as unknown:
        return Judgement(None, f"the schema refers to something that is not in it: {unknown}")
    except RecursionError:
        return Judgement(0.0, "the output is nested too deeply")
    if error is None:
        return RIGHT
    message = error.message if len(error.message) <= 200 else error.message[:199] + "…"
    return Judgement(0.0, f"{error.json_path}: {message}")


def _jsonschema() -> Any:
    try:
        return import_module("jsonschema")
    except ImportError:
        raise MissingExtra(
            "Scorer 'json_schema' needs the package 'jsonschema': pip install 'assay-bench[json]'"
        ) from None
