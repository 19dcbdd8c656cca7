"""The reference pages of suites, agents, scorers, instruments, experiments and the Python API, made from the code."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from pydantic import AliasChoices, BaseModel

import assay
import assay.simulation as simulation
from assay.dialects import plain
from assay.model import Answer, Request, Span, ToolCall, Usage
from assay.plugin import lookup
from assay.plugin.documentation import attributes_of, documentation_of
from assay.plugin.model_fields import models_in
from assay.plugin.options import option_schema, type_text
from assay.plugin.params import list_params
from assay.spec.agents import AgentSection, PriceSection
from assay.spec.case_keys import CaseSection, ScoredKeys, ToolSection, TurnSection
from assay.spec.schema import ExperimentEntry, RunSection
from assay.spec.scorers import ScorerSection
from assay.spec.suite import BenchmarkSection, SuiteFile, SuiteSpec

NOTE = "<!-- Written by docs/generate.py (make docs). Changes belong in the code. -->\n"
_LONGEST_DEFAULT = 40
_LONGEST_LINE = 100


class Undocumented(Exception):
    """A key or option without a description: it has to be described where it is declared."""


def spec_page() -> str:
    return "\n".join(
        [
            NOTE,
            "# Spec file\n",
            "YAML or JSON. Paths are relative to the file that names them. `assay schema spec` prints the JSON schema.\n",
            *_tables([("What to run", ExperimentEntry), ("The run as a whole", RunSection)]),
            "Several experiments in one file: `experiments: [{experiment: …}, …]`; the other keys are their defaults.\n",
            "A list under `params` is an axis when the param takes one value, and a value when the param takes a list.\n",
        ]
    )


def suite_page() -> str:
    return "\n".join(
        [
            NOTE,
            "# Suite file\n",
            "YAML or JSON. Paths are relative to the file that names them. `assay schema suite` prints the JSON schema, "
            "`assay validate FILE` checks a file. Agents are described [here](agents.md), scorers [here](scorers.md).\n",
            *_tables([("Suite", SuiteFile), ("Benchmark", BenchmarkSection)]),
            *_tables([("Case", CaseSection), ("Metadata that scorers read", ScoredKeys)]),
            *_tables([("Turn", TurnSection), ("Tool", ToolSection)]),
            "## A spec that runs a suite\n",
            "A file with `suite: NAME` and without `benchmarks` runs a suite that is defined elsewhere.\n",
            *_table(SuiteSpec),
            *_tables([], [SuiteSpec], known={SuiteFile, BenchmarkSection}),
        ]
    )


def _tables(
    named: Iterable[tuple[str, type[BaseModel]]],
    within: Iterable[type[BaseModel]] = (),
    known: Iterable[type[BaseModel]] = (),
) -> Iterator[str]:
    """A table for each section, then one for each section within them, headed by the keys that lead there."""
    tops = list(named)
    done = {model for _, model in tops}
    for top in known:
        done |= {inner for _, inner in _nested(top, "")} | {top}
    for title, model in tops:
        yield f"## {title}\n"
        if model.__doc__:
            yield model.__doc__.strip().splitlines()[0] + "\n"
        yield from _table(model)
    for top in (*(model for _, model in tops), *within):
        for place, model in _nested(top, ""):
            if model not in done:
                done.add(model)
                yield f"### {place}\n"
                yield from _table(model)


def _nested(model: type[BaseModel], place: str) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in model.model_fields.items():
        for inner in models_in(field.annotation):
            if inner is not ScorerSection:
                yield f"{place}{name}", inner
                yield from _nested(inner, f"{place}{name}.")


def _table(model: type[BaseModel]) -> list[str]:
    schema = model.model_json_schema(by_alias=True)
    lines = ["| key | type | default | meaning | example |", "|---|---|---|---|---|"]
    for name, field in model.model_fields.items():
        key = _key(name, field)
        properties = schema["properties"][key]
        others = (
            field.validation_alias.choices[1:] if isinstance(field.validation_alias, AliasChoices) else ()
        )
        meaning = _described(f"{model.__name__}.{name}", field.description)
        also = f" Also: {', '.join(f'`{other}`' for other in others)}." if others else ""
        example = f"`{key}: {_yaml(field.examples[0])}`" if field.examples else ""
        default = _default(properties, is_required=key in schema.get("required", ()))
        lines.append(_row(f"`{key}`", type_text(properties), default, meaning + also, example))
    return [*lines, ""]


def _key(name: str, field: Any) -> str:
    if isinstance(field.validation_alias, AliasChoices):
        return str(field.validation_alias.choices[0])
    return str(field.validation_alias or field.alias or name)


def _described(what: str, description: str | None) -> str:
    if not description:
        raise Undocumented(f"{what} has no description: add one where it is declared")
    return description


def _default(field: dict[str, Any], is_required: bool) -> str:
    if is_required:
        return "required"
    default = field.get("default")
    if default in (None, [], {}, ""):
        return ""
    text = _yaml(default)
    return f"`{text}`" if len(text) <= _LONGEST_DEFAULT else ""


def _yaml(value: Any) -> str:
    """A value as it is written in a YAML file, on one line.

    >>> _yaml({"name": "contains", "weight": 0.5}), _yaml("0 3 * * 1"), _yaml([True, "1.2"])
    ('{name: contains, weight: 0.5}', '0 3 * * 1', '[true, "1.2"]')
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    if isinstance(value, str):
        is_plain = value[:1].isalnum() and not set(value) & set(":#,[]{}") and not _is_number(value)
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def agents_page() -> str:
    python = _module("agents", "python")
    return "\n".join(
        [
            NOTE,
            "# Agents\n",
            "Agents are defined under `agents:` of a suite, a spec or a file of their own (`agents.yaml`, named in `assay.toml`). "
            "`assay schema agents` prints the JSON schema, `assay list agents --params` this list.\n",
            "`${NAME}` in an option is read from the environment when the agent starts, `${NAME:-default}` with a default, and is "
            "never stored.\n",
            "## Keys of every agent\n",
            *_table(AgentSection),
            "### price\n",
            *_table(PriceSection),
            "## Types\n",
            *_plug_ins("agents", "yaml", "agents:\n"),
            *_sections_of(python),
            *_dataclasses(Request, Answer, Usage, ToolCall, Span),
            *_sections_of(plain),
        ]
    )


def scorers_page() -> str:
    return "\n".join(
        [
            NOTE,
            "# Scorers\n",
            "A scorer gives an output a score from 0 to 1. A benchmark names one or several under `scorer:`; the score of a case is "
            "their weighted mean. `assay list scorers --params` prints this list.\n",
            "## Keys of every scorer\n",
            *_table(ScorerSection),
            "## Types\n",
            *_plug_ins("scorers", "yaml"),
        ]
    )


def experiments_page() -> str:
    return "\n".join(
        [
            NOTE,
            "# Experiments\n",
            "Params of the built-in experiments, given under `params:` of a spec or with `--set NAME=VALUE`. "
            "`assay list experiments --params` prints this list with those of your own.\n",
            *_plug_ins("experiments", "yaml"),
        ]
    )


def metrics_page() -> str:
    lines = [
        NOTE,
        "# Metrics and instruments\n",
        "`seconds`, the time of one call, is always measured. Instruments add theirs; they are named under `instrumentation:`. "
        "`assay list instruments --params` prints their options.\n",
    ]
    for name in lookup.known("instruments"):
        instrument = lookup.find("instruments", name)
        lines += _plug_in("instruments", name, "yaml", "", "##")
        if instrument.slows:
            lines.append("Runs in separate executions, because it slows the code it measures.\n")
        lines += ["| metric | unit | better |", "|---|---|---|"]
        lines += [f"| `{m.name}` | {m.unit or '–'} | {m.better} |" for m in instrument.metrics.values()]
        lines.append("")
    return "\n".join(lines)


def _plug_ins(kind: str, language: str, before: str = "") -> Iterator[str]:
    for name in lookup.known(kind):
        yield from _plug_in(kind, name, language, before, "###" if kind in ("agents", "scorers") else "##")


def _plug_in(kind: str, name: str, language: str, before: str, level: str) -> Iterator[str]:
    member = lookup.find(kind, name)
    documentation = documentation_of(member)
    if not documentation.text:
        raise Undocumented(f"'{name}' among the {kind} has no docstring")
    yield f"{level} {name}\n"
    yield documentation.text + "\n"
    schema = option_schema(kind, member)
    if schema.get("properties"):
        yield "| option | type | default | meaning |"
        yield "|---|---|---|---|"
        for key, field in schema["properties"].items():
            meaning = _described(f"Option '{key}' of '{name}' among the {kind}", field.get("description"))
            default = _default(field, is_required=key in schema.get("required", ()))
            yield _row(f"`{key}`", type_text(field), default, meaning)
        yield ""
    if lists := list_params(member):
        named = ", ".join(f"`{name}` (of `{param}`)" for name, param in lists.items())
        yield f"Lists of values, each an axis of a sweep: {named}.\n"
    if documentation.example:
        indented = documentation.example.replace("\n", "\n  ") if before else documentation.example
        yield f"```{language}\n{before}{'  ' if before else ''}{indented}\n```\n"


def _module(kind: str, name: str) -> Any:
    return sys.modules[lookup.find(kind, name).__module__]


def _sections_of(module: Any) -> list[str]:
    """What a module's docstring says after its first paragraph."""
    return [(inspect.getdoc(module) or "").partition("\n\n")[2] + "\n"]


def _dataclasses(*owners: type) -> Iterator[str]:
    for owner in owners:
        yield f"### {owner.__name__}\n"
        yield (inspect.getdoc(owner) or "") + "\n"
        yield from _fields(owner)


def _fields(owner: type) -> list[str]:
    meanings = attributes_of(owner)
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in dataclasses.fields(owner):
        if field.name not in meanings:
            raise Undocumented(f"{owner.__name__}.{field.name} has no description below it")
        default = "required" if _is_required(field) else _simple(field.default)
        lines.append(_row(f"`{field.name}`", f"`{field.type}`", default, meanings[field.name]))
    return [*lines, ""]


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _simple(default: object) -> str:
    return "" if default in (dataclasses.MISSING, None, (), "") else f"`{default!r}`"


def api_page() -> str:
    """The public names of the package: signatures and docstrings, members of classes included."""
    lines = [
        NOTE,
        "# Python API\n",
        "The names that `import assay` gives, from their signatures and docstrings.\n",
    ]
    for name in assay.__all__:
        lines += _documented(name, getattr(assay, name))
    lines += [
        "# assay.simulation\n",
        "The names that `assay.simulation` gives; see [the guide](../simulation.md).\n",
    ]
    for name in simulation.__all__:
        lines += _documented(name, getattr(simulation, name))
    lines += ["### Settings of SimulationConfig\n", *_table(simulation.SimulationConfig)]
    return "\n".join(lines)


def _documented(name: str, member: Any) -> Iterator[str]:
    yield f"## {name}\n"
    if inspect.isclass(member):
        if not issubclass(member, BaseException):
            yield f"```python\nclass {name}{_signature(member)}\n```\n"
        yield _docstring(name, member)
        yield from _members(name, member)
    else:
        prefix = "async " if inspect.iscoroutinefunction(member) else ""
        yield f"```python\n{prefix}def {name}{_signature(member)}\n```\n"
        yield _docstring(name, member)


def _docstring(name: str, member: Any) -> str:
    documentation = documentation_of(member)
    if not documentation.text:
        raise Undocumented(f"assay.{name} has no docstring")
    arguments = [f"- `{argument}`: {meaning}" for argument, meaning in documentation.arguments.items()]
    example = [f"```python\n{documentation.example}\n```"] if documentation.example else []
    return "\n\n".join(part for part in (documentation.text, "\n".join(arguments), *example) if part) + "\n"


def _members(name: str, owner: type) -> Iterator[str]:
    try:
        meanings = attributes_of(owner)
    except (OSError, TypeError):
        meanings = {}
    rows = [_row(f"`{attribute}`", meaning) for attribute, meaning in meanings.items() if attribute[0] != "_"]
    for attribute, value in vars(owner).items():
        if attribute.startswith("_") or attribute in meanings:
            continue
        if isinstance(value, property):
            rows.append(_row(f"`{attribute}`", " ".join((inspect.getdoc(value) or "").split())))
        elif inspect.isfunction(value):
            summary = (inspect.getdoc(value) or "").partition("\n\n")[0]
            rows.append(_row(f"`{attribute}{_signature(value)}`", " ".join(summary.split())))
    if rows:
        yield from ["| member | meaning |", "|---|---|", *rows, ""]


def _signature(member: Any) -> str:
    """A signature as it is written; on several lines where it is long."""
    try:
        signature = inspect.signature(member)
    except (TypeError, ValueError):
        return "(…)"
    parts = list(_parameters(signature))
    answer = "" if inspect.isclass(member) else f" -> {_annotation(signature.return_annotation)}"
    line = f"({', '.join(parts)}){answer}"
    return line if len(line) <= _LONGEST_LINE else "(\n    " + ",\n    ".join(parts) + f",\n){answer}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    marked = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not marked:
            marked = True
            yield "*"
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        marked = marked or stars == "*"
        kind = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_code(parameter.default)}"
        yield f"{stars}{parameter.name}{kind}{default}"


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return "Any"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.strip("'")


def _code(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return "…" if text.startswith("<") else text
