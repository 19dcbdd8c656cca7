"""From an answer to scores, and what counts when there is none."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

import pytest
from tests.command import Assay, AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

from assay.model import Status

STRANGE = "what is this"
ECHO = "def echo(text): return text\n"
SCORERS = """
import os, time
from assay.plugin.scorer import Judgement

def picky(output, expected):
    if output == "1": return None
    if output == "2": raise KeyError("what is this")
    return output == expected

def far_out(output, expected): return 7

async def slowly(output, expected, case): return 0.25 if case.id == "c0" else 1

def deadly(output, expected):
    if output == "1": os._exit(5)
    return 1

class Whole:
    def score(self, judged):
        return Judgement(0.5, "so so", {"correctness": 1.0, "completeness": 0.0, "relevance": None})

class Odd:
    def score(self, judged): return "fine"

class Unmade:
    def __init__(self):
        if os.environ.get("PYTHONHASHSEED"): raise RuntimeError("no scorer today")
    def score(self, judged): return Judgement(1.0)
"""


def ran(assay: Assay, scorer: object, cases: object = None, agent: str = ECHO, **keys: object) -> Stored:
    assay.write("agents.py", agent)
    assay.write("own.py", SCORERS)
    benchmark = {"scorer": scorer, **keys}
    assay.write("s.yaml", suite(cases or numbers(4), [python_agent("echo")], benchmark=benchmark))
    done = assay("run", "s.yaml", "-q")
    assert done.code in (0, 1), done.err
    return Stored(assay.folder)


def accuracy(assay: Assay) -> float:
    with sqlite3.connect(assay.folder / ".assay" / "assay.db") as connection:
        return float(connection.execute("SELECT accuracy FROM trials").fetchone()[0])


def test_what_a_scorer_cannot_judge_counts_nowhere_and_is_not_the_agents_fault(
    assay_inline: AssayInline, wording: Wording
) -> None:
    stored = ran(assay_inline, "own.py:picky")
    assert stored.metric("score") == {"c0": 1.0, "c1": None, "c2": None, "c3": 1.0}
    assert stored.counts() == {"ok": 4}
    details: dict[str, Any] = {one.case: one.detail for one in stored.measured}
    for case in ("c1", "c2"):
        assert details[case].keys() == {"reasons", "unscored"}
        assert details[case]["unscored"] == list(details[case]["reasons"]) == ["picky"]
        wording(details[case]["reasons"]["picky"])
    assert details["c2"]["reasons"]["picky"].endswith(f"KeyError: '{STRANGE}'")
    assert accuracy(assay_inline) == 1.0


@pytest.mark.parametrize(
    ("scorer", "told"), [("own.py:far_out", {"0", "1", "7"}), ("own.py:Odd", {"str"})], ids=["far_out", "Odd"]
)
def test_a_scorer_that_talks_nonsense_leaves_the_case_unscored(
    assay_inline: AssayInline, wording: Wording, scorer: str, told: set[str]
) -> None:
    [one, *_] = ran(assay_inline, scorer).measured
    assert one.status is Status.OK
    assert "score" not in one.measurements
    assert one.detail is not None
    reasons: Any = one.detail["reasons"]
    [reason] = reasons.values()
    assert told <= set(re.findall(r"\w+", reason))
    wording(reason)


def test_a_scorer_that_ends_the_process_is_a_fault_of_the_harness(assay_inline: AssayInline) -> None:
    stored = ran(assay_inline, "own.py:deadly")
    assert stored.status() == {"c0": "ok", "c1": "harness_error", "c2": "ok", "c3": "ok"}
    assert accuracy(assay_inline) == 1.0


def test_scorers_that_cannot_be_made_are_a_fault_of_the_harness(
    assay_inline: AssayInline, wording: Wording
) -> None:
    stored = ran(assay_inline, "own.py:Unmade")
    [one] = stored.measured
    assert one.status is Status.HARNESS_ERROR
    assert one.error is not None
    first = one.error.splitlines()[0]
    assert "RuntimeError: " in first
    wording(first)


def test_an_execution_in_which_the_agent_failed_scores_nothing(assay_inline: AssayInline) -> None:
    agent = "def echo(text):\n    if text in '01': raise ValueError(text)\n    return text\n"
    stored = ran(assay_inline, "exact", agent=agent)
    assert stored.counts() == {"failed": 2, "ok": 2}
    assert accuracy(assay_inline) == 0.5


def test_an_answer_beyond_its_limits_scores_nothing(assay_inline: AssayInline, wording: Wording) -> None:
    agent = "def echo(text): return {'output': text, 'usage': {'output_tokens': int(text)}}\n"
    stored = ran(assay_inline, "exact", agent=agent, limits={"tokens": 1})
    assert stored.status() == {"c0": "ok", "c1": "ok", "c2": "over_limit", "c3": "over_limit"}
    [error] = [one.error for one in stored.measured if one.case == "c2"]
    assert re.findall(r"tokens|\d+", error or "") == ["2", "tokens", "1"]
    wording(error)
    assert accuracy(assay_inline) == 0.5


def test_scores_are_named_and_weighed(assay_inline: AssayInline) -> None:
    scorers = [
        {"name": "exact", "as": "correctness", "weight": 3},
        {"name": "contains", "as": "completeness", "texts": ["9"]},
        {"name": "own.py:slowly", "as": "relevance", "weight": 4},
    ]
    stored = ran(assay_inline, scorers, numbers(1))
    [one] = stored.measured
    found = {name: value for name, value in one.measurements.items() if name.startswith("score")}
    assert found == {
        "score.correctness": 1.0,
        "score.completeness": 0.0,
        "score.relevance": 0.25,
        "score": pytest.approx((3 * 1 + 1 * 0 + 4 * 0.25) / 8),
    }


def test_one_scorer_may_give_named_parts_which_do_not_count_again(assay_inline: AssayInline) -> None:
    [one] = ran(assay_inline, "own.py:Whole", numbers(1)).measured
    found = {name: value for name, value in one.measurements.items() if name.startswith("score")}
    assert found == {"score": 0.5, "score.Whole": 0.5, "score.correctness": 1.0, "score.completeness": 0.0}
    assert one.detail == {"reasons": {"Whole": "so so"}, "unscored": ["relevance"]}


def test_a_function_of_a_loaded_file_is_a_scorer_by_its_name(assay_inline: AssayInline) -> None:
    assay_inline.write("own.py", SCORERS)
    assay_inline.write("s.yaml", suite(numbers(2), ["oracle"], benchmark={"scorer": "slowly"}, load="own.py"))
    assert assay_inline("run", "s.yaml", "-q").code == 0
    assert Stored(assay_inline.folder).metric("score.slowly") == {"c0": 0.25, "c1": 1.0}


TALKER = """
def echo(request):
    said = [turn["content"] for turn in request.history]
    return f"{request.input} after {said}" if said else request.input
"""


def test_each_turn_of_a_conversation_has_its_own_check(assay_inline: AssayInline) -> None:
    turns = [
        {"input": "one", "expected": "one"},
        "just talk",
        {"user": "two", "expected": "nine", "scorer": "contains"},
        {"input": "three", "expected": "one", "scorer": [{"name": "contains", "as": "memory", "weight": 2}]},
    ]
    stored = ran(assay_inline, "exact", [{"id": "c0", "turns": turns}], TALKER)
    [one] = stored.measured
    scores = {name: value for name, value in one.measurements.items() if name.startswith("score")}
    assert scores == {
        "score.turn1.exact": 1.0,
        "score.turn3.contains": 0.0,
        "score.turn4.memory": 1.0,
        "score": 0.75,
    }
    assert one.detail is not None
    said = [
        "one",
        "just talk after ['one', 'one']",
        "two after ['one', 'one', 'just talk', \"just talk after ['one', 'one']\"]",
    ]
    assert one.detail["turns"] == said


def test_a_conversation_may_be_checked_at_its_end_alone(assay_inline: AssayInline) -> None:
    case = {"id": "c0", "turns": ["one", "two"], "expected": "one"}
    [one] = ran(assay_inline, "contains", [case], TALKER).measured
    assert one.measurements["score"] == 1.0
    assert "score.turn2.contains" in one.measurements


CALLER = """
def echo(request):
    calls = [{"name": tool["name"], "arguments": {"n": len(request.history)}} for tool in request.tools]
    return {"output": None, "tool_calls": calls}
"""


def test_cases_with_tools_are_judged_by_the_calls_made(assay_inline: AssayInline) -> None:
    tools = [{"name": "look", "description": "", "parameters": {}}]
    right = [{"name": "look", "arguments": {"n": 0}}]
    cases = [
        {"id": "right", "input": "x", "tools": tools, "expected_calls": right},
        {"id": "wrong", "input": "x", "tools": tools, "expected_calls": [{"name": "leap"}]},
    ]
    stored = ran(assay_inline, "tool_calls", cases, CALLER)
    assert stored.metric("score") == {"right": 1.0, "wrong": 0.0}


def test_an_agent_is_given_the_files_of_a_case(assay_inline: AssayInline) -> None:
    assay_inline.write("a.txt", "the content")
    agent = "def echo(request):\n    return open(request.files['a.txt']).read()\n"
    cases = [{"id": "c0", "input": "read", "files": ["a.txt"], "expected": "the content"}]
    assert ran(assay_inline, "exact", cases, agent).metric("score") == {"c0": 1.0}


def judged(stored: Stored) -> list[object]:
    return [
        (one.case, one.repetition, sorted(one.measurements.items()), one.status, one.started)
        for one in stored.measured
    ]


def test_judging_again_what_did_not_change_changes_nothing(
    assay_inline: AssayInline, wording: Wording
) -> None:
    tools = [{"name": "look"}]
    talk = [{"input": "x", "expected": [{"name": "look"}], "scorer": "tool_calls"}, "y"]
    cases = [*numbers(3), {"id": "talk", "turns": talk, "tools": tools}]
    agent = CALLER.replace('"output": None', '"output": request.input')
    before = ran(assay_inline, ["exact", "own.py:picky"], cases, agent)
    assert assay_inline("rescore", "last", "-q").code == 0
    assert judged(Stored(assay_inline.folder)) == judged(before)
    [told] = [line for line in assay_inline("rescore", "last").err.splitlines() if line.startswith("0 ")]
    assert re.findall(r"\d+", told) == ["0", "4"]
    wording(told)


def test_a_mended_scorer_judges_the_stored_outputs_anew(assay: Assay) -> None:
    before = ran(assay, "own.py:picky")
    assert before.metric("score")["c1"] is None
    assay.write("own.py", "def picky(output, expected): return 0.5\n")
    done = assay("rescore", "last", "--json")
    assert done.json["trials"][0]["ratings"]["accuracy"]["value"] == 0.5
    others = [score for score in before.metric("score").values() if score != 0.5]
    assert (done.json["scores"], done.json["scores_changed"]) == (len(before.measured), len(others))
    after = Stored(assay.folder)
    assert set(after.metric("score").values()) == {0.5}
    assert [one.output for one in after.measured] == [one.output for one in before.measured]
    assert all(
        "reasons" not in (one.detail or {}) or not (one.detail or {})["reasons"] for one in after.measured
    )


def test_a_run_of_code_cannot_be_judged_again(assay_inline: AssayInline, wording: Wording) -> None:
    assert assay_inline("run", "noop", "-q").code == 0
    run = Stored(assay_inline.folder).run.id
    refusal = assay_inline("rescore", "last").refusal
    assert run in refusal
    wording(refusal.replace(run, "RUN"))


JUDGE = """
def judge(text):
    return '{"score": 5, "reason": "good"}' if "apple" in text else '{"score": 1, "reason": "bad"}'
"""


def test_an_agent_that_is_known_by_name_may_be_the_judge(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", ECHO + JUDGE)
    scorer = {"name": "judge", "agent": "judge", "rubric": "Is it a fruit?", "disagreement_sample": 0}
    cases = [{"id": "c0", "input": "apple"}, {"id": "c1", "input": "brick"}]
    agents = [python_agent("echo"), python_agent("judge")]
    assay_inline.write("s.yaml", suite(cases, agents, benchmark={"scorer": scorer}))
    done = assay_inline("run", "s.yaml", "-q", "--agent", "echo")
    assert done.code == 0, done.err
    stored = Stored(assay_inline.folder)
    assert stored.metric("score") == {"c0": 1.0, "c1": 0.0}
    assert stored.suite is not None
    assert json.loads(json.dumps(stored.suite.benchmarks[0].scorers[0].options["agent"]))["type"] == "python"
    assert assay_inline("rescore", "last", "-q").code == 0
    again = Stored(assay_inline.folder)
    assert again.metric("score") == stored.metric("score")
    assert again.metric("seconds") == stored.metric("seconds")
