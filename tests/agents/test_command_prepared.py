"""A program gets its processes before a load, started and waiting."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from assay.builtin.agents.command import Command
from assay.model import Request

SLOW_TO_START = """import json, sys, time
begin = time.process_time()
while time.process_time() - begin < 0.3:
    pass
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "output": "ok"}), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a process is at rest")
def test_as_many_processes_as_places_have_started_when_it_is_prepared(tmp_path: Path):
    (tmp_path / "slow.py").write_text(SLOW_TO_START)
    agent = Command([sys.executable, "-S", "-E", "slow.py"], folder=str(tmp_path))
    agent.open()
    try:
        agent.prepare(3)
        started = [one for one in psutil.Process().children() if "slow.py" in one.cmdline()]
        assert len(started) == 3
        # Each has computed what it computes before it reads its first request.
        assert all(sum(one.cpu_times()[:2]) >= 0.29 for one in started)
        assert agent.answer(Request("1", "x")).output == "ok"  # type: ignore[union-attr]
    finally:
        agent.close()


def test_a_process_a_case_has_nothing_to_prepare(tmp_path: Path):
    agent = Command([sys.executable, "-c", "pass"], mode="once", folder=str(tmp_path))
    agent.open()
    agent.prepare(3)
    assert not [one for one in psutil.Process().children() if one.cmdline()[-1:] == ["pass"]]
    agent.close()
