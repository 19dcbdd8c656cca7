"""From a spec to the store: what the command writes about runs that do not go well."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.execute.running import Running

from assay.model import Status


@pytest.fixture
def running(tmp_path: Path, own_names: None) -> Running:
    return Running(tmp_path)


def test_every_status_is_stored(running: Running) -> None:
    deeds = {
        "ok": {"deed": "nothing"},
        "failed": {"deed": "raise"},
        "timeout": {"deed": "hang"},
        "over_limit": {"deed": "use tokens"},
        "crashed": {"deed": "segfault"},
        "invalid_output": {"deed": "return nan"},
    }
    experiments: list[dict[str, Any]] = [{"experiment": "deeds", "params": deed} for deed in deeds.values()]
    experiments.append({"experiment": "deeds", "instrumentation": ["timing", "breaks_at_stop"]})

    done = running.inline("run", running.spec(experiments=experiments, limits={"seconds": 3, "tokens": 500}))

    stored = {row[0]: row[4] for row in running.executions}
    assert done.code == 1, done.err
    assert list(stored.values()) == [*deeds, "harness_error"]
    assert {*stored.values(), "cancelled"} == set(Status)
    assert running.state == "failed"


def test_a_trial_that_broke_a_limit_stays_stopped_when_the_run_is_resumed(running: Running) -> None:
    spec = running.spec(
        experiment="deeds",
        sweep={"deed": ["hang", "nothing"]},
        iterations={"warmup": 1, "measured": 4},
        processes=2,
        limits={"seconds": 1},
    )
    assert running.inline("run", spec).code == 1
    before = running.executions

    running.inline("run", "--resume", "last")

    assert running.executions == before
    assert Counter(row[4] for row in before) == {"timeout": 1, "ok": 10}


def test_auto_that_is_resumed_stays_within_its_maximum(running: Running) -> None:
    spec = running.spec(
        experiment="wild",
        iterations={"measured": "auto", "until": {"interval": "2%", "max": 12}},
        processes=2,
    )
    assert running.inline("run", spec).code == 0

    assert running.inline("run", "--resume", "last").code == 0

    assert sorted(running.executions) == [(0, p, "measured", r, "ok") for p in range(2) for r in range(12)]


def test_auto_that_had_seen_enough_gets_no_more_when_resumed(running: Running) -> None:
    spec = running.spec(
        experiment="steady",
        iterations={"measured": "auto", "until": {"interval": "50%", "max": 40}},
        processes=2,
    )
    assert running.inline("run", spec).code == 0
    before = sorted(running.executions)

    assert running.inline("run", "--resume", "last").code == 0

    assert sorted(running.executions) == before
    assert len(before) < 80


def test_harness_errors_are_made_good_by_resuming(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "vanishing.py"
    code = (
        "import os, pathlib\n"
        "from assay import benchmark\n"
        "if os.environ.get('ASSAY_WORKER') and not pathlib.Path('here').exists():\n"
        "    os.unlink(__file__)\n"
        "@benchmark(iterations=3, warmup=0)\n"
        "def vanishing(): pass\n"
    )
    file.write_text(code)
    spec = running.spec(experiment="vanishing", load=[str(file)], processes=2)

    assert running.inline("run", spec).code in (0, 1)
    assert Counter(running.statuses) == {"ok": 3, "harness_error": 1}

    (tmp_path / "here").touch()
    file.write_text(code)
    assert running.inline("run", "--resume", "last").code == 0
    assert sorted(running.executions) == [(0, p, "measured", r, "ok") for p in range(2) for r in range(3)]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(place)]
    if subprocess.run(mounting, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_fills_up_ends_the_run_with_a_message_and_can_be_resumed(
    tiny_disk: Path, own_names: None
) -> None:
    running = Running(tiny_disk)

    full = running("run", "noop", "--repetitions", "30000")

    stored = len(running.executions)
    assert full.returncode == 2
    assert "--resume RUN" in full.stderr
    assert "Traceback" not in full.stderr
    assert 0 < stored < 30_000

    subprocess.run(["mount", "-o", "remount,size=64m", tiny_disk], check=True)
    resumed = running.inline("run", "--resume", "last")

    assert resumed.code == 0, resumed.err
    assert [row[3] for row in running.executions] == list(range(30_000))
