"""`assay init` makes a project in which everything that it prints works."""

from __future__ import annotations

import json
import re
import shlex

import jsonschema
import pytest
import yaml
from tests.command import Assay, AssayInline


@pytest.mark.slow
def test_every_step_that_it_prints_works(assay: Assay) -> None:
    steps = re.findall(r"^  \d+\. (.*?)  ", assay("init", "try").out, re.MULTILINE)

    assert steps[0] == "cd try"
    assert len(steps) >= 5
    for step in steps[1:]:
        command, *arguments = shlex.split(step)
        done = assay(*arguments, cwd=assay.folder / "try")
        assert (command, done.code) == ("assay", 0), done.err


def test_what_it_writes_is_found_valid(assay_inline: AssayInline) -> None:
    assay_inline("init", "try")
    folder = assay_inline.folder / "try"

    done = assay_inline("validate", "specs/lookup.yaml", "experiments/lookup.py", "--json", cwd=folder)

    assert done.json == {"valid": True, "mistakes": []}


def test_the_schema_that_it_writes_accepts_its_spec(assay_inline: AssayInline) -> None:
    assay_inline("init", "try")
    folder = assay_inline.folder / "try"
    schema = json.loads((folder / ".assay" / "spec.schema.json").read_text())

    jsonschema.validate(yaml.safe_load((folder / "specs" / "lookup.yaml").read_text()), schema)


def test_the_workflow_runs_something(assay_inline: AssayInline) -> None:
    assay_inline("init")

    workflow = yaml.safe_load((assay_inline.folder / ".github/workflows/benchmarks.yml").read_text())

    commands = [step["run"] for step in workflow["jobs"]["benchmark"]["steps"] if "run" in step]
    assert any(command.startswith("assay run ") for command in commands)


def test_it_overwrites_nothing_unless_told_to(assay_inline: AssayInline) -> None:
    path = assay_inline.write("try/specs/lookup.yaml", "mine")

    refusal = assay_inline("init", "try").refusal
    assert (
        refusal
        == "Error: 'try' has specs/lookup.yaml already. Choose another folder, or overwrite with --force.\n"
    )
    assert path.read_text() == "mine"
    assert not (assay_inline.folder / "try" / "assay.toml").exists()

    assert assay_inline("init", "try", "--force").code == 0
    assert path.read_text() != "mine"


def test_in_the_current_folder_there_is_nowhere_to_go_first(assay_inline: AssayInline) -> None:
    assert "cd " not in assay_inline("init").out


def test_it_answers_in_json(assay_inline: AssayInline) -> None:
    answer = assay_inline("init", "try", "--json").json

    assert answer["folder"] == "try"
    assert all((assay_inline.folder / "try" / file).is_file() for file in answer["files"])
    assert all(command.startswith("assay ") for command in answer["next"])


def test_a_file_where_the_folder_should_be_is_told(assay_inline: AssayInline) -> None:
    assay_inline.write("taken", "")

    assert "'taken'" in assay_inline("init", "taken").refusal
