from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from assay.builtin.scorers.fences import NOT_JSON, json_value
from assay.builtin.scorers.options import refused
from assay.builtin.scorers.texts import NO_OUTPUT, RIGHT
from assay.errors import MissingExtra
from assay.plugin.scorer import Judged, Judgement


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
                self._validator = self._made(schema)
            except ValueError as problem:
                raise refused("json_schema", "schema", f"{problem}.") from None

    def score(self, judged: Judged) -> Judgement:
        if self._validator is None and judged.expected is None:
            return Judgement(None, "there is no schema: neither an option nor an expected output")
        if judged.output is None:
            return NO_OUTPUT
        try:
            validator = self._validator or self._made(judged.expected)
        except ValueError as problem:
            return Judgement(None, f"the expected output {problem}")
        given = json_value(judged.output)
        return Judgement(0.0, "the output holds no JSON") if given is NOT_JSON else _judged(validator, given)

    def _made(self, schema: object) -> Any:
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


def _judged(validator: Any, given: Any) -> Judgement:
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
