"""Runs that are cut short, by force, by a person or by a budget, and go on where they ended."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.command import COMMAND, Assay, AssayInline, environment, heeding_signals
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

from assay.model import RunState, Status

AGENTS = """
import asyncio, os, time
asked = 0

def must_wait():
    # Half way, until the test has done to the run what it wanted to.
    global asked
    asked += 1
    return asked > 30 and not os.path.exists(os.path.join(os.path.dirname(__file__), "go"))

def steady(text):
    while must_wait(): time.sleep(0.02)
    return text

async def waiting(text):
    while must_wait(): await asyncio.sleep(0.02)
    return text

def paid(text):
    global asked
    asked += 1
    time.sleep(0.005 if asked < 20 else 0.1)
    return {"output": text, "usage": {"input_tokens": 3, "output_tokens": 2}, "usd": 0.01}
"""
CASES = 60


def write(assay: Assay, agent: str, repetitions: int = 2) -> None:
    assay.write("agents.py", AGENTS)
    iterations = {"warmup": 1, "measured": repetitions}
    assay.write("s.yaml", suite(numbers(CASES), [python_agent(agent)], benchmark={"iterations": iterations}))


def started(assay: Assay, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [COMMAND, "run", "s.yaml", "-q", *options],
        cwd=assay.folder,
        env=environment({}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=heeding_signals,
    )


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stored_so_far(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder}/.assay/assay.db?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM executions").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def every(repetitions: int) -> list[tuple[str, int]]:
    return sorted((f"c{n}", repetition) for n in range(CASES) for repetition in range(repetitions))


@pytest.mark.parametrize(("agent", "concurrency"), [("steady", "1"), ("waiting", "8")])
def test_a_killed_run_resumes_with_exactly_what_is_missing(
    assay: Assay, agent: str, concurrency: str
) -> None:
    write(assay, agent)
    process = started(assay, "--concurrency", concurrency)
    wait_until(lambda: stored_so_far(assay.folder) >= 20)
    process.kill()
    process.communicate()
    assay.write("go", "")
    before = Stored(assay.folder)
    assert 0 < len(before.measured) < 2 * CASES
    assert assay("run", "--resume", "last", "-q").code == 0
    after = Stored(assay.folder)
    assert sorted((one.case, one.repetition) for one in after.measured) == every(2)
    assert after.counts() == {"ok": 2 * CASES}
    assert after.run.state is RunState.COMPLETED
    kept = {(one.case, one.repetition): one.started for one in before.measured}
    assert all(kept.get((one.case, one.repetition), one.started) == one.started for one in after.measured)


@pytest.mark.parametrize(("agent", "concurrency"), [("steady", "1"), ("waiting", "8")])
def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(
    assay: Assay, agent: str, concurrency: str
) -> None:
    write(assay, agent)
    process = started(assay, "--concurrency", concurrency)
    wait_until(lambda: stored_so_far(assay.folder) >= 10)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assay.write("go", "")
    assert process.returncode == 130
    assert b"Traceback" not in err
    before = Stored(assay.folder)
    assert before.run.state is RunState.INTERRUPTED
    assert {one.status for one in before.measured} <= {Status.OK, Status.CANCELLED}
    assert assay("run", "--resume", "last", "-q").code == 0
    after = Stored(assay.folder)
    assert sorted((one.case, one.repetition) for one in after.measured) == every(2)
    assert after.counts() == {"ok": 2 * CASES}


@pytest.mark.parametrize(("option", "value"), [("--budget-usd", "0.2"), ("--budget-tokens", "100")])
def test_a_budget_ends_the_run_with_what_there_is(
    assay_inline: AssayInline, wording: Wording, option: str, value: str
) -> None:
    write(assay_inline, "paid", repetitions=40)
    done = assay_inline("run", "s.yaml", "-q", option, value)
    assert done.code == 1
    stored = Stored(assay_inline.folder)
    assert stored.run.state is RunState.OVER_BUDGET
    assert 19 <= stored.counts()["ok"] < 40 * CASES
    refusal = assay_inline("run", "--resume", "last", "-q").refusal
    assert stored.run.id in refusal
    wording(refusal.replace(stored.run.id, "RUN"), near="'RUN'", numbers=False)
    assert len(Stored(assay_inline.folder).measured) == len(stored.measured)


def test_a_larger_budget_goes_on_and_what_was_spent_before_counts(assay_inline: AssayInline) -> None:
    """80 answers cost 0.8 in all; if the first 20 were forgotten, 80 more would be had."""
    write(assay_inline, "paid", repetitions=40)
    assay_inline("run", "s.yaml", "-q", "--budget-usd", "0.2")
    paid = Stored(assay_inline.folder).counts()["ok"]
    done = assay_inline("run", "--resume", "last", "-q", "--budget-usd", "0.8")
    assert done.code == 1
    again = Stored(assay_inline.folder)
    assert again.run.state is RunState.OVER_BUDGET
    assert again.run.budget.usd == 0.8
    assert 78 <= again.counts()["ok"] < 80 + paid


def test_an_agent_that_changed_before_its_run_was_resumed_is_of_two_versions(
    assay_inline: AssayInline, wording: Wording
) -> None:
    write(assay_inline, "paid", repetitions=40)
    assay_inline("run", "s.yaml", "-q", "--budget-usd", "0.2")
    (first,) = Stored(assay_inline.folder).run.trials
    assay_inline("run", "--resume", "last", "-q", "--budget-usd", "0.4")
    assert Stored(assay_inline.folder).run.trials[0].trial.agent == first.trial.agent
    assay_inline.write("agents.py", AGENTS.replace('"output": text', '"output": "?"'))
    done = assay_inline("run", "--resume", "last", "-q", "--budget-usd", "0.6", COLUMNS="200")
    (mixed,) = Stored(assay_inline.folder).run.trials
    before, _, after = mixed.trial.agent.version.partition("+")
    assert before == first.trial.agent.version
    assert len(after) == len(before)
    assert after != before
    [told] = [line for line in done.err.splitlines() if before in line]
    assert told.index(before) < told.index(after)
    wording(told.replace(before, "FIRST").replace(after, "SECOND"), numbers=False)
    assay_inline("run", "--resume", "last", "-q", "--budget-usd", "0.8")
    assert Stored(assay_inline.folder).run.trials[0].trial.agent == mixed.trial.agent


def test_a_budget_that_just_suffices_ends_nothing(assay_inline: AssayInline) -> None:
    write(assay_inline, "paid", repetitions=1)
    assert assay_inline("run", "s.yaml", "-q", "--budget-tokens", str(5 * (CASES + 1))).code == 0
    assert Stored(assay_inline.folder).run.state is RunState.COMPLETED


def test_the_budget_of_a_spec_counts_all_agents_together(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", AGENTS)
    agents = [python_agent("paid"), python_agent("paid") | {"name": "other"}]
    assay_inline.write("s.yaml", suite(numbers(CASES), agents))
    assay_inline.write(
        "spec.yaml", '{"suite": "s.yaml", "agents": ["paid", "other"], "budget": {"usd": 0.7}}'
    )
    assert assay_inline("run", "spec.yaml", "-q", "--warmup", "0", "--repetitions", "1").code == 1
    by_trial = {name: len(made) for name, made in Stored(assay_inline.folder).by_trial.items()}
    assert 70 <= sum(by_trial.values()) < 2 * CASES
    assert max(by_trial.values()) == CASES
