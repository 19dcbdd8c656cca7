"""What an experiment does to processes, descriptors and streams stays its own trouble."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest
from tests.execute.carrying import trial
from tests.execute.conftest import Carry
from tests.wording import Wording

from assay.execute.worker_log import FLOOD_BYTES, KEPT_BYTES, Log, log_file
from assay.model import Isolation, Limits, Status


@pytest.mark.parametrize(
    "deed",
    ["leave a child", "leave a detached child", "leave a daemon", "leave a daemon by a library"],
)
def test_a_child_that_outlives_its_experiment_is_ended_with_a_remark(
    carry: Carry, deed: str, wording: Wording
) -> None:
    carried = carry(trial(deed=deed, measured=2))

    assert carried.statuses == [Status.OK] * 2
    (remark,) = carried.remarks
    assert "2 processes " in remark
    wording(remark)


def test_children_are_ended_with_a_worker_that_is_killed(carry: Carry) -> None:
    carried = carry(trial(setup="leave a daemon", deed="hang", measured=1, limits=Limits(seconds=0.3)))

    assert carried.statuses == [Status.TIMEOUT]


def test_a_fork_that_comes_back_from_the_experiment_reports_nothing(carry: Carry) -> None:
    carried = carry(trial(deed="fork and come back twice", measured=5))

    assert carried.places == [(0, 0, "measured", n) for n in range(5)]
    assert carried.values("is_child") == [0.0] * 5


def test_a_child_of_the_experiment_dies_of_a_signal_like_any_other(carry: Carry) -> None:
    carried = carry(trial(deed="end a child", measured=2))

    assert carried.values("exitcode") == [-15.0] * 2
    assert [execution.log for execution in carried.executions] == [None] * 2


@pytest.mark.parametrize("deed", ["close 1 and 2", "close many descriptors", "take away standard output"])
def test_an_experiment_may_close_what_is_its_own(carry: Carry, deed: str) -> None:
    assert carry(trial(deed=deed, measured=3)).statuses == [Status.OK] * 3


def test_garbage_in_the_pipe_for_results_costs_the_execution_that_wrote_it(carry: Carry) -> None:
    carried = carry(trial(deed="write into every descriptor", only=1, measured=3))

    assert carried.places == [(0, 0, "measured", n) for n in range(3)]
    assert carried.statuses == [Status.OK, Status.CRASHED, Status.OK]


def test_an_experiment_that_replaces_os_write_does_not_keep_its_results_from_us(carry: Carry) -> None:
    assert carry(trial(deed="replace os.write", measured=3)).statuses == [Status.OK] * 3


def test_standard_input_is_at_its_end(carry: Carry) -> None:
    assert carry(trial(deed="read standard input")).values("read") == [0.0] * 3


def test_a_flood_of_output_is_cut_short_and_costs_the_runner_no_memory(carry: Carry) -> None:
    carry(trial(measured=1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    carried = carry(trial(deed="flood", measured=1, limits=Limits(seconds=300)))

    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert carried.statuses == [Status.OK]
    log = carried.executions[0].log or ""
    left_out = re.search(r"\[at least ([\d,]+) bytes left out\]", log)
    assert left_out
    assert int(left_out[1].replace(",", "")) < 150_000_000
    assert len(log) < 2 * KEPT_BYTES
    assert grown_kb < 20_000


def test_a_flood_that_is_cut_back_after_its_end_does_not_look_like_all_there_was() -> None:
    fd = log_file()
    log = Log(fd)
    os.write(fd, b"x" * (FLOOD_BYTES + 1))
    log.drain_flood()
    text = log.take() or ""
    os.close(fd)

    assert text.startswith("xxx")
    assert text.endswith(f"[at least {FLOOD_BYTES + 1 - KEPT_BYTES // 2:,} bytes left out]\n")


def test_what_an_execution_prints_is_kept_with_it(carry: Carry) -> None:
    carried = carry(trial(deed="print", measured=3))

    assert [execution.log for execution in carried.executions] == [f"execution {n}\n" for n in range(3)]


def test_what_an_execution_prints_is_kept_with_it_even_if_it_is_not_text(carry: Carry) -> None:
    carried = carry(trial(deed="print garbage", only=1, measured=3))

    logs = [execution.log for execution in carried.executions]
    assert logs[0] is None
    assert logs[1] is not None
    assert "and text" in logs[1]
    assert logs[2] is None


def test_inline_output_goes_to_standard_error(carry: Carry, capfd: pytest.CaptureFixture[str]) -> None:
    carry(trial(deed="print garbage", measured=1, isolation=Isolation.INLINE))

    printed = capfd.readouterr()
    assert printed.out == ""
    assert "and text" in printed.err


def test_nothing_is_left_in_the_temporary_folder(
    carry: Carry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)

    carry(trial(deed="os._exit", only=1, measured=3))

    assert os.listdir(temporary) == []


def test_no_descriptor_is_left_open(carry: Carry) -> None:
    carry(trial(measured=1))
    before = set(os.listdir("/proc/self/fd"))

    carry(trial(deed="os._exit", only=1, measured=3), trial(index=1, measured=1, processes=2))

    assert set(os.listdir("/proc/self/fd")) <= before
