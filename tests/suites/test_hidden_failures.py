"""What an agent raises is the agent's failure, whatever its type: it cannot hide behind the errors of the harness."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

AGENTS = """
import asyncio

from assay.errors import PlanError
from assay.execute.instruments import InstrumentFailed
from assay.plugin.agent import AgentError


class Own(BaseException):
    pass


class Silent(Exception):
    def __str__(self):
        raise KeyboardInterrupt

    __repr__ = __str__


class SilentAgentError(AgentError):
    __str__ = __repr__ = Silent.__str__


class Nameless(type):
    @property
    def __name__(cls):
        raise SystemExit


class Undescribable(Exception, metaclass=Nameless):
    __notes__ = property(lambda self: 1 / 0)


KINDS = {
    "value_error": lambda: ValueError("hard"),
    "cancelled": asyncio.CancelledError,
    "exit": lambda: SystemExit(Silent()),
    "interrupt": KeyboardInterrupt,
    "generator_exit": GeneratorExit,
    "own": Own,
    "silent": Silent,
    "silent_agent_error": SilentAgentError,
    "undescribable": Undescribable,
    "group": lambda: BaseExceptionGroup("many", [KeyboardInterrupt(), asyncio.CancelledError()]),
    "instrument": lambda: InstrumentFailed("x"),
    "plan": lambda: PlanError("x"),
    "stop": StopIteration,
}


def define(kind, make):
    def check(question):
        if int(question) % 3 == 0:
            raise make()

    def plain(question):
        check(question)
        return question

    async def async_(question):
        await asyncio.sleep(0)
        check(question)
        return question

    def stream(question):
        yield question
        check(question)

    async def async_stream(question):
        yield question
        check(question)

    async def task(question):
        async def inner():
            await asyncio.sleep(0)
            check(question)

        await asyncio.gather(inner())
        return question

    for function in (plain, async_, stream, async_stream, task):
        globals()[f"{kind}_{function.__name__.rstrip('_')}"] = function


for kind, make in KINDS.items():
    define(kind, make)


async def cancels_itself(question):
    if int(question) % 3 == 0:
        asyncio.current_task().cancel()
        await asyncio.sleep(0)
    return question


async def cancels_all(question):
    if int(question) % 3 == 0:
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0)
    return question
"""
FORMS = ("plain", "async", "stream", "async_stream", "task")
KINDS = (
    "value_error", "cancelled", "exit", "interrupt", "generator_exit", "own", "silent", "silent_agent_error",
    "undescribable", "group", "instrument", "plan", "stop",
)  # fmt: skip
EVERY = [*(f"{kind}_{form}" for kind in KINDS for form in FORMS), "cancels_itself", "cancels_all"]
AT_ONCE = [*(f"{kind}_{form}" for kind in KINDS for form in ("async", "task")), *(f"interrupt_{form}" for form in FORMS[2:4]),
           "exit_plain", "cancels_itself"]  # fmt: skip
IN_PROCESSES = ("cancelled_plain", "exit_task", "interrupt_async", "own_stream")


def outcomes(folder: Path) -> dict[str, Counter[str]]:
    return {name: Counter(one.status.value for one in made) for name, made in Stored(folder).by_trial.items()}


@pytest.mark.parametrize(
    ("agents", "options"),
    [
        (EVERY, ["--isolation", "inline"]),
        (AT_ONCE, ["--isolation", "inline", "--concurrency", "3"]),
        (IN_PROCESSES, []),
        (IN_PROCESSES, ["--concurrency", "3"]),
    ],
    ids=["inline", "inline-concurrent", "process", "process-concurrent"],
)
def test_whatever_an_agent_raises_is_its_failure_and_the_other_cases_go_on(
    assay_inline: AssayInline, agents: list[str], options: list[str]
) -> None:
    assay_inline.write("agents.py", AGENTS)
    assay_inline.write("suite.yaml", suite(numbers(9), map(python_agent, agents)))
    assert assay_inline("run", "suite.yaml", *options).code == 0
    found = outcomes(assay_inline.folder)
    assert len(found) == len(agents)
    assert found == {name: Counter(ok=6, failed=3) for name in found}


def test_an_agent_that_cancels_every_task_loses_no_case(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", AGENTS)
    assay_inline.write("suite.yaml", suite(numbers(30), [python_agent("cancels_all")]))
    assay_inline("run", "suite.yaml", "--isolation", "inline", "--concurrency", "3")
    [counts] = outcomes(assay_inline.folder).values()
    assert counts.total() == 30
    assert set(counts) == {"ok", "failed"}
    assert counts["failed"] >= 10


def test_an_agent_that_raises_cancelled_error_is_rated_like_one_that_says_it_failed(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("agents.py", AGENTS)
    agents = [python_agent("value_error_async"), python_agent("cancelled_async")]
    assay_inline.write("suite.yaml", suite(numbers(30), agents))
    assay_inline("run", "suite.yaml", "--isolation", "inline", "--repetitions", "2")
    run = assay_inline("show", "--json").json
    honest, hiding = run["trials"]
    for dimension in ("accuracy", "reliability"):
        assert (
            hiding["ratings"][dimension]["value"]
            == honest["ratings"][dimension]["value"]
            == pytest.approx(2 / 3)
        )
    assay_inline("report", "--format", "md", "--out", "out")
    lines = (assay_inline.folder / "out" / "report.md").read_text().splitlines()
    # The same warning about the other agent is counted in it.
    [warning] = [
        line for line in lines if line.startswith("> ⚠") and r"value\_error\_async" in line and "60" in line
    ]
    assert re.findall(r"\d+", warning) == ["20", "60", "20", "1"]
    wording(warning)


def test_a_scorer_that_raises_cancelled_error_leaves_one_output_unscored(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "scorers.py",
        "import asyncio\n"
        "def same(output, expected):\n"
        "    if output == '0':\n"
        "        raise asyncio.CancelledError\n"
        "    return output == expected\n"
        "async def waiting(output, expected):\n"
        "    return same(output, expected)\n",
    )
    scorers = ["scorers.py:same", "scorers.py:waiting"]
    assay_inline.write(
        "suite.yaml", suite(numbers(4), [{"name": "o", "type": "oracle"}], {"scorer": scorers})
    )
    assert assay_inline("run", "suite.yaml", "--isolation", "inline").code == 0
    stored = Stored(assay_inline.folder)
    assert stored.counts() == {"ok": 4}
    assert stored.metric("score") == {"c0": None, "c1": 1.0, "c2": 1.0, "c3": 1.0}


def test_a_trial_with_many_harness_errors_is_incomplete_and_has_no_rank(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write(
        "scorers.py", "import os\ndef same(o, e): return os._exit(1) if o == 'boom' else o == e\n"
    )
    assay_inline.write(
        "agents.py",
        "def honest(text): return text if int(text) > 1 else 'wrong'\n"
        "def hiding(text): return text if int(text) > 1 else 'boom'\n",
    )
    agents = [python_agent("honest"), python_agent("hiding")]
    assay_inline.write("suite.yaml", suite(numbers(8), agents, {"scorer": "scorers.py:same"}))
    done = assay_inline("run", "suite.yaml", "--json")
    run = json.loads(done.out)
    assert (done.code, run["status"]) == (1, "incomplete")
    honest, hiding = run["trials"]
    assert (honest["incomplete"], honest["without_result"], honest["ratings"]["accuracy"]["value"]) == (
        False,
        0,
        0.75,
    )
    assert (hiding["incomplete"], hiding["without_result"]) == (True, 2)
    assert "leads" not in run
    [board] = assay_inline("leaderboard", "--json").json
    assert [row["agent"] for row in board["standings"]] == ["honest"]
    assert [(row["agent"], row["benchmark"]) for row in board["unranked"]] == [("hiding", "b")]
    reason = board["unranked"][0]["reason"]
    assert re.findall(r"\d+", reason)[:2] == ["2", "8"]
    wording(reason)
    [warning] = [text for text in board["warnings"] if "hiding" in text]
    wording(warning.replace(run["run_id"], "RUN"))
    compared = assay_inline("compare", "honest", "hiding")
    assert (compared.code, "'hiding'" in compared.err, "'honest'" in compared.err) == (2, True, False)


def test_a_gate_fails_where_a_trial_is_incomplete(assay_inline: AssayInline) -> None:
    """What is missing might be its failures, also where only the last case was cancelled by the agent itself."""
    assay_inline.write("agents.py", "def a(text): return text\n")
    assay_inline.write("suite.yaml", suite(numbers(8), [python_agent("a")]))
    assert assay_inline("run", "suite.yaml", "--isolation", "inline").code == 0
    assay_inline("baseline", "set", "main", "last")
    assay_inline.write(
        "agents.py",
        "from assay.plugin.interruption import Cancelled\n"
        "def a(text):\n"
        "    if text == '7': raise Cancelled\n"
        "    return text\n",
    )
    done = assay_inline("run", "suite.yaml")
    assert (done.code, assay_inline("show", "--json").json["status"]) == (1, "incomplete")
    for options in ([], ["--require", "accuracy>=0.9"]):
        gate = assay_inline("gate", "last", "--metric", "score", *options, "--json", "--junit", "gate.xml")
        found = json.loads(gate.out)
        assert (gate.code, found["passed"], len(found["incomplete"])) == (1, False, 1)
        assert 'type="incomplete"' in (assay_inline.folder / "gate.xml").read_text()
    compared = assay_inline("compare", "@main", "last", "--metric", "score", "--fail-on", "worse", "--json")
    assert compared.code == 1
    assert [found["code"] for found in json.loads(compared.out)["warnings"]] == ["incomplete"]


def test_a_gate_fails_where_a_trial_was_given_up(assay_inline: AssayInline) -> None:
    """What was executed before the agent broke for good says little; its run is over all the same."""
    assay_inline.write("agents.py", "def a(text): return text\n")
    assay_inline.write("suite.yaml", suite(numbers(60), [python_agent("a")]))
    assert assay_inline("run", "suite.yaml", "--isolation", "inline").code == 0
    assay_inline("baseline", "set", "main", "last")
    assay_inline.write(
        "agents.py",
        "calls = []\ndef a(text):\n    calls.append(text)\n    return text if len(calls) <= 40 else 1 / 0\n",
    )
    done = assay_inline("run", "suite.yaml", "--json")
    [trial] = json.loads(done.out)["trials"]
    missing = str(60 - sum(trial["counts"].values()))
    assert (done.code, str(trial["without_result"])) == (0, missing)
    assert int(missing) >= 9
    for options in ([], ["--require", "accuracy>=0.5"]):
        gate = assay_inline("gate", "last", "--metric", "seconds", *options, "--json")
        assert (gate.code, len(json.loads(gate.out)["incomplete"])) == (1, 1)
    compared = assay_inline("compare", "@main", "last", "--metric", "seconds", "--json")
    found = [warning for warning in json.loads(compared.out)["warnings"] if warning["code"] == "incomplete"]
    assert [re.findall(r"\d+", warning["message"])[:2] for warning in found] == [[missing, "60"]]


def test_giving_up_on_an_agent_leaves_it_without_a_rank(assay_inline: AssayInline) -> None:
    """Otherwise an agent would rank by the cases before the ten in a row at which it failed."""
    assay_inline.write(
        "agents.py",
        "def wrong(text): return text if int(text) < 10 else 'wrong'\n"
        "def failing(text): return text if int(text) < 10 else 1 / 0\n",
    )
    agents = [python_agent("wrong"), python_agent("failing")]
    assay_inline.write("suite.yaml", suite(numbers(40), agents))
    assay_inline("run", "suite.yaml", "--isolation", "inline")
    [board] = assay_inline("leaderboard", "--json").json
    assert [row["agent"] for row in board["standings"]] == ["wrong"]
    assert [row["agent"] for row in board["unranked"]] == ["failing"]
