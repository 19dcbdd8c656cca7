"""Agents in real workers: one thing at a time or many, and all the ways in which they fail."""

from __future__ import annotations

import re

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

from assay.model import Status

SLOW = "the database is slow"
LOCKED = "the door is locked"
AGENTS = """
import asyncio, os, time

def plain(text): return text

async def waiting(text):
    await asyncio.sleep(0.01)
    return text

asked, all_asked = [], asyncio.Event()

async def together(text):
    asked.append(text)
    if len(asked) == 1000: all_asked.set()
    await all_asked.wait()
    return text

def dies(text):
    if text == "5": os._exit(3)
    return text

async def dies_later(text):
    await asyncio.sleep(0.01)
    if text == "5": os._exit(3)
    return text

def hangs(text):
    if text == "1": time.sleep(600)
    return text

async def hangs_politely(text):
    if text == "1": await asyncio.sleep(600)
    return text

async def blocks_the_loop(text):
    if text == "1": time.sleep(600)
    return text

async def takes_no_hint(text):
    while text == "1":
        try: await asyncio.sleep(600)
        except asyncio.CancelledError: pass
    return text

def gives_up(text):
    if text == "1": raise TimeoutError("the database is slow")
    return text

async def gives_up_later(text):
    if text == "1": raise TimeoutError("the database is slow")
    if text == "2": raise SystemExit(4)
    return text

async def never_waits(text):
    time.sleep(0.002)
    return text

def talks(text):
    print("about", text)
    return text

def broken(text): raise ValueError(text)

def breaks_sometimes(text):
    if int(text) % 10 == 9: return text
    raise ValueError(text)
"""


def ran(assay: AssayInline, agent: str, cases: int = 12, *options: str, **benchmark: object) -> Stored:
    assay.write("agents.py", AGENTS)
    assay.write("s.yaml", suite(numbers(cases), [python_agent(agent)], benchmark=benchmark))
    done = assay("run", "s.yaml", "-q", *options)
    assert done.code in (0, 1), done.err
    return Stored(assay.folder)


def all_but(case: str, status: str, cases: int = 12) -> dict[str, str]:
    return {f"c{n}": "ok" for n in range(cases)} | {case: status}


@pytest.mark.parametrize("agent", ["plain", "waiting"])
@pytest.mark.parametrize("concurrency", ["1", "8"])
def test_every_case_is_asked_once_in_each_repetition(
    assay_inline: AssayInline, agent: str, concurrency: str
) -> None:
    stored = ran(assay_inline, agent, 12, "--concurrency", concurrency, "--repetitions", "2", "--warmup", "2")
    assert sorted((one.case, one.repetition) for one in stored.measured) == sorted(
        (f"c{n}", repetition) for n in range(12) for repetition in range(2)
    )
    assert len(stored.all) == 26
    assert {one.output for one in stored.measured if one.case == "c3"} == {"3"}


def test_a_thousand_can_be_asked_at_once(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, "together", 1000, "--concurrency", "1000", limits={"seconds": 120})
    assert stored.counts() == {"ok": 1000}


@pytest.mark.parametrize("agent", ["dies", "dies_later"])
@pytest.mark.parametrize("concurrency", ["1", "8"])
def test_a_crash_is_that_of_its_case_and_all_others_are_done(
    assay_inline: AssayInline, wording: Wording, agent: str, concurrency: str
) -> None:
    stored = ran(assay_inline, agent, 12, "--concurrency", concurrency)
    assert stored.status() == all_but("c5", "crashed")
    assert len(stored.measured) == 12
    [crashed] = [one for one in stored.measured if one.status is Status.CRASHED]
    assert re.findall(r"\d+", crashed.error or "") == ["3"]  # the exit code
    wording(crashed.error)


@pytest.mark.parametrize("concurrency", ["1", "8"])
def test_a_crash_while_warming_up_is_blamed_on_no_other_case(
    assay_inline: AssayInline, concurrency: str
) -> None:
    options = ("--concurrency", concurrency, "--warmup", "8", "--repetitions", "2")
    stored = ran(assay_inline, "dies", 8, *options)
    assert sorted((one.case, one.repetition, one.status.value) for one in stored.measured) == sorted(
        (f"c{n}", repetition, "crashed" if n == 5 else "ok") for n in range(8) for repetition in range(2)
    )


@pytest.mark.parametrize(
    ("agent", "concurrency"),
    [
        ("hangs", "1"),
        ("hangs", "8"),
        ("hangs_politely", "1"),
        ("hangs_politely", "8"),
        ("blocks_the_loop", "1"),
        ("blocks_the_loop", "8"),
        ("takes_no_hint", "8"),
    ],
)
def test_a_case_that_takes_too_long_is_ended_and_the_next_goes_on(
    assay_inline: AssayInline, wording: Wording, agent: str, concurrency: str
) -> None:
    stored = ran(assay_inline, agent, 12, "--concurrency", concurrency, limits={"seconds": 2})
    assert stored.status() == all_but("c1", "timeout")
    [late] = [one for one in stored.measured if one.status is Status.TIMEOUT]
    assert re.findall(r"\d+ \w+", late.error or "") == ["2 s"]
    wording(late.error)
    assert 1.9 < late.measurements["seconds"] < 60


def test_an_async_agent_is_cancelled_without_a_new_process(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, "hangs_politely", 3, limits={"seconds": 2})
    assert {one.process for one in stored.measured} == {0}
    assert stored.status() == all_but("c1", "timeout", 3)


@pytest.mark.parametrize(("concurrency", "cases"), [("1", 150), ("4", 500)])
def test_a_limit_shorter_than_the_run_does_not_end_agents_that_keep_it(
    assay_inline: AssayInline, concurrency: str, cases: int
) -> None:
    stored = ran(assay_inline, "waiting", cases, "--concurrency", concurrency, limits={"seconds": 1})
    # All but those that a pause of the whole machine may have held up.
    assert stored.counts()["ok"] > 0.9 * cases


def test_an_agent_that_never_waits_holds_up_nothing(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, "never_waits", 1500, "--concurrency", "4", limits={"seconds": 2})
    assert stored.counts() == {"ok": 1500}
    assert {one.process for one in stored.measured} == {0}


@pytest.mark.parametrize(("agent", "concurrency"), [("gives_up", "1"), ("gives_up_later", "4")])
def test_an_agents_own_timeout_is_a_failure_of_the_agent(
    assay_inline: AssayInline, agent: str, concurrency: str
) -> None:
    stored = ran(assay_inline, agent, 4, "--concurrency", concurrency)
    assert stored.status()["c1"] == "failed"
    assert stored.status()["c3"] == "ok"
    [error] = [one.error for one in stored.measured if one.case == "c1"]
    assert error is not None
    assert error.startswith(f"TimeoutError: {SLOW}")


def test_what_an_agent_prints_is_kept_with_its_execution(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, "talks", 3)
    assert {one.case: one.log for one in stored.measured} == {f"c{n}": f"about {n}\n" for n in range(3)}


def test_ten_failures_in_a_row_end_the_trial(assay_inline: AssayInline, wording: Wording) -> None:
    stored = ran(assay_inline, "broken", 30)
    assert stored.counts() == {"failed": 10}
    reason = stored.run.trials[0].stopped or ""
    assert re.findall(r"\d+", reason) == ["10"]
    assert Status.FAILED in reason
    wording(reason)
    assert stored.run.state == "failed"


def test_nine_failures_in_a_row_are_bad_luck(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, "breaks_sometimes", 30)
    assert stored.counts() == {"failed": 27, "ok": 3}
    assert stored.run.trials[0].stopped is None


def test_an_agent_that_cannot_be_opened_ends_its_trial_and_no_other(
    assay_inline: AssayInline, wording: Wording
) -> None:
    plug_in = """
    class Locked:
        is_simulated, is_free = False, True
        def open(self): raise RuntimeError("the door is locked")
        def answer(self, request): ...
        def close(self): ...
        def found_version(self): return ""
    """
    assay_inline.write("locked.py", "\n".join(line[4:] for line in plug_in.splitlines()))
    agents = [{"name": "shut", "type": "locked:Locked"}, {"name": "fine", "type": "oracle"}]
    assay_inline.write("s.yaml", suite(numbers(3), agents, load="locked.py"))
    assert assay_inline("run", "s.yaml", "-q", "--repetitions", "2").code == 1
    stored = Stored(assay_inline.folder)
    assert [one.status for one in stored.by_trial["b · shut"]] == [Status.FAILED]
    reason = stored.run.trials[0].stopped
    assert (reason or "").endswith(f"RuntimeError: {LOCKED}")
    wording(reason)
    assert len(stored.by_trial["b · fine"]) == 6


def test_repetitions_can_share_one_process(assay_inline: AssayInline) -> None:
    counting = "asked = 0\ndef count(text):\n    global asked\n    asked += 1\n    return str(asked)\n"
    assay_inline.write("agents.py", counting)
    assay_inline.write("s.yaml", suite(numbers(2), [python_agent("count")], order="sequential"))
    assert assay_inline("run", "s.yaml", "-q", "--repetitions", "3").code == 0
    outputs = [one.output for one in Stored(assay_inline.folder).measured]
    assert outputs == ["1", "2", "3", "4", "5", "6"]


def test_each_repetition_has_a_process_of_its_own_otherwise(assay_inline: AssayInline) -> None:
    counting = "asked = 0\ndef count(text):\n    global asked\n    asked += 1\n    return str(asked)\n"
    assay_inline.write("agents.py", counting)
    assay_inline.write("s.yaml", suite(numbers(2), [python_agent("count")]))
    assert assay_inline("run", "s.yaml", "-q", "--repetitions", "3").code == 0
    outputs = [one.output for one in Stored(assay_inline.folder).measured]
    assert outputs == ["1", "2", "1", "2", "1", "2"]
