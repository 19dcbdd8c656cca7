"""CPU time and peak memory of agents that compute here, as the efficiency rating sees them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, python_agent, suite

AGENTS = """
import time

def busy(text):
    until = time.process_time() + 0.02
    while time.process_time() < until: pass
    return text

async def busy_async(text):
    return busy(text)

def greedy(text):
    held = bytearray(int(text) * 1_000_000) if text.isdigit() else b""
    return len(held)
"""
GREEDY = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    size = len(bytearray(int(asked["input"]) * 1_000_000))
    print(json.dumps({"id": asked["id"], "output": size}), flush=True)
"""
SIZES = ("1", "60", "1")
REFERENCE = {"reference": {"memory_mb": 100, "cpu_seconds": 0.02}}
linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="other kernels tell no peak between two moments"
)


def ran(assay: AssayInline, agent: dict[str, Any], *options: str, **benchmark: Any) -> Stored:
    cases = [{"id": f"c{number}", "input": size} for number, size in enumerate(SIZES)]
    assay.write("agents.py", AGENTS)
    assay.write("s.yaml", suite(cases, [agent], benchmark=benchmark))
    assert assay.run_inline("s.yaml", "-q", *options).code == 0
    return Stored(assay.folder)


def command(mode: str) -> dict[str, Any]:
    program = (
        GREEDY if mode == "lines" else GREEDY.replace("for line in sys.stdin:", "for line in [input()]:")
    )
    return {"name": "greedy", "type": "command", "command": [sys.executable, "-c", program], "mode": mode}


@linux_only
@pytest.mark.parametrize("agent", [python_agent("greedy"), command("lines")], ids=["python", "command"])
def test_peak_memory_is_that_of_each_execution(assay_inline: AssayInline, agent: dict[str, Any]) -> None:
    peak = ran(assay_inline, agent, rubric=REFERENCE).metric("rss_max_bytes")
    assert peak["c0"] is not None
    assert peak["c1"] is not None
    assert peak["c2"] is not None
    assert 50e6 < peak["c1"] - peak["c0"] < 75e6
    assert peak["c2"] < peak["c1"] - 50e6
    rating = assay_inline("show", "--json").json["trials"][0]["ratings"]["efficiency"]
    assert rating["basis"] == "cpu_seconds × memory_mb"


def test_memory_is_looked_at_only_where_there_is_something_to_hold_it_against(
    assay_inline: AssayInline,
) -> None:
    stored = ran(assay_inline, python_agent("greedy"))
    assert set(stored.metric("rss_max_bytes").values()) == {None}


def test_a_process_that_has_ended_has_no_memory_to_look_at(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, command("once"), rubric=REFERENCE)
    assert set(stored.metric("rss_max_bytes").values()) == {None}
    assert all(seconds and seconds > 0.001 for seconds in stored.metric("cpu_seconds").values())


@pytest.mark.parametrize("agent", ["busy", "busy_async"])
def test_cpu_time_is_that_of_the_agent(assay_inline: AssayInline, agent: str) -> None:
    found = ran(assay_inline, python_agent(agent), rubric=REFERENCE).metric("cpu_seconds")
    assert all(seconds is not None and 0.02 <= seconds < 0.2 for seconds in found.values())


def test_what_several_executions_share_is_not_measured(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, python_agent("busy_async"), "--concurrency", "3", rubric=REFERENCE)
    assert set(stored.metric("cpu_seconds").values()) == {None}
    assert set(stored.metric("rss_max_bytes").values()) == {None}
