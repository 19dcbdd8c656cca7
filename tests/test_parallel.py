"""The test processes themselves: nothing that a test does to its process may hide a failure or lose a test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFTEST = """
import pytest
from tests.costs import FAST
from tests.parallel import ParallelLoop


def pytest_addoption(parser):
    parser.addoption(FAST, action="store_true")


def pytest_configure(config):
    config.pluginmanager.register(ParallelLoop(2))


@pytest.fixture(scope="session")
def server():
    yield
    with open("stopped", "a") as file:
        file.write("1")
"""
TESTS = """
import os, signal


def test_passes(server, tmp_path, capfd):
    os.write(1, b"out")
    assert capfd.readouterr().out == "out"


def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def test_comes_after_it():
    pass


def test_fails(server):
    assert False, "with its reason"
"""


def run_tests(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    for name in ("test_first.py", "test_second.py", "test_third.py"):
        (folder / name).write_text(TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_a_process_that_dies_fails_one_test_and_loses_none(tmp_path: Path) -> None:
    done = run_tests(tmp_path, "--fast")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "6 failed, 6 passed" in done.stdout
    assert sorted(re.findall(r"FAILED (\S+)", done.stdout)) == sorted(
        f"test_{file}.py::test_{test}"
        for file in ("first", "second", "third")
        for test in ("fails", "is_killed")
    )
    assert "the test process ended with -9" in done.stdout
    assert "with its reason" in done.stdout
    assert set((tmp_path / "stopped").read_text()) == {"1"}


def test_it_stops_after_the_first_failure_if_asked(tmp_path: Path) -> None:
    done = run_tests(tmp_path, "--fast", "-x")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "stopping after 1 failures" in done.stdout
