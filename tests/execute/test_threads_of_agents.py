"""Sync Python functions are asked many things at a time, each in a thread."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.command import Assay

from assay.execute.threads import describe_contention

AGENTS = """
import threading
import time

busy = threading.Lock()

def sleeps(text):
    time.sleep(0.1)
    return text

def alone(text):
    if not busy.acquire(blocking=False):
        raise RuntimeError("called from two threads at a time")
    time.sleep(0.01)
    busy.release()
    return text

def talks(text):
    for part in range(3):
        print(text, "says", part)
        time.sleep(0.02)
    if text.endswith("3"):
        raise ValueError(f"{text} is wrong")
    return text

def hangs(text):
    time.sleep(60 if text.endswith("03") else 0.05)
    return text

def streams(text):
    yield text[:1]
    time.sleep(0.1)
    yield text[1:]

def computes(text):
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    return text
"""


@pytest.fixture
def desk(assay_inline: Assay) -> Assay:
    assay_inline.write("agents.py", AGENTS)
    return assay_inline


def write_suite(desk: Assay, agent: str, cases: int, more: str = "", limits: str = "") -> None:
    ids = [f"c{number:02}" for number in range(cases)]
    listed = "\n".join(f"      - {{id: {name}, input: q{name[1:]}, expected: q{name[1:]}}}" for name in ids)
    desk.write(
        "suite.yaml",
        f"""
suite: desk
benchmarks:
  - id: b
    scorer: exact
    iterations: {{warmup: 0, measured: 1}}
{limits}
    cases:
{listed}
agents: [{{name: {agent}, type: python, target: "agents.py:{agent}"{more}}}]
""",
    )


def executions(desk: Assay, *options: str) -> list[dict[str, Any]]:
    done = desk("run", "suite.yaml", *options, "--json")
    assert done.code in (0, 1), done.err
    shown = desk("show", "last", "--executions", "--json").json
    found = [one for trial in shown["trials"] for one in trial["iteration_metrics"]]
    return sorted(found, key=lambda one: str(one["case"]))


def span(made: list[dict[str, Any]]) -> float:
    """From the first start to the last end."""
    starts = [one["started"] for one in made]
    ends = [one["started"] + one["duration_s"] for one in made]
    return float(max(ends) - min(starts))


def test_forty_cases_of_a_tenth_of_a_second_take_half_a_second_by_eight(desk: Assay) -> None:
    write_suite(desk, "sleeps", 40)
    made = executions(desk, "--concurrency", "8")
    seconds = sorted(one["duration_s"] for one in made)
    assert len(made) == 40
    assert all(one["status"] == "ok" for one in made)
    assert 0.1 <= seconds[20] < 0.2
    assert seconds[0] >= 0.1
    assert sum(seconds) >= 4.0
    assert span(made) < 2.0
    assert all(one["metrics"]["cpu_seconds"] < 0.05 for one in made)


@pytest.mark.parametrize(("more", "options"), [(", concurrency: 1", ()), ("", ("--set", "concurrency=1"))])
def test_an_agent_that_allows_one_at_a_time_is_never_called_from_two_threads(
    desk: Assay, more: str, options: tuple[str, ...]
) -> None:
    write_suite(desk, "alone", 12, more)
    made = executions(desk, "--concurrency", "8", *options)
    assert {one["status"] for one in made} == {"ok"}
    assert desk("show", "last", "--json").json["trials"][0]["concurrency"] == 1


def test_a_concurrency_below_one_is_refused(desk: Assay) -> None:
    write_suite(desk, "alone", 2, ", concurrency: 0")
    assert "concurrency" in desk("run", "suite.yaml").refusal


def test_what_each_execution_prints_and_raises_is_kept_with_it(desk: Assay) -> None:
    write_suite(desk, "talks", 8)
    made = executions(desk, "--concurrency", "8")
    for one in made:
        name = "q" + str(one["case"])[1:]
        assert one["log"] == f"{name} says 0\n{name} says 1\n{name} says 2\n"
        assert one["status"] == ("failed" if name == "q03" else "ok")
    assert "q03 is wrong" in made[3]["error"]


def test_one_execution_that_hangs_is_a_timeout_and_the_others_are_done_once(desk: Assay) -> None:
    write_suite(desk, "hangs", 12, limits="    limits: {seconds: 1}")
    begin = time.monotonic()
    made = executions(desk, "--concurrency", "4")
    assert [one["status"] for one in made] == ["ok"] * 3 + ["timeout"] + ["ok"] * 8
    assert 0.9 < made[3]["duration_s"] < 5
    assert time.monotonic() - begin < 50


def test_a_generator_streams_within_its_thread(desk: Assay) -> None:
    write_suite(desk, "streams", 8)
    made = executions(desk, "--concurrency", "8")
    assert all(one["metrics"]["ttft"] < one["duration_s"] for one in made)
    assert span(made) < 0.75


def test_functions_that_compute_are_warned_about_and_others_are_not(desk: Assay) -> None:
    assert "90 %" in str(describe_contention(8, cpu_seconds=0.9, elapsed=1.0))
    assert describe_contention(8, cpu_seconds=0.1, elapsed=1.0) is None
    write_suite(desk, "computes", 16)
    executions(desk)
    assert "concurrency: 1" not in str(desk("show", "last", "--json").json["warnings"])


def test_inline_executions_are_made_in_threads_too(desk: Assay) -> None:
    write_suite(desk, "sleeps", 16)
    made = executions(desk, "--concurrency", "8", "--isolation", "inline")
    assert span(made) < 1.2
