"""JSON schemas of the files that people write, complete enough for an editor to check and complete them.

`assay schema` prints them. Pydantic generates most of a schema from the models in this folder. Three things are added: the contents of
lists that the readers check item by item (`_CONTENTS`), the options of each installed plug-in under the key that names it, and the
other names of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import AliasChoices, BaseModel

from assay.errors import AssayError
from assay.plugin import lookup
from assay.plugin.model_fields import models_in
from assay.plugin.options import option_schema
from assay.spec.agents import AgentSection, AgentsFile
from assay.spec.case_keys import CaseSection, ToolSection, TurnSection
from assay.spec.schema import InstrumentSection, SpecFile
from assay.spec.scorers import ScorerSection
from assay.spec.suite import BenchmarkSection, SuiteFile, SuiteSpec
from assay.spec.team import TeamFile

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FROM_ENVIRONMENT: Schema = {"type": "string", "pattern": r"\$\{\w+"}
_OWN_PLUG_IN: Schema = {"type": "string", "pattern": ":"}
"""`module:attribute` and `file.py::name` name plug-ins whose options are not known beforehand."""

_PLUG_INS: Mapping[type[BaseModel], tuple[str, str]] = {
    AgentSection: ("agents", "type"),
    InstrumentSection: ("instruments", "name"),
    ScorerSection: ("scorers", "name"),
}
"""Sections that define a plug-in: of which kind, and the key that names it."""


def file_schema(what: str) -> Schema:
    """The schema of a spec, suite, agents or team file."""
    definitions = _Definitions()
    if what == "suite":
        # A file that has no benchmarks of its own runs a suite that is defined elsewhere.
        root: Schema = {
            "type": "object",
            "if": {"required": ["benchmarks"]},
            "then": definitions.add(SuiteFile),
            "else": definitions.add(SuiteSpec),
        }
    else:
        files: dict[str, type[BaseModel]] = {"spec": SpecFile, "agents": AgentsFile, "team": TeamFile}
        root = definitions.section(files[what])
    return {**root, "$defs": definitions.by_name}


class _Definitions:
    """Schemas under `$defs`, each added when something first refers to it."""

    def __init__(self) -> None:
        self.by_name: dict[str, Schema] = {}

    def add(self, model: type[BaseModel]) -> Schema:
        name = model.__name__
        if name not in self.by_name:
            # An empty one first: a section may hold itself, and asking for it again must find this entry instead of
            # building it for ever.
            self.by_name[name] = {}
            self.by_name[name] = self._with_options(model) if model in _PLUG_INS else self.section(model)
        return {"$ref": f"#/$defs/{name}"}

    def section(self, model: type[BaseModel]) -> Schema:
        """The schema of one model; the models within it are added as definitions."""
        schema = model.model_json_schema()
        schema.pop("$defs", None)
        for inner in sections_in(model):
            self.add(inner)
        for name in list(schema["properties"]):
            if make := _CONTENTS.get(name):
                described = {key: schema["properties"][name].get(key) for key in ("description", "examples")}
                schema["properties"][name] = {**make(self), **{k: v for k, v in described.items() if v}}
        return _with_aliases(schema, model)

    def items(self, section: type[BaseModel], *others: Schema) -> Schema:
        return {"type": "array", "items": {"anyOf": [*others, self.add(section)]}}

    def _with_options(self, section: type[BaseModel]) -> Schema:
        """A section whose further keys are the options of the plug-in that one of its keys names."""
        kind, key = _PLUG_INS[section]
        schema = self.section(section)
        common = schema["properties"]
        options = {name: own for name in lookup.known(kind) if (own := _options(kind, name)) is not None}
        schema["properties"][key] = {**common[key], "anyOf": [{"enum": list(options)}, _OWN_PLUG_IN, _TEXT]}
        schema["allOf"] = [
            {
                "if": {"properties": {key: {"const": name}}, "required": [key]},
                "then": {**own, "properties": {**dict.fromkeys(common, True), **own["properties"]}},
            }
            for name, own in options.items()
        ]
        return schema


def _options(kind: str, name: str) -> Schema | None:
    """The options of one plug-in; None where it needs a package that is not installed."""
    try:
        schema = option_schema(kind, lookup.find(kind, name))
    except AssayError:
        return None
    properties = schema.get("properties", {})
    if kind == "agents":
        properties = {key: _or_from_environment(field) for key, field in properties.items()}
    return {
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": schema.get("additionalProperties", False),
    }


def _or_from_environment(field: Schema) -> Schema:
    """Options of agents may be written as ${NAME}, whatever their type."""
    about = ("description", "default")
    kind = {key: value for key, value in field.items() if key not in about}
    return {key: field[key] for key in about if key in field} | {"anyOf": [kind, _FROM_ENVIRONMENT]}


_CONTENTS: Mapping[str, Callable[[_Definitions], Schema]] = {
    "agents": lambda d: d.items(AgentSection, _TEXT),
    "benchmarks": lambda d: {**d.items(BenchmarkSection), "minItems": 1},
    "cases": lambda d: {"anyOf": [_TEXT, d.items(CaseSection)]},
    "instrumentation": lambda d: d.items(InstrumentSection, _TEXT),
    "scorer": lambda d: {"anyOf": [_TEXT, d.add(ScorerSection), d.items(ScorerSection, _TEXT)]},
    "tools": lambda d: d.items(ToolSection, _WRAPPED_TOOL),
    "turns": lambda d: {**d.items(TurnSection, {"not": {"type": "object"}}), "minItems": 1},
}
"""Keys whose values pydantic sees as lists of anything, because they are read one by one."""

_WRAPPED_TOOL: Schema = {
    "type": "object",
    "properties": {"type": {"const": "function"}, "function": {"type": "object", "required": ["name"]}},
    "required": ["function"],
}


def _with_aliases(schema: Schema, model: type[BaseModel]) -> Schema:
    """Other names of a key are properties as well; of a key that is required, one of the names is."""
    needed = []
    for field in model.model_fields.values():
        if not isinstance(field.validation_alias, AliasChoices):
            continue
        first, *others = map(str, field.validation_alias.choices)
        for other in others:
            schema["properties"].setdefault(
                other, {**schema["properties"][first], "description": f"Another name for `{first}`."}
            )
        if first in schema.get("required", ()):
            schema["required"].remove(first)
            needed.append({"anyOf": [{"required": [name]} for name in (first, *others)]})
    return {**schema, "allOf": needed} if needed else schema


def sections_in(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models that the fields of a model hold, directly or within a list, mapping or choice."""
    for field in model.model_fields.values():
        yield from models_in(field.annotation)
