"""Instruments watch the executions of a suite as they watch those of an experiment."""

from __future__ import annotations

from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

from assay.model import Phase

AGENTS = """
def busy(text):
    held = [bytearray(1000) for _ in range(2000)]
    return text

async def waiting(text):
    return text
"""
LIGHT = {"user_seconds", "cpu_percent", "rss_max_bytes"}


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("agents.py", AGENTS)
    return assay_inline


def ran(assay: AssayInline, agent: str, **keys: Any) -> Stored:
    benchmark = {"iterations": {"warmup": 1, "measured": 2}, **keys.pop("benchmark", {})}
    assay.write("s.yaml", suite(numbers(3), [python_agent(agent)], benchmark=benchmark, **keys))
    assert assay("run", "s.yaml", "-q").code == 0
    return Stored(assay.folder)


@pytest.mark.parametrize("agent", ["busy", "waiting"])
def test_instruments_of_the_suite_watch_every_measured_execution(assay: AssayInline, agent: str) -> None:
    stored = ran(assay, agent, instrumentation=["rusage", "psutil"])
    assert len(stored.measured) == 6
    for execution in stored.measured:
        assert execution.measurements.keys() >= LIGHT
        assert "score" in execution.measurements
    warmups = [one for one in stored.all if one.phase is Phase.WARMUP]
    assert all("user_seconds" not in one.measurements for one in warmups)
    metrics = assay("show", "last", "--json").json["trials"][0]["metrics"]
    assert metrics.keys() >= LIGHT


def test_a_benchmark_has_instruments_of_its_own_instead(assay: AssayInline) -> None:
    stored = ran(assay, "busy", instrumentation=["psutil"], benchmark={"instrumentation": ["rusage"]})
    assert all("cpu_percent" not in one.measurements for one in stored.measured)
    assert all("user_seconds" in one.measurements for one in stored.measured)


def test_profilers_have_executions_of_their_own_of_the_first_case(assay: AssayInline) -> None:
    stored = ran(assay, "busy", instrumentation=["memory", "cprofile"])
    profiled = [one for one in stored.all if one.phase is Phase.PROFILED]
    assert [(one.case, one.repetition) for one in profiled] == [("c0", 0), ("c0", 1)]
    assert profiled[0].measurements["traced_peak_bytes"] > 2_000_000
    assert profiled[1].measurements["function_calls"] > 0
    assert all("traced_peak_bytes" not in one.measurements for one in stored.measured)
    assert len(stored.measured) == 6
    artifacts = {one["name"] for one in assay("show", "last", "--json").json["trials"][0]["artifacts"]}
    assert {"cprofile.prof", "cprofile_summary.json", "memory.json"} <= artifacts


def test_instruments_cannot_watch_several_executions_at_a_time(assay: AssayInline, wording: Wording) -> None:
    assay.write("s.yaml", suite(numbers(3), [python_agent("waiting")], instrumentation=["psutil"]))
    refusal = assay("run", "s.yaml", "--concurrency", "4").refusal
    assert "concurrency" in refusal
    wording(refusal)
