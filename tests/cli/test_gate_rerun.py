"""`assay gate --rerun-baseline`: both sides run again, each with the code that it was measured with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import time
from typing import Any

import pytest
from tests.command import AssayInline, Done
from tests.wording import Wording

AGENT = """\
import time
from pause import SECONDS


def ask(question):
    time.sleep(SECONDS)
    return question
"""
BENCH = """\
import time
from assay import benchmark
from pause import SECONDS


@benchmark
def waits():
    time.sleep(SECONDS)
"""
PYTHON_AGENT = {"name": "sleeper", "type": "python", "target": "agents.py:ask", "price": "free"}
BEFORE = "echo · sleeper (baseline)"


class Project:
    """A git repository with a suite and an agent that sleeps as long as one of its files says."""

    def __init__(self, assay: AssayInline, agent: dict[str, Any] | None = None) -> None:
        self.assay, self.folder = assay, assay.folder
        cases = [{"id": f"q{n}", "input": f"q{n}", "expected": f"q{n}"} for n in range(10)]
        benchmark = {"id": "echo", "scorers": ["exact"], "cases": cases}
        suite = {"suite": "naps", "benchmarks": [benchmark], "agents": [agent or PYTHON_AGENT]}
        self.write("suite.json", json.dumps(suite))
        self.write("agents.py", AGENT)
        self.write("bench.py", BENCH)
        self.sleep(0.03)
        self.write(".gitignore", ".assay/\n__pycache__/\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def sleep(self, seconds: float) -> None:
        self.write("pause.py", f"SECONDS = {seconds}\n")
        # Python takes its bytecode for current if the file has the same size and was changed in the same second.
        os.utime(self.folder / "pause.py", (changed := time() + 100 * seconds, changed))

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self) -> str:
        if not (self.folder / ".git").exists():
            self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def run(self, *words: str, isolation: str = "inline") -> str:
        """What is measured here matters to no test: the gate runs both sides again, in workers if their code differs."""
        words = words or ("suite.json", "--repetitions", "3")
        done = self.assay("run", *words, "--isolation", isolation, "--json")
        assert done.code == 0, done.err
        return str(done.json["run_id"])

    def set_baseline(self, isolation: str = "inline") -> str:
        run = self.run(isolation=isolation)
        assert self.assay("baseline", "set", "main", run).code == 0
        return run


def run_of(done: Done) -> str:
    assert done.code in (0, 1), done.err
    return str(json.loads(done.out)["run_id"])


def commits_of(done: Done) -> list[str]:
    return list(json.loads(done.out)["rerun"]["commits"].values())


@pytest.fixture
def project(assay_inline: AssayInline) -> Project:
    return Project(assay_inline)


def test_an_agent_that_became_twice_as_slow_fails_against_the_code_of_its_baseline(project: Project) -> None:
    commit = project.commit()
    before = project.set_baseline(isolation="process")
    project.sleep(0.06)
    project.commit()
    after = project.run(isolation="process")
    done = project.assay("gate", "--rerun-baseline", "--json")
    assert done.code == 1, done.err
    found = json.loads(done.out)
    assert [one["metric"] for one in found["comparisons"] if one["verdict"] == "worse"] == ["seconds"]
    assert found["rerun"] == {
        "run_id": found["run_id"],
        "baseline_run_id": before,
        "judged_run_id": after,
        "commits": {BEFORE: commit},
    }
    assert found["run_id"] not in (before, after)
    assert project.git("worktree", "list").count("\n") == 0


def test_the_new_run_knows_the_version_of_each_side(project: Project) -> None:
    first = project.commit()
    project.set_baseline()
    project.sleep(0.031)
    second = project.commit()
    project.run()
    run = run_of(project.assay("gate", "--rerun-baseline", "--json"))
    shown = project.assay("show", run, "--json").json
    assert [trial["agent"]["version"] for trial in shown["trials"]] == [first[:10], second[:10]]
    assert "gate-rerun" in shown["tags"]


def test_without_a_change_it_passes_and_checks_nothing_out(project: Project) -> None:
    commit = project.commit()
    before = project.set_baseline()
    after = project.run()
    done = project.assay("gate", "--rerun-baseline", "--metric", "score")
    assert done.code == 0, done.err
    assert before in done.out
    assert commit[:7] not in done.out
    command = f"assay baseline set main {after}"
    assert command in done.err


def test_uncommitted_changes_are_run_as_the_current_side(project: Project) -> None:
    commit = project.commit()
    project.set_baseline()
    project.sleep(0.09)
    project.run()
    done = project.assay("gate", "--rerun-baseline", "--json")
    assert done.code == 1, done.err
    assert commits_of(done) == [commit]


def test_a_baseline_with_uncommitted_changes_is_refused(project: Project, wording: Wording) -> None:
    project.commit()
    project.sleep(0.031)
    before = project.set_baseline()
    project.sleep(0.03)
    project.run()
    done = project.assay("gate", "--rerun-baseline")
    assert done.code == 2
    assert all(part in done.err for part in ("'sleeper'", before, "-dirty"))
    wording(re.sub(r"\b[0-9a-f]{10}\b", "ID", done.err))


def test_files_that_git_does_not_track_do_not_spoil_a_baseline(project: Project) -> None:
    project.write(".gitignore", "")
    commit = project.commit()
    project.set_baseline()
    project.sleep(0.09)
    project.git("commit", "--quiet", "--all", "--message", "slower")
    project.run()
    done = project.assay("gate", "--rerun-baseline", "--json")
    assert done.code == 1, done.err
    assert commits_of(done) == [commit]


def test_changed_code_without_git_is_refused(project: Project, wording: Wording) -> None:
    before = project.set_baseline()
    project.write("agents.py", AGENT + "\n# changed\n")
    project.run()
    done = project.assay("gate", "--rerun-baseline")
    assert done.code == 2
    assert all(part in done.err for part in ("'sleeper'", before, "git"))
    wording(re.sub(r"\b[0-9a-f]{10}\b", "ID", done.err))


def test_a_commit_that_the_repository_does_not_have_is_refused(project: Project) -> None:
    project.commit()
    project.set_baseline()
    project.git("checkout", "--quiet", "--orphan", "other")
    project.sleep(0.031)
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "another history")
    project.git("branch", "-D", "main" if "main" in project.git("branch") else "master")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "--quiet", "--prune=now")
    project.run()
    done = project.assay("gate", "--rerun-baseline")
    assert done.code == 2
    assert "git fetch --unshallow" in done.err


def test_a_given_version_does_not_hide_that_the_code_changed(assay_inline: AssayInline) -> None:
    project = Project(assay_inline, {**PYTHON_AGENT, "version": "v1"})
    commit = project.commit()
    project.set_baseline()
    project.sleep(0.09)
    project.commit()
    project.run()
    done = project.assay("gate", "--rerun-baseline", "--json")
    assert done.code == 1, done.err
    assert commits_of(done) == [commit]


def test_a_program_that_git_does_not_track_is_refused(assay_inline: AssayInline) -> None:
    agent = {"name": "built", "type": "command", "command": ["./built"], "mode": "lines", "version": "v1"}
    project = Project(assay_inline, agent)
    program = assay_inline.folder / "built"
    program.write_text(
        """#!/bin/sh\nexec sed -u 's/.*"id": *"\\([^"]*\\)".*/{"id": "\\1", "output": "x"}/'\n"""
    )
    program.chmod(0o755)
    project.write(".gitignore", ".assay/\n__pycache__/\nbuilt\n")
    project.commit()
    assert project.assay.run_inline("suite.json").code in (0, 1)
    assert project.assay("baseline", "set", "main", "last").code == 0
    project.sleep(0.031)
    project.commit()
    assert project.assay.run_inline("suite.json").code in (0, 1)
    done = project.assay("gate", "--rerun-baseline")
    assert done.code == 2
    assert "built" in done.err


@pytest.fixture
def server() -> Iterator[str]:
    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps({"output": asked["input"]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_port}/ask"
    listening.shutdown()
    listening.server_close()


def test_an_agent_behind_http_is_asked_again_as_it_was_defined(
    assay_inline: AssayInline, server: str
) -> None:
    project = Project(assay_inline, {"name": "web", "type": "http", "url": server, "price": "free"})
    project.set_baseline()
    project.run()
    # Times of the same server differ by chance, more so on a busy machine; its answers do not.
    done = project.assay("gate", "--rerun-baseline", "--metric", "score", "--json")
    assert done.code == 0, done.err
    assert commits_of(done) == []


def test_slower_code_of_an_experiment_fails(project: Project) -> None:
    words = ("bench.py::waits", "--processes", "2", "--repetitions", "2", "--warmup", "0")
    commit = project.commit()
    project.assay("baseline", "set", "main", project.run(*words, isolation="process"))
    project.sleep(0.09)
    project.commit()
    project.run(*words, isolation="process")
    done = project.assay("gate", "--rerun-baseline", "--repetitions", "6", "--json")
    assert done.code == 1, done.err
    assert commits_of(done) == [commit]


def test_repetitions_can_be_raised_for_the_new_run(project: Project) -> None:
    project.commit()
    project.assay("baseline", "set", "main", project.run("suite.json", "--repetitions", "1"))
    project.run("suite.json", "--repetitions", "1")
    run = run_of(project.assay("gate", "--rerun-baseline", "--repetitions", "2", "--json"))
    shown = project.assay("show", run, "--json").json
    assert {trial["iterations"]["measured"] for trial in shown["trials"]} == {2}
    assert project.assay("gate", "--repetitions", "2").code == 2


def test_checkouts_that_a_killed_gate_left_are_removed_by_the_next(project: Project) -> None:
    project.commit()
    project.set_baseline()
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = Path(tempfile.gettempdir()) / f"assay-checkout-{ended.pid}-{os.getpid()}"
    project.git("worktree", "add", "--quiet", "--detach", str(left))
    project.sleep(0.031)
    project.commit()
    project.run()
    assert project.assay("gate", "--rerun-baseline").code in (0, 1)
    assert not left.exists()
    assert project.git("worktree", "list").count("\n") == 0


def test_the_new_run_is_not_the_last_one_and_cannot_be_resumed(project: Project) -> None:
    project.commit()
    project.set_baseline()
    after = project.run()
    run = run_of(project.assay("gate", "--rerun-baseline", "--json"))
    assert project.assay("show", "last", "--json").json["run_id"] == after
    assert project.assay("run", "--resume", run).code == 2
    assert project.assay("gate", run, "--rerun-baseline").code == 2
    assert project.assay("baseline", "set", "main", run).code == 2


def test_code_that_escapes_the_checkout_is_reported(project: Project) -> None:
    project.write("agents.py", f"import sys\nsys.path.insert(0, {str(project.folder)!r})\n{AGENT}")
    project.commit()
    project.set_baseline()
    project.sleep(0.031)
    project.commit()
    project.run()
    done = project.assay("gate", "--rerun-baseline", "--json")
    told = [one for one in json.loads(done.out)["warnings"] if one["code"] == "remark"]
    assert "pause.py" in told[0]["message"]
    assert told[0]["trial"] == BEFORE


def test_the_python_api_runs_the_baseline_again(project: Project) -> None:
    import assay

    commit = project.commit()
    project.set_baseline()
    project.sleep(0.09)
    project.commit()
    project.run()
    with contextlib.chdir(project.folder):
        found = assay.gate(rerun_baseline=True, metrics="seconds")
    assert not found.passed
    assert list(found.to_dict()["rerun"]["commits"].values()) == [commit]


def test_recorded_answers_are_not_run_again(assay_inline: AssayInline) -> None:
    """The file of today would be both sides, and a worse one would pass."""

    past_project = Project(assay_inline, {"name": "past", "type": "recorded", "answers": "answers.jsonl"})

    def record(output: str) -> None:
        lines = [{"id": f"q{n}", "output": output or f"q{n}", "seconds": 1.0} for n in range(10)]
        past_project.write("answers.jsonl", "\n".join(map(json.dumps, lines)))
        past_project.run("suite.json", "--repetitions", "1")

    record("")
    past_project.set_baseline()
    record("wrong")
    done = assay_inline("gate", "--rerun-baseline")
    assert done.code == 2
    assert "'past'" in done.err
    assert assay_inline("gate", "--max-lost", "0").code == 1


def test_cases_that_only_the_baseline_had_are_named(assay_inline: AssayInline) -> None:
    simulated = Project(assay_inline, {"name": "sim", "type": "simulated", "quality": 1, "seconds": 0.001})
    simulated.set_baseline()
    simulated.run("suite.json", "--repetitions", "1", "--limit", "3")
    done = assay_inline("gate", "--rerun-baseline", "--metric", "score", COLUMNS="300")
    assert done.code == 0
    assert re.search(r"\b7\b\D*\b10\b", done.out)
    assert "baseline set" not in done.err
