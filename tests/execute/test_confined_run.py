"""A program in a sandbox is watched and ended, and the process that ran it keeps no child of it."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from assay.execute import confined_run, process_tree
from assay.execute.confined_run import ConfinedRun, run_confined
from assay.execute.process_tree import find_children
from assay.plugin import lookup
from assay.plugin.sandbox import Ceilings, Program

pytestmark = pytest.mark.usefixtures("bubblewrap")
SANDBOXES = ("bubblewrap", "none")
LEAVING = {
    "ends at once": "true",
    "leaves a child that ends": "sleep 0.05 & true",
    "leaves a child that runs": "sleep 60 & true",
    "detaches a child": "setsid sleep 60 & sleep 0.05",
    "detaches a child that has children": "setsid sh -c 'sleep 60 & setsid sleep 60; true' & sleep 0.05",
    "leaves a child without an environment": "env -i sleep 60 & sleep 0.05",
    "kills itself": "kill -9 $$",
    "runs too long": "sleep 60 | sleep 60",
}


def kill_and_linger(pid: int, signum: int = signal.SIGKILL) -> None:
    os.kill(pid, signum)
    sleep(0.2)


def run(name: str, command: str, seconds: float = 0.3) -> ConfinedRun:
    program = Program(["/bin/sh", "-c", command], may_start_processes=True, ceilings=Ceilings(processes=50))
    return run_confined(lookup.find("sandboxes", name)(), program, seconds)


@pytest.mark.parametrize("name", SANDBOXES)
@pytest.mark.parametrize("command", LEAVING.values(), ids=LEAVING.keys())
def test_no_child_is_left_to_the_process_that_ran_it(name: str, command: str) -> None:
    before = set(find_children(os.getpid()))
    for _ in range(3):
        run(name, command)

    assert set(find_children(os.getpid())) == before


@pytest.mark.parametrize("name", SANDBOXES)
def test_threads_may_run_programs_side_by_side(name: str) -> None:
    before = set(find_children(os.getpid()))
    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(lambda number: run(name, f"exit {number}", 30.0).code, range(64)))

    assert codes == list(range(64))
    assert set(find_children(os.getpid())) == before


@pytest.mark.parametrize("name", SANDBOXES)
def test_the_time_of_children_is_accounted_for(name: str) -> None:
    spin = "python3 -c 'import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass'"
    ended = run(name, f"({spin}) & ({spin}) & wait", 30.0)

    assert ended.is_ok
    assert ended.cpu_seconds >= 0.6


def test_a_program_that_ends_while_it_is_killed_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process of the namespace dies before the one that started it gets its signal."""
    monkeypatch.setattr(confined_run, "kill", kill_and_linger)
    assert run("bubblewrap", "sleep 60", 0.2).ended_for == "seconds"


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_shell_that_is_ended_does_not_go_on_with_its_next_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine so busy that each process that is killed has ended before the next one gets its signal."""
    for module in (confined_run, process_tree):
        monkeypatch.setattr(module, "kill", kill_and_linger)

    program = Program(
        ["/bin/sh", "-c", "setsid sh -c 'sleep 60; echo no > late' & sleep 60; echo no > late"],
        folder=str(tmp_path),
        is_writable=True,
        may_start_processes=True,
    )
    assert run_confined(lookup.find("sandboxes", name)(), program, 0.3).ended_for == "seconds"
    sleep(0.1)
    assert not (tmp_path / "late").exists()
