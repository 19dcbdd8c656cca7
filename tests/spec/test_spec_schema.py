"""The schema that editors get agrees with what is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from assay.errors import SpecError
from assay.plan import expand
from assay.spec.document import read_document
from assay.spec.files import builtin_specs
from assay.spec.read import load_spec
from assay.spec.schema import SpecFile
from assay.spec.yaml_text import parse

VALIDATOR = jsonschema.Draft202012Validator(SpecFile.model_json_schema())

GOOD = {
    "instruments by name": "experiment: noop\ninstrumentation: [timing, {name: psutil, interval_ms: 50}]",
    "a share in percent": "experiment: noop\niterations: {measured: auto, until: {interval: 5%}}",
    "a share as a number": "experiment: noop\niterations: {measured: auto, until: {interval: 0.05}}",
    "one tag": "experiment: noop\ntags: nightly",
    "several": "processes: 2\nexperiments: [{experiment: noop}, {experiment: noop, processes: 3}]",
    "limits": "experiment: noop\nlimits: {seconds: 1.5, memory_mb: 100}",
}
BROKEN = {
    "no experiment": "seed: 1",
    "an unknown key": "experiment: noop\nprams: {}",
    "an unknown nested key": "experiment: noop\niterations: {mesured: 3}",
    "a wrong type": "experiment: noop\nprocesses: many",
    "a wrong word": "experiment: noop\norder: random",
    "a share of 200": "experiment: noop\niterations: {measured: auto, until: {interval: 200}}",
    "an instrument without a name": "experiment: noop\ninstrumentation: [{interval_ms: 3}]",
    "an unknown key of one of several": "experiments: [{experiment: noop, prams: {}}]",
    "no experiments": "experiments: []",
}


def faults(value: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(value)]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SpecFile.model_json_schema())


@pytest.mark.parametrize("name", builtin_specs())
def test_it_accepts_the_specs_that_are_shipped(name: str) -> None:
    assert faults(read_document(builtin_specs()[name]).value) == []


@pytest.mark.parametrize("kind", GOOD)
def test_it_accepts_what_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(GOOD[kind])

    assert faults(parse(GOOD[kind], "spec").value) == []
    assert expand(load_spec(path)).trials


@pytest.mark.parametrize("kind", BROKEN)
def test_it_refuses_what_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(BROKEN[kind])

    assert faults(parse(BROKEN[kind], "spec").value)
    with pytest.raises(SpecError):
        expand(load_spec(path))


def test_every_key_is_explained() -> None:
    schema = SpecFile.model_json_schema()
    sections = {"spec": schema, **schema["$defs"]}

    unexplained = [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, field in section["properties"].items()
        if not field.get("description")
    ]

    assert unexplained == []
