"""Agents without a server are asked through their own code."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.load.faulty import until
from tests.load.loading import started, told_by_the_system
from tests.wording import Wording

AGENTS = """
import asyncio, threading, time
from pathlib import Path

TOGETHER = threading.Barrier(100)

def crowd(text):
    TOGETHER.wait(60)
    return text

def quick(text):
    return text.upper()

async def waiting(text):
    await asyncio.sleep(0.01)
    return text

def loud(text):
    print("this must not get among what the worker tells")
    return text

FREE = asyncio.Semaphore(4)

async def queued(text):
    async with FREE:
        await asyncio.sleep(0.05)
    return text

def broken(text):
    raise RuntimeError("no")

def stuck(text):
    time.sleep(3600)

async def stubborn(text):
    time.sleep(3600)

CALLS = 0

async def cold(text):
    global CALLS
    CALLS += 1
    await asyncio.sleep(0.1 if CALLS <= 17 else 0.0)
    return text

async def counted(text):
    with Path("asked.txt").open("a") as file:
        file.write("x")
    await asyncio.sleep(0.02)
    return text
"""


@pytest.fixture
def agents(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("own.py", AGENTS)
    names = ["quick", "waiting", "loud", "broken", "stuck", "stubborn", "counted", "crowd", "queued", "cold"]
    lines = "".join(f"  - {{name: {name}, type: python, target: 'own.py:{name}'}}\n" for name in names)
    file = assay_inline.write("agents.yaml", f"agents:\n{lines}")
    assert assay_inline("agent", "add", file).code == 0
    return assay_inline


@pytest.mark.parametrize("name", ["quick", "waiting", "loud"])
@pytest.mark.parametrize(
    "how", [("--concurrency", "4"), ("--rate", "200"), ("--concurrency", "4", "--workers", "2")]
)
def test_an_agent_is_asked_by_the_same_timetables(
    agents: AssayInline, name: str, how: tuple[str, ...]
) -> None:
    found = agents("load", name, "--requests", "40", *how, "--json").json
    assert found["requests_sent"] == found["requests_completed"] == 40
    assert found["errors"] == {}
    assert found["ttft_ms"] is None
    assert found["latency_ms"]["n"] == 40


def test_slow_first_answers_of_a_short_open_loop_are_counted(agents: AssayInline) -> None:
    """The first 17 of 40 requests are slow, and all are due within 0.2 s."""
    found = agents("load", "cold", "--requests", "40", "--rate", "200", "--json").json
    assert found["latency_ms"]["n"] == 40
    assert found["latency_ms"]["p90"] >= 99


def test_a_plain_function_is_asked_as_often_at_a_time_as_it_was_asked_for(agents: AssayInline) -> None:
    """It answers only when a hundred ask together."""
    done = agents("load", "crowd", "--concurrency", "100", "--requests", "100", "--json")
    assert done.json["requests_completed"] == 100


def test_requests_that_queue_in_a_short_load_do_not_count_by_their_first_wave(agents: AssayInline) -> None:
    """Four at a time for 50 ms each make 80 a second at most, however many wait."""
    found = agents("load", "queued", "--concurrency", "32", "--duration", "1", "--json").json
    assert found["throughput_rps"] <= 84


def test_fewer_requests_than_places_end(agents: AssayInline) -> None:
    done = agents("load", "quick", "--requests", "1", "--concurrency", "4", "--workers", "2", "--json")
    assert done.json["requests_completed"] == 1


def test_an_agent_that_fails_at_once_is_not_hammered(agents: AssayInline, wording: Wording) -> None:
    done = agents("load", "broken", "--duration", "1", "--concurrency", "2", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert set(found["errors"]) == {"failed"}
    assert found["errors"]["failed"] <= 20
    # What it said is told, with the line of its code, in the document and to whoever reads.
    [(reason, number)] = found["error_reasons"]["failed"].items()
    assert reason.startswith("RuntimeError: no")
    assert "own.py:" in reason
    wording(reason)
    assert number == found["errors"]["failed"]
    assert reason in " ".join(agents("show", "last").out.split())


def test_an_agent_that_hangs_is_given_up_and_the_command_ends(agents: AssayInline) -> None:
    done = agents("load", "stuck", "--requests", "2", "--concurrency", "2", "--timeout", "300ms", "--json")
    assert done.code == 1
    assert json.loads(done.out)["errors"] == {"timeout": 2}


@pytest.mark.parametrize(
    "given", [("--header", "x: y"), ("--insecure",), ("--ca-file", "some.pem"), ("--model", "m")]
)
def test_what_only_a_server_takes_is_refused_by_its_name(agents: AssayInline, given: tuple[str, ...]) -> None:
    told = agents("load", "quick", *given).refusal
    assert told.startswith(f"Error: {given[0]}: ")
    assert "'quick'" in told


def test_unknown_agents_are_not_taken(agents: AssayInline, wording: Wording) -> None:
    told = agents("load", "quik").refusal
    assert "'quick'" in told
    wording(" ".join(told.split()))


def test_ctrl_c_ends_a_load_of_an_agent(agents: AssayInline) -> None:
    asked = Path(agents.folder / "asked.txt")
    with started(agents.folder, "counted", "--rate", "20", "--duration", "600", "--json") as process:
        until(lambda: asked.exists() and asked.stat().st_size > 10)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["requests_completed"] >= 3


@pytest.mark.real_starts
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found by /proc")
def test_an_agent_that_blocks_everything_can_be_interrupted(agents: AssayInline) -> None:
    with started(agents.folder, "stubborn", "--requests", "1", "--json") as process:
        until(lambda: has_worker(process.pid))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["requests_completed"] == 0


def has_worker(pid: int) -> bool:
    children = told_by_the_system(pid, f"task/{pid}/children").split()
    return any("agent_worker" in told_by_the_system(int(child), "cmdline") for child in children)
