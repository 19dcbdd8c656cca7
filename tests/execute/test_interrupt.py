"""Whoever ends a run keeps what is finished, and can go on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.command import heeding_signals
from tests.execute.carrying import eventually, is_running
from tests.execute.running import COMMAND, LONG, PATIENT, Running

from assay.execute.signals import Interrupt, interruptible


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path)


def until_it_waits(
    running: Running, experiment: str = "waiter", command: Sequence[str] = PATIENT
) -> subprocess.Popen[str]:
    """A run whose third execution waits; two are finished by then."""
    path = running.spec(
        experiment=experiment, params={"folder": str(running.folder)}, iterations={"measured": 4}
    )
    process = running.start("run", path, command=command)
    assert eventually(lambda: (running.folder / "pids").exists() or process.poll() is not None, LONG)
    assert process.poll() is None, process.communicate(timeout=LONG)
    return process


def nothing_runs(running: Running) -> bool:
    """Whether all that the experiment had started has ended; a process that was killed may take a moment to go."""
    pids = [int(word) for word in (running.folder / "pids").read_text().split()]
    return eventually(lambda: not any(map(is_running, pids)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_keeps_what_is_finished_and_can_be_resumed(
    running: Running, own_names: None, number: signal.Signals
) -> None:
    process = until_it_waits(running)
    process.send_signal(number)
    _, err = process.communicate(timeout=LONG)

    assert process.returncode == 128 + number
    assert running.state == "interrupted"
    assert running.statuses == ["ok", "ok", "cancelled"]
    assert (running.folder / "teardown").exists()
    assert nothing_runs(running)
    assert "Traceback" not in err

    (running.folder / "go").touch()
    resumed = running.inline("run", "--resume", "last")

    assert resumed.code == 0, resumed.err
    assert running.state == "completed"
    assert running.executions == [(0, 0, "measured", n, "ok") for n in range(4)]


def take_terminal() -> None:
    heeding_signals()
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_run_whose_terminal_is_closed_keeps_what_is_finished(running: Running) -> None:
    path = running.spec(
        experiment="waiter", params={"folder": str(running.folder)}, iterations={"measured": 4}
    )
    terminal, its_end = os.openpty()
    process = subprocess.Popen(
        [*PATIENT, "run", path, "--db", f"sqlite:///{running.database}"],
        cwd=running.folder,
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        preexec_fn=take_terminal,
    )
    os.close(its_end)
    os.set_blocking(terminal, False)

    def is_waiting() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 65536)
        return (running.folder / "pids").exists()

    assert eventually(is_waiting, LONG)
    os.close(terminal)

    assert process.wait(LONG) == 128 + signal.SIGHUP
    assert running.state == "interrupted"
    assert running.statuses == ["ok", "ok", "cancelled"]
    assert (running.folder / "teardown").exists()


def test_a_second_interrupt_is_not_waited_for(running: Running) -> None:
    process = until_it_waits(running, "stubborn")
    process.send_signal(signal.SIGINT)
    assert eventually((running.folder / "asked").exists, LONG)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LONG)

    assert process.returncode == 130
    assert running.state == "interrupted"
    assert nothing_runs(running)
    assert running.statuses == ["ok", "ok", "cancelled"]


def test_an_experiment_that_does_not_listen_is_killed_after_a_while(running: Running) -> None:
    process = until_it_waits(running, "stubborn", COMMAND)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LONG)

    assert process.returncode == 130
    assert running.statuses == ["ok", "ok", "cancelled"]


def test_workers_and_their_children_die_with_a_runner_that_is_killed(running: Running) -> None:
    process = until_it_waits(running)
    process.kill()
    process.communicate(timeout=LONG)

    assert nothing_runs(running)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_in_the_temporary_folder_however_a_run_ends(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = until_it_waits(running)
    assert [folder.name[:6] for folder in temporary.iterdir()] == ["assay-"]
    process.send_signal(number)
    process.communicate(timeout=LONG)

    assert eventually(lambda: list(temporary.iterdir()) == [])


def test_an_inline_run_prints_its_result_and_nothing_else(running: Running) -> None:
    path = running.spec(experiment="deeds", params={"deed": "print garbage"}, isolation="inline")

    done = running("run", path)

    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "completed"
    assert "and text" in done.stderr


@pytest.mark.parametrize(("meanwhile", "is_stored"), [(1, True), (2, False)])
def test_what_is_being_stored_is_waited_for_but_only_once(meanwhile: int, is_stored: bool) -> None:
    kept: list[str] = []

    def store(interrupt: Interrupt) -> None:
        with interrupt.storing():
            for _ in range(meanwhile):
                signal.raise_signal(signal.SIGINT)
            kept.append("whole")

    with interruptible() as interrupt:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            store(interrupt)
    assert kept == ["whole"] * is_stored
