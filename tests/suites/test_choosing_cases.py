from __future__ import annotations

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, suite
from tests.wording import Wording

CASES = [
    {"id": "a", "input": "1", "expected": "1", "tags": ["easy"]},
    {"id": "b", "input": "2", "expected": "2", "tags": ["hard", "new"]},
    {"id": "c", "input": "3", "expected": "4", "tags": ["hard"]},
    {"id": "d", "input": "4", "expected": "5"},
]


@pytest.fixture
def puzzles(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("agents.py", "def echo(text): return text\n")
    agent = {"name": "echo", "type": "python", "target": "agents.py:echo"}
    assay_inline.write("s.yaml", suite(CASES, [agent]))
    return assay_inline


def asked(assay: AssayInline, *options: str) -> list[str]:
    assert assay.run_inline("s.yaml", "-q", *options).code == 0
    return [one.case for one in Stored(assay.folder).measured]


@pytest.mark.parametrize(
    ("options", "cases"),
    [
        (["--limit", "2"], ["a", "b"]),
        (["--case", "d", "--case", "b"], ["b", "d"]),
        (["--tag", "hard"], ["b", "c"]),
        (["--tag", "easy", "--tag", "new"], ["a", "b"]),
        (["--tag", "hard", "--limit", "1"], ["b"]),
    ],
)
def test_options_choose_cases(puzzles: AssayInline, options: list[str], cases: list[str]) -> None:
    assert asked(puzzles, *options) == cases


def test_only_what_was_not_passed_is_asked_again(puzzles: AssayInline) -> None:
    asked(puzzles)
    assert asked(puzzles, "--failed", "last") == ["c", "d"]


def test_nothing_is_left_of_a_run_in_which_all_was_passed(puzzles: AssayInline, wording: Wording) -> None:
    asked(puzzles, "--limit", "2")
    refusal = puzzles("run", "s.yaml", "--failed", "last").refusal
    run = Stored(puzzles.folder).run.id
    assert run in refusal
    wording(refusal.replace(run, "RUN"))


def test_a_choice_that_leaves_no_case_is_refused(puzzles: AssayInline, wording: Wording) -> None:
    refusal = puzzles("run", "s.yaml", "--tag", "nothing").refusal
    assert all(name in refusal for name in ("'nothing'", "'s'", "easy, hard, new"))
    wording(refusal)


def test_options_of_suites_are_refused_for_experiments(puzzles: AssayInline, wording: Wording) -> None:
    refusal = puzzles("run", "noop", "--limit", "3").refusal
    assert "--limit" in refusal
    wording(refusal)
