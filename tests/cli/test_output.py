"""Standard output is for results: one document with --json, no colours for files, no complaint when nobody reads on."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from shlex import quote

import pytest
from tests.command import COMMAND, Assay, environment


def test_with_json_there_is_one_document_and_nothing_else(assay: Assay) -> None:
    done = assay("run", "noop", "--repetitions", "20", "--processes", "2", "--report", "csv", "--json")

    assert done.code == 0
    assert json.loads(done.out)["status"] == "completed"
    assert done.out.count("\n") == 1
    assert done.out.endswith("\n")


def test_quiet_leaves_nothing_on_standard_error(assay: Assay) -> None:
    assert assay("run", "noop", "--json", "--quiet").err == ""


def test_what_people_read_goes_to_standard_output_and_hints_to_standard_error(assay: Assay) -> None:
    done = assay("run", "noop")

    assert done.code == 0
    assert "noop" in done.out
    assert "Next: assay show " in done.err
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    "command", ["assay list", "assay schema result", "assay schema spec", "assay --help", "assay run noop"]
)
def test_a_reader_that_goes_away_is_no_error(assay: Assay, command: str) -> None:
    script = f"{command.replace('assay', quote(str(COMMAND)), 1)} | head -c 1; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=assay.folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout.splitlines()[-1][-1] == "0"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_reader_that_goes_away_does_not_change_the_exit_code(assay: Assay) -> None:
    load = f"{quote(str(COMMAND))} load http://127.0.0.1:9/v1 --requests 5"

    for options in ("", "--json", "--quiet"):
        done = subprocess.run(
            ["bash", "-c", f"{load} {options} | true; echo ${{PIPESTATUS[0]}}"],
            cwd=assay.folder,
            env=environment({}),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout.splitlines()[-1] == "1"
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written_is_no_traceback(assay: Assay, redirection: str) -> None:
    script = f"{quote(str(COMMAND))} list --quiet {redirection}"

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=assay.folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == (2 if "full" in redirection else 0)


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """What a command writes where standard output and error are a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, *arguments], cwd=folder, env=environment({"TERM": "xterm-256color", **variables}),
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        written = b""
        while piece := _read(ours):
            written += piece
        process.wait(60)
    os.close(ours)
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize("arguments", [["list"], ["show", "nope"], ["doctor"], ["init", "here"]])
def test_a_terminal_gets_colours_unless_they_are_not_wanted(tmp_path: Path, arguments: list[str]) -> None:
    assert "\x1b[" in on_a_terminal(tmp_path, *arguments)

    assert "\x1b[" not in on_a_terminal(
        tmp_path, *arguments, *(["--force"] if "init" in arguments else []), NO_COLOR="1"
    )


def test_a_terminal_gets_a_document_that_people_can_read(tmp_path: Path) -> None:
    written = on_a_terminal(tmp_path, "list", "experiments", "--json", "--quiet")

    assert written.count("\n") > 5
    assert json.loads(written)


def test_a_terminal_shows_how_far_a_run_has_come_and_what_stopped(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "import time\nfrom assay import benchmark\n\n@benchmark(iterations=40, warmup=0, loops=1)\n"
        "def work(mode='[/]'):\n    time.sleep(0.02)\n    assert mode != 'fail[/]', 'see [/nowhere]'\n"
    )

    written = on_a_terminal(tmp_path, "run", "bench.py", "--sweep", "mode='[/]','fail[/]'")

    assert "work[mode=[/]]" in written
    assert "/80" in written
    assert "work[mode=fail[/]] stopped: " in written
