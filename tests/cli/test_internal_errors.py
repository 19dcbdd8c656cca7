"""A crash never reads as a result: exit code 3, the traceback, what to report, and no secret in it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from shlex import quote
from typing import Any

import pytest
from tests.command import COMMAND, Assay, AssayInline, environment
from tests.wording import Wording

from assay.units import count


def break_gate(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def crash(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("assay.pipeline.requirements.gate_with_requirements", crash)


@pytest.mark.parametrize("options", [[], ["--json"], ["--quiet"]])
def test_a_crash_of_the_gate_does_not_read_as_a_regression(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    break_gate(monkeypatch, ZeroDivisionError("no rounds"))

    command = "assay gate last --baseline main"
    done = assay_inline(*command.split()[1:], *options)

    assert done.code == 3
    assert done.out == ""
    assert "Traceback" in done.err
    assert "ZeroDivisionError: no rounds" in done.err
    assert "version: assay " in done.err
    assert f"command: {command}" in done.err
    assert "where:   assay/cli/gate.py:" in done.err


def test_a_report_of_a_crash_has_no_secrets(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_gate(monkeypatch, RuntimeError("server said Bearer sk-planted-4711-secret \x1b]0;title\x07"))

    url = "http://me:hunter2hunter2@127.0.0.1/none"
    done = assay_inline("gate", "last", "--baseline", url, OPENAI_API_KEY="sk-planted-4711-secret")

    assert done.code == 3
    assert "sk-planted" not in done.err
    assert "hunter2" not in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), SystemExit(1), BaseException("odd")])
def test_whatever_ends_a_command_it_is_never_exit_code_1(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    break_gate(monkeypatch, error)

    assert assay_inline("gate", "last", "--baseline", "main").code == (
        2 if isinstance(error, SystemExit) else 3
    )


@pytest.mark.parametrize(("work", "code"), [(count, 3), (int, 0)], ids=["ours", "of others"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_crash_in_a_thread_of_ours_is_an_internal_error(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, work: Callable[[Any], Any], code: int
) -> None:
    def start_thread(*_: object, **__: object) -> list[Any]:
        thread = threading.Thread(target=work, args=["no number"])
        thread.start()
        thread.join()
        return []

    monkeypatch.setattr("assay.report.documents.answers.plugins_document", start_thread)

    assert assay_inline("list", "agents").code == code


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"])
def test_closed_streams_change_neither_result_nor_database(assay_inline: AssayInline, closed: str) -> None:
    """Otherwise the database would be opened as file 1 or 2, and what a program prints be written into it."""
    command = quote(str(COMMAND))
    assay_inline.write("agent.sh", """echo noise >&2; read line; echo '{"id": "1", "output": "4"}'""")
    assay_inline.write(
        "suite.yaml",
        "suite: sums\nagents: [{name: it, type: command, command: [sh, agent.sh], mode: once}]\nbenchmarks:\n"
        "  - {id: add, scorer: exact, cases: [{input: 2+2, expected: '4'}]}\n",
    )
    done = subprocess.run(
        ["bash", "-c", f"{command} run suite.yaml --quiet {closed}"],
        cwd=assay_inline.folder, env=environment({}), capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert assay_inline("show", "last", "--json").json["status"] == "completed"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_is_not_utf_8_gets_what_it_can_show(assay: Assay, encoding: str) -> None:
    assay.write("agents.yaml", "agents: [{name: 'size-日本', type: stub, answer: '4'}]\n")

    run = ["run", "noop", "--isolation", "inline"]
    for command in (["agent", "add", "agents.yaml"], ["agent", "list"], run, ["show", "last"]):
        done = subprocess.run(
            [COMMAND, *command], cwd=assay.folder, env=environment({"PYTHONIOENCODING": encoding}),
            capture_output=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_a_folder_that_was_deleted_is_one_message(assay: Assay, wording: Wording) -> None:
    done = subprocess.run(
        ["bash", "-c", f"mkdir gone; cd gone; rmdir ../gone; {quote(str(COMMAND))} list runs"],
        cwd=assay.folder, env=environment({}), capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    # In an environment whose path has a space, pip starts the command through a shell, which complains on its own.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("sh: ")]
    assert done.returncode == 2
    assert len(lines) == 1
    wording(lines[0])
    assert "Traceback" not in done.stderr


def test_a_command_without_a_home_works(assay: Assay) -> None:
    done = subprocess.run(
        [COMMAND, "run", "noop", "--quiet"], cwd=assay.folder, env={"PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
