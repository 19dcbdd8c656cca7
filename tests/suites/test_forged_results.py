"""Accidents and lies of a Python agent do not become figures."""

from __future__ import annotations

import time

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite

FORGER = """
import json, os

def pipes():
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:") and int(fd) > 2:
                yield int(fd)
        except OSError:
            pass

def forger(text):
    if text == "2":
        row = [0, 0, "measured", 0, "ok", 1.0, {"seconds": -2129.0, "score": 1.0}, 1, "c3", "3", None, None, None, None]
        for fd in pipes():
            try:
                os.write(fd, (json.dumps(row) + "\\n").encode())
            except OSError:
                pass
    return text

def forker(text):
    if os.fork() == 0:
        return "child"
    return text
"""
CLOCKS = """
import time
time.perf_counter = time.time = time.process_time = time.thread_time = lambda: -2129.0
time.perf_counter_ns = time.monotonic_ns = lambda: -1

def mocking(text):
    time.sleep(0.001)
    return text
"""


def test_rows_that_an_agent_writes_into_the_pipe_are_refused_and_the_rest_goes_on(
    assay_inline: AssayInline,
) -> None:
    assay_inline.write("agents.py", FORGER)
    assay_inline.write("s.yaml", suite(numbers(5), [python_agent("forger")]))
    assay_inline("run", "s.yaml", "-q")
    stored = Stored(assay_inline.folder)
    assert stored.status() == {"c0": "ok", "c1": "ok", "c2": "crashed", "c3": "ok", "c4": "ok"}
    assert all(value >= 0 for one in stored.measured for value in one.measurements.values())


def test_a_fork_of_an_agent_reports_nothing(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", FORGER)
    assay_inline.write("s.yaml", suite(numbers(3), [python_agent("forker")]))
    assert assay_inline("run", "s.yaml", "-q").code == 0
    assert Stored(assay_inline.folder).metric("score") == {"c0": 1.0, "c1": 1.0, "c2": 1.0}


def test_an_agent_that_replaces_the_clock_is_timed_by_the_real_one(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Planning imports the agent into this process too; what it replaces is put back after the test.
    for name in ("perf_counter", "time", "process_time", "thread_time", "perf_counter_ns", "monotonic_ns"):
        monkeypatch.setattr(time, name, getattr(time, name))
    assay_inline.write("agents.py", CLOCKS)
    assay_inline.write("s.yaml", suite(numbers(3), [python_agent("mocking")]))
    assert assay_inline("run", "s.yaml", "-q").code == 0
    for one in Stored(assay_inline.folder).measured:
        assert 0.0005 < one.measurements["seconds"] < 10
        assert one.started > 1e9


MALFORMED = """
import math
from assay.model import Answer, Span, ToolCall, Usage

class Silent:
    def __repr__(self): raise KeyboardInterrupt
    __str__ = __repr__

ANSWERS = [
    dict(spans=(1,)), dict(spans=(Span("s", "llm", math.nan, 1.0),)), dict(spans=(Span("s", "llm", 0.0, -1.0),)),
    dict(tool_calls=("search",)), dict(tool_calls=(ToolCall("t", [1]),)), dict(model=Silent()), dict(log=5),
    dict(usd=math.nan), dict(usd=-1.0), dict(usage=Usage(math.nan, 1)), dict(usage=Usage(-1, 1)),
    dict(first_token_seconds=-4.0),
]

def malformed(text):
    return Answer(text, **ANSWERS[int(text) // 2]) if int(text) % 2 else text
"""


def test_an_answer_with_parts_that_cannot_be_is_the_agents_mistake(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", MALFORMED)
    assay_inline.write("s.yaml", suite(numbers(24), [python_agent("malformed")]))
    assert assay_inline("run", "s.yaml", "-q", "--isolation", "inline").code == 0
    found = Stored(assay_inline.folder).status()
    assert {name: found[name] for name in found if int(name[1:]) % 2} == {
        f"c{number}": "invalid_output" for number in range(1, 24, 2)
    }
