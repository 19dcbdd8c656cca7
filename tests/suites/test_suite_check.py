from __future__ import annotations

import json
import re
from time import monotonic
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import numbers, suite
from tests.wording import Wording

pytestmark = pytest.mark.usefixtures("trusted_code")


def faults(assay: AssayInline, expected_code: int) -> dict[str, list[str]]:
    done = assay("suite", "check", "s.yaml", "--json")
    assert done.code == expected_code, done.err
    document = json.loads(done.out)
    assert document["sound"] == (expected_code == 0)
    return {fault["code"]: fault["cases"] for fault in document["faults"]}


def test_a_sound_suite_gives_right_answers_everything_and_empty_ones_nothing(
    assay_inline: AssayInline,
) -> None:
    assay_inline.write("s.yaml", suite(numbers(3), output_dir="out"))
    assert faults(assay_inline, 0) == {}
    assert not (assay_inline.folder / "out").exists()


def test_a_case_whose_right_answer_cannot_be_judged_is_found(assay_inline: AssayInline) -> None:
    cases = [{"id": "fine", "input": "1", "expected": "1"}, {"id": "odd", "input": "2", "expected": "two"}]
    assay_inline.write("s.yaml", suite(cases, benchmark={"scorer": "numeric"}))
    assert faults(assay_inline, 1) == {"unscored": ["odd"]}


def test_a_case_that_gives_points_for_silence_is_found(assay_inline: AssayInline) -> None:
    cases = [*numbers(1), {"id": "free", "input": "say nothing", "expected": ""}]
    assay_inline.write("s.yaml", suite(cases, benchmark={"scorer": "exact"}))
    found = faults(assay_inline, 1)
    assert found.get("nop", found.get("unscored")) == ["free"]


def test_a_case_that_is_never_passed_whatever_is_said_is_found(assay_inline: AssayInline) -> None:
    assay_inline.write("own.py", "def grade(output, expected): return output == 'x'\n")
    assay_inline.write("s.yaml", suite(numbers(2), benchmark={"scorer": "own.py:grade"}))
    assert faults(assay_inline, 1) == {"oracle": ["c0", "c1"]}


def test_cases_that_ask_the_same_are_found(assay_inline: AssayInline) -> None:
    cases = [{"id": one, "input": "1", "expected": "1"} for one in ("a", "b")]
    assay_inline.write("s.yaml", suite(cases))
    assert faults(assay_inline, 0) == {"duplicate": ["a", "b"]}


TESTS = "assert double(2) == 4\nassert double(0) == 0"
DOUBLE = "def double(x):\n    return 2 * x"
JUDGE = """
import re
def harsh(prompt): return '{"score": %d}' % (4 if re.search(r"output\\n.+\\n", prompt) else 1)
def kind(prompt): return '{"score": %d}' % (5 if re.search(r"output\\n.+\\n", prompt) else 1)
"""


def judge(name: str) -> dict[str, Any]:
    agent = {"name": name, "type": "python", "target": f"judges.py:{name}"}
    return {"name": "judge", "agent": agent, "instructions": "{output}"}


def letters(texts: list[str]) -> list[list[float]]:
    """A model whose vectors have a length that does not come out even."""
    return [[text.count(letter) / 3 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


SOUND: dict[str, tuple[Any, dict[str, Any]]] = {
    "exact": ("exact", {"expected": "Paris"}),
    "exact, any of several": ("exact", {"expected": ["Paris", "Lutetia"]}),
    "text": ("text", {"expected": "The Louvre!"}),
    "contains": ("contains", {"expected": "14 days"}),
    "contains, all of several": ("contains", {"expected": ["refund", "14 days"]}),
    "contains, any of several": ({"name": "contains", "mode": "any"}, {"expected": ["refund", "14 days"]}),
    "contains, by option": ({"name": "contains", "texts": ["please", "thanks"]}, {}),
    "regex of plain words": ("regex", {"expected": "Paris"}),
    "regex with a solution": ("regex", {"expected": r"^\d{4}$", "solution": "1789"}),
    "numeric": ("numeric", {"expected": "It is 42."}),
    "numeric, any of several": ("numeric", {"expected": [41, 42]}),
    "choice by letter": ("choice", {"expected": "B"}),
    "choice by number": ("choice", {"expected": 1, "choices": ["red", "green", "blue"]}),
    "choice by text": ("choice", {"expected": "green", "choices": ["red", "green", "blue"]}),
    "json": ("json", {"expected": {"a": [1, 2]}}),
    "json list of texts": ("json", {"expected": ["a", "b"]}),
    "json_schema": (
        "json_schema",
        {
            "expected": {
                "type": "object",
                "required": ["n"],
                "properties": {"n": {"type": "integer", "minimum": 3}},
            }
        },
    ),
    "tool_calls under expected": ("tool_calls", {"expected": [{"name": "find", "arguments": {"q": "x"}}]}),
    "tool_calls beside expected": (
        ["tool_calls", "exact"],
        {"expected": "done", "expected_calls": [{"name": "find", "arguments": {"q": "x"}}]},
    ),
    "f1": ("f1", {"expected": ["the red fox", "a fox"]}),
    "rouge_l": ("rouge_l", {"expected": "the red fox"}),
    "edit": ("edit", {"expected": "the red fox"}),
    "embedding": (
        {"name": "embedding", "model": "tests.suites.test_suite_check:letters"},
        {"expected": "the red fox"},
    ),
    "code beside tests": ("code", {"expected": DOUBLE, "tests": TESTS}),
    "code with a solution": ("code", {"expected": TESTS, "solution": DOUBLE}),
    "rubric": (
        {
            "name": "rubric",
            "criteria": [{"name": "polite", "contains": ["please"]}, {"name": "right", "scorer": "numeric"}],
        },
        {"expected": "42"},
    ),
    "judge": (judge("kind"), {"expected": "Paris"}),
    "several scorers": (["numeric", {"name": "contains", "texts": ["apples", "pears"]}], {"expected": "42"}),
    "turns": ("contains", {"turns": ["hello", {"input": "and?", "expected": ["a", "b"]}]}),
}


@pytest.mark.parametrize("what", SOUND)
def test_a_right_answer_is_found_for_every_scorer(assay_inline: AssayInline, what: str) -> None:
    scorer, keys = SOUND[what]
    assay_inline.write("judges.py", JUDGE)
    assay_inline.write("s.yaml", suite([{"id": "c", "input": "?", **keys}], benchmark={"scorer": scorer}))
    assert faults(assay_inline, 0) == {}


UNCHECKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a pattern": ("regex", {"expected": r"^\d{4}$"}),
    "a pattern by option": ({"name": "regex", "pattern": r"^\d{4}$"}, {"expected": "about a year"}),
    "tests under expected": ("code", {"expected": TESTS}),
    "a schema with a pattern": ("json_schema", {"expected": {"type": "string", "pattern": "^[a-z]{7}$"}}),
    "a judge that gives no full marks": (judge("harsh"), {"expected": "Paris"}),
    "scorers that no single answer of ours pleases": (
        ["exact", {"name": "contains", "texts": ["please"]}],
        {"expected": "Paris"},
    ),
    "a solution that is only a remark": ("regex", {"expected": r"^\d{4}$", "solution": "see page 3"}),
}


@pytest.mark.parametrize("what", UNCHECKED)
def test_what_no_answer_can_be_constructed_for_is_not_called_unsound(
    assay_inline: AssayInline, wording: Wording, what: str
) -> None:
    scorer, keys = UNCHECKED[what]
    assay_inline.write("judges.py", JUDGE)
    assay_inline.write("s.yaml", suite([{"id": "c", "input": "?", **keys}], benchmark={"scorer": scorer}))
    assert faults(assay_inline, 0) == {"unchecked": ["c"]}
    wording(assay_inline("suite", "check", "s.yaml").out.splitlines()[-1])


UNSOUND: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a pattern that is none": ("regex", {"expected": "(("}, "unscored"),
    "tests that are no Python": ("code", {"expected": "assert ("}, "unscored"),
    "code that fails its tests": ("code", {"expected": "def double(x): return x", "tests": TESTS}, "oracle"),
    "a choice that there is not": ("choice", {"expected": "violet", "choices": ["red", "green"]}, "unscored"),
    "a pattern that matches nothing said": ({"name": "regex", "pattern": ".*"}, {}, "nop"),
    "calls that are none": ("tool_calls", {"expected": "call it"}, "unscored"),
    "a schema that is none": ("json_schema", {"expected": {"type": "strange"}}, "unscored"),
}


@pytest.mark.parametrize("what", UNSOUND)
def test_what_can_never_be_right_is_still_called_unsound(assay_inline: AssayInline, what: str) -> None:
    scorer, keys, code = UNSOUND[what]
    assay_inline.write("s.yaml", suite([{"id": "c", "input": "?", **keys}], benchmark={"scorer": scorer}))
    assert faults(assay_inline, 1)[code] == ["c"]


OWN = """
from assay.plugin.scorer import Judgement

class Longer:
    def score(self, judged): return Judgement(float(len(str(judged.output)) > judged.expected))
    def example(self, expected, case): return "x" * (expected + 1)

class Unsure(Longer):
    def example(self, expected, case): return None
"""


def test_a_scorer_of_your_own_says_what_it_would_accept(assay_inline: AssayInline) -> None:
    assay_inline.write("own.py", OWN)
    found = {}
    for name in ("Longer", "Unsure"):
        cases = [{"id": "c", "input": "?", "expected": 7}]
        assay_inline.write("s.yaml", suite(cases, benchmark={"scorer": f"own.py::{name}"}))
        found[name] = faults(assay_inline, 0)
    assert found == {"Longer": {}, "Unsure": {"unchecked": ["c"]}}


def test_agents_do_not_see_the_solution_of_a_case(assay_inline: AssayInline) -> None:
    peek = "from assay.model import Request\ndef peek(request: Request): return ' '.join(sorted(request.params))\n"
    assay_inline.write("agents.py", peek)
    agent = {"name": "peek", "type": "python", "target": "agents.py:peek"}
    cases = [{"id": "c", "input": "?", "expected": "hint", "solution": "hint", "hint": 1}]
    assay_inline.write("s.yaml", suite(cases, [agent]))
    [trial] = assay_inline("run", "s.yaml", "--json").json["trials"]
    assert trial["ratings"]["accuracy"]["value"] == 1.0


AGENTS = """
import random
def right(text): return text
def fickle(text): return text if text != "1" or random.random() < 0.5 else "?"
def weak(text): return text if text != "2" else "?"
"""


def test_results_of_agents_show_cases_that_tell_nothing(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", AGENTS)
    agents = [{"name": n, "type": "python", "target": f"agents.py:{n}"} for n in ("right", "fickle", "weak")]
    cases = [*numbers(3), {"id": "never", "input": "3", "expected": "4"}]
    assay_inline.write("s.yaml", suite(cases, agents, seed=1))
    assert assay_inline("run", "s.yaml", "-q", "--repetitions", "6").code == 0
    assert faults(assay_inline, 0) == {"all-pass": ["c0"], "all-fail": ["never"], "flaky": ["c1"]}


def test_a_check_in_words_ends_with_a_verdict(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("s.yaml", suite(numbers(2)))
    done = assay_inline("suite", "check", "s.yaml")
    assert done.code == 0
    verdict = done.out.splitlines()[-1]
    assert verdict.startswith("s ")
    assert re.findall(r"\d\.\d|\d", verdict) == ["1.0", "0.0", "2"]
    wording(verdict)


@pytest.mark.parametrize("scorer", ["slow", "slow_async", "Stubborn"])
def test_a_scorer_that_hangs_is_reported_and_does_not_hang_the_command(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, wording: Wording, scorer: str
) -> None:
    monkeypatch.setattr("assay.execute.case_checks.SCORER_SECONDS", 0.2)
    assay_inline.write("own.py", HANGING)
    assay_inline.write("s.yaml", suite(numbers(3), benchmark={"scorer": ["exact", f"own.py:{scorer}"]}))
    started = monotonic()
    done = assay_inline("suite", "check", "s.yaml")
    assert done.code == 1
    assert monotonic() - started < 10
    assert "0.2 s" in done.out
    wording(done.out, near="0.2 s")


HANGING = """
import asyncio, time
from assay.plugin.scorer import Judgement
def slow(output, expected): time.sleep(60)
async def slow_async(output, expected): await asyncio.sleep(60)
class Stubborn:
    def score(self, judged): return Judgement(1.0)
    def example(self, expected, case):
        while True:
            try: time.sleep(60)
            except Exception: pass
"""


@pytest.mark.parametrize("value", ["2.0", "float('nan')", "'fine'", "sys.exit(3)"])
def test_a_scorer_that_gives_no_score_from_0_to_1_is_unsound(assay_inline: AssayInline, value: str) -> None:
    own = f"import sys\nfrom assay.plugin.scorer import Judgement\ndef grade(output, expected): return Judgement({value})\n"
    assay_inline.write("own.py", own)
    assay_inline.write("s.yaml", suite(numbers(1), benchmark={"scorer": "own.py:grade"}))
    assert faults(assay_inline, 1) == {"unscored": ["c0"]}
