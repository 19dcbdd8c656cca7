"""`assay init` makes a project in which everything that it prints works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.command import COMMAND, Assay, AssayInline, environment


@pytest.mark.slow
def test_every_step_that_it_prints_works(assay: Assay) -> None:
    steps = re.findall(r"^ +\d+\. (.*?)  ", assay("init", "try").out, re.MULTILINE)

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

    assert done.json == {"valid": True, "mistakes": [], "warnings": []}


def test_the_schema_that_it_writes_accepts_its_spec(assay_inline: AssayInline) -> None:
    assay_inline("init", "try")
    folder = assay_inline.folder / "try"
    schema = json.loads((folder / ".assay" / "spec.schema.json").read_text())

    jsonschema.validate(yaml.safe_load((folder / "specs" / "lookup.yaml").read_text()), schema)


def test_the_workflow_runs_and_gates(assay_inline: AssayInline) -> None:
    assay_inline("init")

    workflow = yaml.safe_load((assay_inline.folder / ".github/workflows/benchmarks.yml").read_text())

    commands = [step["run"] for step in workflow["jobs"]["benchmark"]["steps"] if "run" in step]
    assert any(command.startswith("assay run ") for command in commands)
    assert any(command.startswith("assay gate last --baseline main") for command in commands)


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "code"), [(False, 0), (True, 1)])
def test_the_workflow_fails_only_a_pull_request_that_makes_answers_worse(
    assay: Assay, wrong: bool, code: int
) -> None:
    project = assay.folder / "project"
    assay("init", "project")
    _git(project, "init", "-q")
    _git(project, "add", ".")
    _git(project, "commit", "-qm", "base")
    base = _git(project, "rev-parse", "HEAD")
    if wrong:
        agents = project / "agents.py"
        agents.write_text(agents.read_text().replace('while "*" in words', "while False"))
    _git(project, "commit", "-qam", "proposed", "--allow-empty")

    job = yaml.safe_load((project / ".github/workflows/benchmarks.yml").read_text())["jobs"]["benchmark"]
    known = {"github.workspace": str(project), "github.event.pull_request.base.sha": base}
    variables = {name: _filled(value, known) for name, value in job["env"].items()}
    codes = {}
    for step in job["steps"]:
        if "run" in step and not step["run"].startswith(("pip ", "cat ")):
            done = _step(project, _filled(step["run"], known), variables)
            codes[step["name"]] = done.returncode

    assert list(codes.values()) == [0, 0, code], codes
    assert ("Gate failed" in (project / "results/gate.md").read_text()) == wrong


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _filled(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def _step(folder: Path, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    places = {"GITHUB_OUTPUT": str(folder / "output"), "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment(variables | places),
        capture_output=True,
        text=True,
        timeout=120,
    )


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


def test_nobody_else_may_enter_the_folder_of_results(assay_inline: AssayInline) -> None:
    assay_inline("init", "try")

    assert (assay_inline.folder / "try" / ".assay").stat().st_mode & 0o777 == 0o700


def test_a_dry_run_of_a_suite_refuses_an_executor_that_does_not_exist(assay_inline: AssayInline) -> None:
    assay_inline("init", "try")

    done = assay_inline(
        "run", "arithmetic", "--executor", "mars", "--dry-run", cwd=assay_inline.folder / "try"
    )

    assert done.code == 2
    assert "'mars' among the executors" in done.err
