from __future__ import annotations

import json

from tests.command import AssayInline
from tests.suites.project import numbers, suite


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


def test_a_check_in_words_ends_with_a_verdict(assay_inline: AssayInline) -> None:
    assay_inline.write("s.yaml", suite(numbers(2)))
    done = assay_inline("suite", "check", "s.yaml")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "s is sound: the right answers get 1.0, empty ones 0.0 (2 cases)."
