"""Nothing finished is lost, what has no point is not gone on with, and teardown always runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.execute.carrying import trial
from tests.execute.conftest import Carry
from tests.wording import Wording

from assay.execute import supervise
from assay.model import Isolation, Limits, Status


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("deed", ["os._exit", "segfault", "kill itself", "close all descriptors"])
def test_a_crash_costs_one_execution_and_the_rest_goes_on_in_a_new_process(carry: Carry, deed: str) -> None:
    carried = carry(trial(deed=deed, only=2, warmup=1, measured=6))

    assert carried.places == [(0, 0, "warmup", 0), *((0, 0, "measured", n) for n in range(6))]
    assert [s is Status.OK for s in carried.statuses] == [True, True, True, False, True, True, True]
    assert len({carried.executions[n].measurements["pid"] for n in (1, 4)}) == 2
    assert not carried.stopped


def test_a_crash_between_executions_is_recorded_once_and_nothing_is_repeated(carry: Carry) -> None:
    carried = carry(trial(deed="crash from a thread", only=0, measured=20_000))

    assert sorted(carried.places) == [(0, 0, "measured", n) for n in range(20_000)]
    assert carried.statuses.count(Status.CRASHED) == 1
    assert carried.statuses.count(Status.OK) == 19_999


@pytest.mark.parametrize(
    ("deed", "status"),
    [("raise", "failed"), ("os._exit", "crashed"), ("return nan", "invalid_output")],
)
def test_three_failures_in_a_row_end_the_trial(
    carry: Carry, deed: str, status: str, wording: Wording
) -> None:
    carried = carry(trial(deed=deed, measured=10))

    assert len(carried.executions) == 3
    assert list(carried.stopped) == [0]
    assert carried.stopped[0].startswith("3 ")
    assert carried.stopped[0].endswith(f" {status}")
    wording(carried.stopped[0])


def test_three_failures_in_a_row_end_the_trial_across_its_processes(carry: Carry) -> None:
    carried = carry(trial(deed="raise", measured=1, processes=5))

    assert carried.places == [(0, process, "measured", 0) for process in range(3)]
    assert carried.stopped[0].startswith("3 ")


def test_failures_that_are_not_in_a_row_do_not_end_the_trial(carry: Carry) -> None:
    carried = carry(trial(deed="raise", only=1, measured=5, processes=3))

    assert len(carried.executions) == 15
    assert not carried.stopped


def test_a_broken_limit_ends_its_trial_and_no_other(carry: Carry) -> None:
    hanging = trial(index=0, deed="hang", measured=2, processes=2, limits=Limits(seconds=0.3))
    working = trial(index=1, measured=2, processes=2)

    carried = carry(hanging, working)

    assert [place for place in carried.places if place[0] == 0] == [(0, 0, "measured", 0)]
    assert len([place for place in carried.places if place[0] == 1]) == 4
    assert list(carried.stopped) == [0]


@pytest.mark.parametrize(
    ("deed", "status", "text"),
    [
        ("raise", Status.FAILED, "setup failed: ValueError: boom"),
        ("sys.exit", Status.FAILED, "setup failed: SystemExit"),
        ("os._exit", Status.CRASHED, "exited with code 3, during setup"),
        ("hang", Status.TIMEOUT, "took longer than 3 s, during setup"),
    ],
)
def test_a_setup_that_fails_stands_for_the_first_execution(
    carry: Carry, monkeypatch: pytest.MonkeyPatch, deed: str, status: Status, text: str
) -> None:
    if deed == "hang":
        monkeypatch.setattr(supervise, "SETUP_SECONDS", 3.0)

    carried = carry(trial(setup=deed, measured=5, limits=Limits(seconds=0.1)))

    assert carried.places == [(0, 0, "measured", 0)]
    assert carried.statuses == [status]
    assert text in (carried.executions[0].error or "")


def test_setup_may_take_longer_than_the_limit_of_an_execution(carry: Carry) -> None:
    carried = carry(trial(setup="take 2.5 s", limits=Limits(seconds=2)))

    assert carried.statuses == [Status.OK] * 3


@pytest.mark.parametrize("params", [{}, {"deed": "raise"}, {"setup": "raise"}, {"deed": "sys.exit"}])
def test_teardown_runs_whatever_happened_before(carry: Carry, tmp_path: Path, params: dict[str, Any]) -> None:
    carry(trial(measured=2, folder=str(tmp_path), **params))

    assert lines(tmp_path / "teardown") == lines(tmp_path / "pid")


@pytest.mark.parametrize(
    ("deed", "text"),
    [
        ("raise", "ValueError: boom"),
        ("sys.exit", "sys.exit(4)"),
        ("os._exit", "exited with code 3"),
        ("segfault", "SIGSEGV"),
        ("hang", "3 s"),
    ],
)
def test_a_teardown_that_fails_leaves_results_intact_and_is_reported(
    carry: Carry, monkeypatch: pytest.MonkeyPatch, deed: str, text: str, wording: Wording
) -> None:
    if deed == "hang":
        monkeypatch.setattr(supervise, "SETUP_SECONDS", 3.0)

    carried = carry(trial(teardown=deed, measured=2, limits=Limits(seconds=0.1), processes=2))

    assert carried.statuses == [Status.OK] * 4
    assert not carried.stopped
    assert len(carried.remarks) == 2
    for process, remark in enumerate(sorted(carried.remarks)):
        assert f"teardown of process {process}" in remark
        assert text in remark
    wording(min(carried.remarks).splitlines()[0])


def test_inline_runs_in_the_runner_itself_and_teardown_too(carry: Carry, tmp_path: Path) -> None:
    carried = carry(trial(only=99, measured=3, isolation=Isolation.INLINE, folder=str(tmp_path)))

    assert set(carried.values("pid")) == {os.getpid()}
    assert lines(tmp_path / "teardown") == [str(os.getpid())]


def test_cold_gives_each_execution_a_process_and_its_imports_a_figure_of_their_own(carry: Carry) -> None:
    carried = carry(trial("observer", warmup=1, measured=3, isolation=Isolation.COLD))

    assert carried.places == [(0, 0, "warmup", 0), *((0, n, "measured", 0) for n in (1, 2, 3))]
    assert len(set(carried.values("pid"))) == 4
    assert all(value > 0 for value in carried.values("import_seconds"))
    assert min(carried.values("setup_seconds")) < min(carried.values("import_seconds"))
    assert [e.output["iteration_index"] for e in carried.executions] == ["None", "0", "1", "2"]  # type: ignore[index]


def test_a_cold_trial_that_keeps_failing_is_ended(carry: Carry) -> None:
    carried = carry(trial(deed="raise", measured=6, isolation=Isolation.COLD))

    assert len(carried.executions) == 3
    assert carried.stopped[0].startswith("3 ")
