"""Where code under judgement runs: chosen by the operator, refused early, kept with the run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.command import AssayInline

from assay.builtin.sandboxes.bubblewrap import Bubblewrap
from assay.builtin.sandboxes.seccomp import seccomp_filter
from assay.plugin.sandbox import Program, find_sandbox, python_path

RIGHT = "def add(a, b): return a + b"
CHEAT = "class A:\n  def __eq__(self, o): return True\ndef add(a, b): return A()"
SUITE = {
    "suite": "coding",
    "agents": [
        {"name": "right", "type": "stub", "answer": RIGHT},
        {"name": "cheat", "type": "stub", "answer": CHEAT},
    ],
    "benchmarks": [
        {
            "id": "add",
            "cases": [{"id": "one", "input": "write add", "tests": "assert add(1, 2) == 3"}],
            "scorer": {"name": "rubric", "criteria": [{"name": "works", "scorer": "code"}]},
            "iterations": {"measured": 1, "warmup": 0},
        }
    ],
}


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)


def write_suite(assay: AssayInline) -> None:
    assay.write("s.yaml", json.dumps(SUITE))


@pytest.mark.usefixtures("bubblewrap")
def test_a_run_says_which_sandbox_it_judged_code_in(assay_inline: AssayInline, bubblewrap: str) -> None:
    write_suite(assay_inline)
    done = assay_inline("run", "s.yaml", "--json", "--isolation", "process").json
    assert done["environment"]["sandbox"] == bubblewrap
    assert [trial["ratings"]["accuracy"]["value"] for trial in done["trials"]] == [1.0, 0.0]
    assert f"sandbox: {bubblewrap}" in " ".join(assay_inline("show", "last").out.split())
    again = assay_inline("rescore", "last", "--sandbox", "none", "--json").json
    assert again["environment"]["sandbox"] == f"{bubblewrap}, none"
    assert "sandbox" in [warning["code"] for warning in again["warnings"]]


@pytest.mark.usefixtures("no_bubblewrap")
@pytest.mark.parametrize(
    "command",
    [["validate", "s.yaml"], ["run", "s.yaml", "--dry-run"], ["run", "s.yaml"], ["suite", "check", "s.yaml"]],
)
def test_without_bubblewrap_a_suite_that_judges_code_is_refused_before_it_runs(
    assay_inline: AssayInline, command: list[str]
) -> None:
    write_suite(assay_inline)
    done = assay_inline(*command)
    assert done.code == 2
    assert "bubblewrap" in done.err
    assert "--sandbox none" in done.err
    assert assay_inline("runs", "list", "--json").json == []


@pytest.mark.usefixtures("no_bubblewrap")
def test_a_suite_without_agents_is_refused_by_validate_as_well(assay_inline: AssayInline) -> None:
    assay_inline.write("s.yaml", json.dumps({key: SUITE[key] for key in SUITE if key != "agents"}))
    assert assay_inline("validate", "s.yaml").code == 2
    assert assay_inline("validate", "s.yaml", "--sandbox", "none").code == 0


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_a_sandbox_code_is_judged_on_demand_and_the_run_says_so(assay_inline: AssayInline) -> None:
    write_suite(assay_inline)
    done = assay_inline("run", "s.yaml", "--json", "--sandbox", "none").json
    assert done["environment"]["sandbox"] == "none"
    assert "sandbox" in [warning["code"] for warning in done["warnings"]]
    # Results are compared in another process, with or without a sandbox.
    assert [trial["ratings"]["accuracy"]["value"] for trial in done["trials"]] == [1.0, 0.0]
    assert assay_inline("validate", "s.yaml").code == 2  # the choice was for one command


def test_doctor_says_whether_there_is_a_sandbox(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    found = assay_inline("doctor", "--json").json["sandbox"]
    assert (found["ok"], found["install"]) == (False, "apt-get install bubblewrap")


def test_a_bubblewrap_that_does_not_work_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(
        "#!/bin/sh\ntest $1 = --version && echo bubblewrap 0.8.0 || { echo no permission >&2; exit 1; }\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("ASSAY_SANDBOX_PROBED", raising=False)
    assert "no permission" in Bubblewrap().problem()


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        ("import os; os.fork()", "PermissionError"),
        ("import socket; socket.socket()", "PermissionError"),
        ("open('/new', 'w')", "Read-only"),
        ("open('/dev/shm/new', 'w')", "Read-only"),
        ("open('/tmp/big', 'w').write('x' * (300 << 20))", "No space left"),
        ("import os; os.listdir('/proc')", "FileNotFoundError"),
        ("import threading; t = threading.Thread(target=print); t.start(); t.join()", ""),
        ("import asyncio; asyncio.run(asyncio.sleep(0))", ""),
    ],
)
def test_a_program_in_the_sandbox_can_compute_and_not_much_else(attempt: str, error: str) -> None:
    process = find_sandbox("A test").start(
        Program([python_path(), "-I", "-S", "-c", attempt]), stderr=-1, stdout=-3
    )
    _, said = process.communicate()
    assert (process.returncode == 0) == (not error)
    assert error in said.decode()


@pytest.mark.usefixtures("bubblewrap")
def test_a_program_in_the_sandbox_sees_nothing_of_the_project() -> None:
    process = find_sandbox("A test").start(Program(["test", "-e", __file__]))
    assert process.wait() == 1
    assert Path(__file__).exists()


def test_there_is_a_filter_of_system_calls_for_known_machines_only() -> None:
    assert seccomp_filter("x86_64", may_open_sockets=False, may_start_processes=False)
    assert seccomp_filter("riscv64", may_open_sockets=False, may_start_processes=False) == b""
