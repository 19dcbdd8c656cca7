"""`assay schema suite|agents|spec|team` agrees with what is read, and with everything that is shown to users."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.command import AssayInline

from assay.errors import SpecError
from assay.plugin import lookup
from assay.plugin.documentation import documentation_of
from assay.plugin.model_fields import models_in
from assay.spec.agents import AgentSection, PriceSection
from assay.spec.case_keys import CaseSection, ToolSection, TurnSection
from assay.spec.document import read_document
from assay.spec.files import builtin_specs, builtin_suites, builtin_teams
from assay.spec.json_schema import file_schema
from assay.spec.schema import Section, SpecFile
from assay.spec.scorers import ScorerSection
from assay.spec.suite import BenchmarkSection, SuiteFile, SuiteSpec, read_suite
from assay.spec.yaml_text import parse

ROOT = Path(__file__).parents[2]
KINDS = ("spec", "suite", "agents", "team")
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
SNIPPETS = {
    f"{page.relative_to(ROOT)}:{page.read_text()[: match.start()].count(chr(10)) + 1}": match[1]
    for page in _PAGES
    for match in _YAML.finditer(page.read_text())
}
FILES = [
    *builtin_specs().values(),
    *builtin_suites().values(),
    *builtin_teams().values(),
    *sorted(set((ROOT / "examples").rglob("*.yaml")) - set((ROOT / "examples" / "cluster").glob("*.yaml"))),
]


def kind_of(value: dict[str, Any]) -> str | None:
    """Which kind of file this is; None for something else, such as a workflow of a CI server."""
    for what, keys in {
        "suite": {"suite", "suite_id", "benchmarks"},
        "spec": {"experiment", "experiments"},
        "team": {"team", "teams"},
        "agents": {"agents"},
    }.items():
        if value.keys() & keys:
            return what
    return None


@cache
def validator(what: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(file_schema(what))


def faults(what: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message[:300]}" for error in validator(what).iter_errors(value)]


@pytest.mark.parametrize("what", KINDS)
def test_the_command_prints_a_schema_that_validators_accept(assay_inline: AssayInline, what: str) -> None:
    document = assay_inline("schema", what).json

    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_shipped_files_and_examples_are_valid(file: Path) -> None:
    value = read_document(file).value
    kind = kind_of(value)

    assert kind is not None
    assert faults(kind, value) == []


@pytest.mark.parametrize("place", SNIPPETS)
def test_every_snippet_of_the_documentation_is_valid(place: str) -> None:
    value = parse(SNIPPETS[place], place).value
    kind = kind_of(value)
    if kind is None and value.keys() <= {"scorer", "instrumentation", "experiment", "params"}:
        kind, value = _completed(value)

    elif value.keys() == {"benchmarks"}:
        value = {"suite": "s", **value}

    elif kind is None and value.keys() == {"require"}:
        kind, value = "suite", {"suite": "s", "benchmarks": [{"id": "b", "cases": "c.jsonl"}], **value}

    assert kind is not None, place
    assert faults(kind, value) == []


def _completed(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if "scorer" in value:
        return "suite", {"suite": "s", "benchmarks": [{"id": "b", "cases": "c.jsonl", **value}]}
    return "spec", {"experiment": "noop", **value}


def suite_text(benchmark: str = "", top: str = "", case: str = "{input: a, expected: b}") -> str:
    return f"suite: s\n{top}\nbenchmarks:\n  - id: b\n    cases: [{case}]\n    {benchmark}\n"


GOOD = {
    "aliases": "suite_id: s\nbenchmarks:\n  - benchmark_id: b\n    scorers: exact\n    cases: [{prompt: a, ideal: b}]",
    "a version that looks like a number": suite_text(top="version: 1.2"),
    "one scorer by name": suite_text("scorer: exact"),
    "a scorer with options": suite_text("scorer: [{name: contains, mode: any, weight: 0.5, as: x}]"),
    "a conversation": suite_text(case="{turns: [hello, {user: what, expected: x, scorer: contains}]}"),
    "tools in both styles": suite_text(
        case="{input: a, tools: [{name: t}, {type: function, function: {name: u, parameters: {}}}]}"
    ),
    "metadata of any kind": suite_text(case="{input: a, expected: b, difficulty: 3, notes: {by: ann}}"),
    "an agent": suite_text(top="agents: [nop, {name: a, type: stub, answer: x}]"),
}
BROKEN = {
    "an unknown key": suite_text(top="sweets: 1"),
    "an unknown key of a benchmark": suite_text("scorerr: exact"),
    "an unknown category": suite_text(top="category: fun"),
    "an unknown option of a scorer": suite_text("scorer: {name: contains, moode: any}"),
    "an agent without a type": suite_text(top="agents: [{name: a}]"),
    "no benchmark": "suite: s\nbenchmarks: []",
    "a benchmark without an id": "suite: s\nbenchmarks: [{cases: [{input: a}]}]",
    "a weight of nothing": suite_text("rubric: {weights: {beauty: 1}}"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_what_is_read_is_valid(kind: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(GOOD[kind])

    assert faults("suite", parse(GOOD[kind], "s").value) == []
    assert read_suite(tmp_path / "s.yaml").suite.benchmarks


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_refused_is_not_valid(kind: str, tmp_path: Path) -> None:
    from assay.plan.target import load_suite
    from assay.spec.settings import Settings

    path = tmp_path / "s.yaml"
    path.write_text(BROKEN[kind])

    assert faults("suite", parse(BROKEN[kind], "s").value)
    with pytest.raises(SpecError):
        load_suite(str(path), Settings(tmp_path, "sqlite://"))


@pytest.mark.parametrize(
    "definition",
    [
        "{name: a, type: openai}",
        "{name: a, type: openai, model: m, modle: x}",
        "{name: a, type: openai, model: m, retries: many}",
        "{name: a, type: command, command: [x], mode: twice}",
    ],
)
def test_options_of_agents_are_checked(definition: str) -> None:
    assert faults("agents", parse(f"agents: [{definition}]", "a").value)


def test_options_from_the_environment_and_agents_of_ones_own_are_valid() -> None:
    text = """agents:
      - {name: a, type: openai, model: m, retries: "${RETRIES}"}
      - {name: b, type: "mine:Agent", anything: 1}
    """
    assert faults("agents", parse(text, "a").value) == []


def test_every_key_of_a_file_has_a_meaning_and_an_example() -> None:
    sections: set[type[Any]] = set()
    waiting: list[type[Any]] = [
        *(SpecFile, SuiteFile, SuiteSpec, BenchmarkSection, CaseSection, TurnSection, ToolSection),
        *(AgentSection, PriceSection, ScorerSection),
    ]
    while waiting:
        section = waiting.pop()
        if section not in sections:
            sections.add(section)
            waiting += [
                inner for field in section.model_fields.values() for inner in models_in(field.annotation)
            ]

    fields = {f"{s.__name__}.{name}": field for s in sections for name, field in s.model_fields.items()}
    assert [name for name, field in fields.items() if not field.description] == []
    own = {name for name in fields if name.partition(".")[0] not in ("OwnEntry", "SpecFile")}
    assert [name for name in own if not fields[name].examples] == []


@pytest.mark.parametrize(
    "section", [SuiteFile, SuiteSpec, BenchmarkSection, ScorerSection], ids=lambda s: s.__name__
)
def test_examples_of_keys_are_read(section: type[Section]) -> None:
    for name, field in section.model_fields.items():
        needed = {
            key: one.examples[0]
            for key, one in section.model_fields.items()
            if one.is_required() and one.examples
        }
        assert field.examples
        key = field.alias or name
        section.model_validate({**needed, key: field.examples[0]})


@pytest.mark.parametrize("kind", ["agents", "scorers"])
def test_every_type_has_an_example(kind: str) -> None:
    without_example_section = [
        name for name in lookup.known(kind) if not documentation_of(lookup.find(kind, name)).example
    ]
    assert without_example_section == []
