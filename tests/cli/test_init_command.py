"""`assay init` makes a project in which everything that it prints works."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests import forking
from tests.command import AssayInline, environment
from tests.wording import Wording


@pytest.mark.slow
def test_every_step_that_it_prints_works(assay_inline: AssayInline) -> None:
    """With three processes of each point: ten prove no more about a step."""
    steps = re.findall(r"^ +\d+\. (.*?)  ", assay_inline("init", "try").out, re.MULTILINE)
    folder = assay_inline.folder / "try"
    spec = folder / "specs" / "lookup.yaml"
    assert "processes: 10 " in spec.read_text()
    spec.write_text(spec.read_text().replace("processes: 10 ", "processes: 3 "))

    assert steps[0] == "cd try"
    assert len(steps) >= 5
    for step in steps[1:]:
        command, *arguments = shlex.split(step)
        done = assay_inline(*arguments, cwd=folder)
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

    gate = "assay gate last --baseline main"
    commands = [step["run"] for step in workflow["jobs"]["benchmark"]["steps"] if "run" in step]
    assert any(command.startswith("assay run ") for command in commands)
    assert any(command.startswith(gate) for command in commands)


@pytest.mark.slow
def test_the_workflow_fails_only_a_pull_request_that_makes_answers_worse(assay_inline: AssayInline) -> None:
    project = assay_inline.folder / "project"
    assay_inline("init", "project")
    _git(project, "init", "-q")
    _git(project, "add", ".")
    _git(project, "commit", "-qm", "base")
    base = _git(project, "rev-parse", "HEAD")

    job = yaml.safe_load((project / ".github/workflows/benchmarks.yml").read_text())["jobs"]["benchmark"]
    known = {"github.workspace": str(project), "github.event.pull_request.base.sha": base}
    variables = {name: _filled(value, known) for name, value in job["env"].items()}
    scripts = [_filled(step["run"], known) for step in job["steps"] if _is_tried(step)]
    measure_base, measure_proposed, gate = scripts

    def run(script: str) -> int:
        return _step(project, script, variables).returncode

    _git(project, "commit", "-qm", "nothing", "--allow-empty")
    assert [run(script) for script in (measure_base, measure_proposed, gate)] == [0, 0, 0]
    assert (project / "results/gate.md").read_text().startswith("## ✅ ")

    agents = project / "agents.py"
    agents.write_text(agents.read_text().replace('while "*" in words', "while False"))
    _git(project, "commit", "-qam", "wrong answers")
    assert [run(script) for script in (measure_proposed, gate)] == [0, 1]
    assert (project / "results/gate.md").read_text().startswith("## ❌ ")


@pytest.mark.slow
def test_the_workflow_of_the_spec_fails_only_a_pull_request_that_makes_the_code_slower(
    assay_inline: AssayInline,
) -> None:
    project = assay_inline.folder / "project"
    assay_inline("init", "project")
    spec = project / "specs" / "lookup.yaml"
    smaller = {"processes: 10 ": "processes: 6 ", "[list, set]": "[list]", "5000": "500", "20}": "2}"}
    for written, small in smaller.items():
        assert written in spec.read_text()
        spec.write_text(spec.read_text().replace(written, small))
    _git(project, "init", "-q")
    _git(project, "add", ".")
    _git(project, "commit", "-qm", "base")
    base = _git(project, "rev-parse", "HEAD")
    job = yaml.safe_load((project / ".github/workflows/code-benchmarks.yml").read_text())["jobs"]["spec"]
    known = {"github.workspace": str(project), "github.event.pull_request.base.sha": base}
    variables = {name: _filled(value, known) for name, value in job["env"].items()}
    measure_base, measure_proposed, gate = [
        _filled(step["run"], known) for step in job["steps"] if _is_tried(step)
    ]

    def run(script: str) -> int:
        return _step(project, script, variables).returncode

    code = project / "experiments" / "lookup.py"
    code.write_text(code.read_text().replace("range(200)", "range(20)"))
    _git(project, "commit", "-qam", "faster")
    assert [run(script) for script in (measure_base, measure_proposed, gate)] == [0, 0, 0]
    assert "measured=yes" in (project / "output").read_text()

    code.write_text(code.read_text().replace("range(20)", "range(4000)"))
    _git(project, "commit", "-qam", "slower")
    assert [run(script) for script in (measure_proposed, gate)] == [0, 1]
    assert (project / "results/gate.md").read_text().startswith("## ❌ ")


def _is_tried(step: dict[str, Any]) -> bool:
    return "run" in step and not step["run"].startswith(("pip ", "cat "))


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _filled(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def _step(folder: Path, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as programs:
        places = {"GITHUB_OUTPUT": str(folder / "output"), **forking.for_shells(Path(programs))}
        return subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=folder,
            env=environment(variables | places),
            capture_output=True,
            text=True,
            timeout=120,
        )


def test_it_overwrites_nothing_unless_told_to(assay_inline: AssayInline, wording: Wording) -> None:
    path = assay_inline.write("try/specs/lookup.yaml", "mine")

    refusal = assay_inline("init", "try").refusal
    assert all(part in refusal for part in ("'try'", "specs/lookup.yaml", "--force"))
    assert len(refusal.splitlines()) == 1
    wording(refusal)
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


def test_a_file_where_the_folder_should_be_is_reported(assay_inline: AssayInline) -> None:
    assay_inline.write("taken", "")

    assert "'taken'" in assay_inline("init", "taken").refusal


def test_nobody_else_may_enter_the_folder_of_results(assay_inline: AssayInline) -> None:
    assay_inline("init", "try")

    assert (assay_inline.folder / "try" / ".assay").stat().st_mode & 0o777 == 0o700


def test_a_dry_run_of_a_suite_refuses_an_executor_that_does_not_exist(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline("init", "try")

    done = assay_inline(
        "run", "arithmetic", "--executor", "mars", "--dry-run", cwd=assay_inline.folder / "try"
    )

    assert done.code == 2
    assert "'mars'" in done.err
    assert "local" in done.err
    wording(done.err)
