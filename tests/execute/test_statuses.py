"""Every way in which an execution can end is recorded as what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.execute.carrying import SUBJECTS, Carried, trial
from tests.execute.conftest import Carry
from tests.wording import Wording

from assay.execute import supervise
from assay.model import Limits, Status

SHORT = Limits(seconds=0.4)


def only_status(carried: Carried) -> Status:
    (status,) = set(carried.statuses)
    return status


def test_an_experiment_that_does_its_work_is_ok(carry: Carry) -> None:
    carried = carry(trial(measured=3))

    assert carried.statuses == [Status.OK] * 3
    assert not carried.stopped


@pytest.mark.parametrize(
    ("deed", "status", "text"),
    [
        ("raise", Status.FAILED, "ValueError: boom"),
        ("raise a base exception", Status.FAILED, "CancelledError"),
        ("sys.exit", Status.FAILED, "sys.exit(4)"),
        ("os._exit", Status.CRASHED, "exited with code 3"),
        ("segfault", Status.CRASHED, "SIGSEGV"),
        ("real-time signal", Status.CRASHED, "signal 40"),
        ("kill itself", Status.CRASHED, "SIGKILL"),
        ("return nan", Status.INVALID_OUTPUT, "'x' is nan"),
        ("return inf", Status.INVALID_OUTPUT, "'x' is inf"),
        ("return a huge number", Status.INVALID_OUTPUT, "'x' is inf"),
        ("return text", Status.INVALID_OUTPUT, "returned 'hello'"),
        ("return a list", Status.INVALID_OUTPUT, "returned [1, 2]"),
        ("return something unreadable", Status.INVALID_OUTPUT, "no items today"),
        ("close all descriptors", Status.CRASHED, "closed the pipe for results"),
        ("close all descriptors and hang", Status.CRASHED, "closed the pipe for results"),
    ],
)
def test_a_bad_end_is_recorded_with_its_reason(carry: Carry, deed: str, status: Status, text: str) -> None:
    carried = carry(trial(deed=deed, measured=1))

    assert only_status(carried) is status
    assert text in (carried.executions[0].error or "")


@pytest.mark.parametrize("deed", ["hang", "hang in c", "ignore sigterm"])
def test_an_execution_beyond_its_time_is_killed_and_not_asked(
    carry: Carry, deed: str, wording: Wording
) -> None:
    carried = carry(trial(deed=deed, measured=5, limits=SHORT))

    assert carried.statuses == [Status.TIMEOUT]
    assert 0.4 <= carried.values("seconds")[0] < 60
    assert "0.4 s" in carried.stopped[0]
    wording(carried.stopped[0])


def test_an_execution_that_ends_too_late_is_a_timeout_even_if_nobody_looked(carry: Carry) -> None:
    carried = carry(trial("three_milliseconds", limits=Limits(seconds=0.002)))

    assert carried.statuses == [Status.TIMEOUT]


@pytest.mark.parametrize("deed", ["allocate", "allocate in a child"])
def test_memory_is_limited_for_the_whole_process_tree(carry: Carry, deed: str, wording: Wording) -> None:
    carried = carry(trial(deed=deed, measured=5, limits=Limits(seconds=120, memory_bytes=100 * 2**20)))

    assert carried.statuses == [Status.OVER_LIMIT]
    assert "100 MiB" in carried.stopped[0]
    wording(carried.stopped[0], numbers=False)


@pytest.mark.parametrize(
    ("deed", "limits", "text"),
    [
        ("use tokens", Limits(tokens=500), "used 900 tokens, more than the limit of 500"),
        ("use money", Limits(usd=0.2), "used 0.25 usd, more than the limit of 0.2"),
    ],
)
def test_what_an_experiment_says_to_have_used_is_held_against_the_limit(
    carry: Carry, deed: str, limits: Limits, text: str
) -> None:
    carried = carry(trial(deed=deed, measured=5, limits=limits))

    assert carried.statuses == [Status.OVER_LIMIT]
    assert carried.executions[0].error == text


def test_use_within_the_limits_is_ok(carry: Carry) -> None:
    assert carry(trial(deed="use tokens", limits=Limits(tokens=900))).statuses == [Status.OK] * 3


def test_a_segfault_leaves_the_python_stack_in_the_log(carry: Carry) -> None:
    carried = carry(trial(deed="segfault", measured=1))

    assert "Segmentation fault" in (carried.executions[0].log or "")
    assert "subjects.py" in (carried.executions[0].log or "")


@pytest.mark.parametrize("instrument", ["breaks_at_stop", "breaks_at_birth", "reads_nonsense"])
def test_an_instrument_that_breaks_is_the_fault_of_the_harness(carry: Carry, instrument: str) -> None:
    carried = carry(trial(instruments=("timing", instrument), folder="."))

    assert carried.statuses == [Status.HARNESS_ERROR]
    assert f"Instrument '{instrument}' failed" in (carried.executions[0].error or "")
    assert not carried.stopped


def test_an_experiment_whose_file_has_gone_is_the_fault_of_the_harness(carry: Carry, tmp_path: Path) -> None:
    file = tmp_path / "gone.py"
    file.write_text(SUBJECTS.read_text())
    carry(trial(measured=1), load=file)
    file.unlink()

    carried = carry(trial(measured=3), load=file)

    assert carried.statuses == [Status.HARNESS_ERROR]
    assert "gone.py" in (carried.executions[0].error or "")


def test_an_experiment_whose_file_raises_has_failed(carry: Carry, tmp_path: Path) -> None:
    file = tmp_path / "raising.py"
    file.write_text(SUBJECTS.read_text())
    carry(trial(measured=1), load=file)
    file.write_text("1 / 0")

    carried = carry(trial(measured=3), load=file)

    assert carried.statuses == [Status.FAILED]
    assert "ZeroDivisionError" in (carried.executions[0].error or "")


def test_a_worker_that_cannot_start_is_the_fault_of_the_harness(
    carry: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")

    carried = carry(trial(measured=3))

    assert carried.statuses == [Status.HARNESS_ERROR] * 3
    assert "while starting" in (carried.executions[0].error or "")


def test_an_interpreter_that_is_not_there_is_the_fault_of_the_harness(
    carry: Carry, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    carried = carry(trial(measured=3))

    assert carried.statuses == [Status.HARNESS_ERROR] * 3
    error = carried.executions[0].error or ""
    assert "/nowhere/python" in error
    wording(error.splitlines()[0])


def test_odd_values_are_kept_as_far_as_they_can_be_written(carry: Carry) -> None:
    carried = carry(trial(deed="return odd things", measured=1))

    (execution,) = carried.executions
    assert execution.status is Status.OK
    assert execution.measurements["n"] == 1
    assert execution.measurements["odd ?"] == 2
    assert isinstance(execution.output, dict)
    assert execution.output["text"] == "?"


def test_a_worker_that_never_gets_started_is_the_fault_of_the_harness(
    carry: Carry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\nif 'assay.execute.worker' in sys.orig_argv: time.sleep(600)"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(supervise, "START_SECONDS", 0.5)

    carried = carry(trial(measured=3))

    assert carried.statuses == [Status.HARNESS_ERROR] * 3
    error = carried.executions[0].error or ""
    assert "0.5 s" in error
    wording(error.splitlines()[0])
