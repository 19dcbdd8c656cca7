"""rubric, and your own functions as scorers."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
from tests.scorers.asking import judgement, made, shown, value

from assay.errors import LookupFailed, PlanError

CRITERIA = [
    {"name": "correctness", "weight": 3, "scorer": {"name": "contains", "texts": ["Paris"]}},
    {"name": "completeness", "weight": 1, "contains": ["Seine", "France"]},
    {"name": "relevance", "regex": "^(?!.*cheese)"},
]


def test_a_rubric_weighs_its_criteria_and_shows_each_under_its_name() -> None:
    found = judgement("rubric", "Paris, on the Seine", None, criteria=CRITERIA)
    assert found.value == pytest.approx(4 / 5)
    assert dict(found.parts) == {"correctness": 1.0, "completeness": 0.0, "relevance": 1.0}
    assert found.reason == "completeness: missing: 'France'"


def test_a_rubric_with_a_criterion_that_cannot_be_judged_is_unscored_and_shows_the_others() -> None:
    criteria = [{"numeric": 5}, {"name": "look", "scorer": "tests.scorers.own_scorers:cannot_say"}]
    found = judgement("rubric", "It is 5.", None, criteria=criteria)
    assert found.value is None
    assert dict(found.parts) == {"numeric": 1.0, "look": None}


def test_a_criterion_without_weight_that_cannot_be_judged_leaves_the_rubric_scored() -> None:
    look = {"name": "look", "weight": 0, "scorer": "tests.scorers.own_scorers:cannot_say"}
    assert value("rubric", "It is 5.", None, criteria=[{"numeric": 5}, look]) == 1.0


def test_a_rubric_of_which_nothing_can_be_judged_is_unscored() -> None:
    assert value("rubric", "x", None, criteria=[{"scorer": "exact"}]) is None


def test_a_criterion_whose_scorer_fails_says_so() -> None:
    found = judgement("rubric", None, "x", criteria=[{"scorer": "tests.scorers.own_scorers:same_length"}])
    assert found.value is None
    assert "TypeError" in found.reason


def test_a_criterion_may_have_its_own_expected_output_and_a_rubric_rubrics() -> None:
    inner = {"name": "rubric", "criteria": [{"name": "city", "exact": "Paris"}]}
    found = judgement("rubric", "Paris", "Rome", criteria=[{"name": "outer", "scorer": inner}])
    assert dict(found.parts) == {"outer": 1.0, "outer.city": 1.0}
    assert value("rubric", "Paris", "Rome", criteria=[{"scorer": "exact", "expected": "Paris"}]) == 1.0


def test_a_rubric_waits_for_scorers_that_have_to_be_awaited() -> None:
    criteria = [{"exact": "Paris"}, {"name": "slow", "scorer": "tests.scorers.own_scorers:later"}]
    result = made("rubric", criteria=criteria).score(shown("Paris"))
    assert inspect.iscoroutine(result)
    assert asyncio.run(result).value == pytest.approx(0.625)


@pytest.mark.parametrize(
    "criteria",
    [
        "exact",
        ["exact"],
        [{"name": "empty"}],
        [{"exact": "a", "regex": "b"}],
        [{"exact": "a"}, {"exact": "b"}],
        [{"exact": "a", "weight": 0}],
        [{"scorer": {"texts": ["a"]}}],
        [{"exact": "a", "weight": -1}],
        [{"regex": "("}],
    ],
)
def test_criteria_that_make_no_sense_are_refused(criteria: object) -> None:
    with pytest.raises(PlanError):
        made("rubric", criteria=criteria)


def test_a_criterion_of_an_unknown_scorer_is_refused() -> None:
    with pytest.raises(LookupFailed, match="exakt"):
        made("rubric", criteria=[{"exakt": "a"}])


def test_a_function_of_a_module_is_a_scorer() -> None:
    assert value("tests.scorers.own_scorers:same_length", "abc", "xyz") == 1.0
    assert value("tests.scorers.own_scorers:names_the_case", ">1", None, prefix=">") == 1.0
    assert value("tests.scorers.own_scorers:cannot_say", "abc", "xyz") is None


def test_a_function_of_a_file_is_a_scorer(tmp_path: Path, own_names: None) -> None:
    file = tmp_path / "my_scorers.py"
    file.write_text("def shout(output, expected):\n    return 0.5 if output.isupper() else 0\n")
    assert value(f"{file}::shout", "HELLO", None) == 0.5


def test_an_async_function_is_awaited() -> None:
    result = made("tests.scorers.own_scorers:later").score(shown("a", "b"))
    assert inspect.iscoroutine(result)
    assert asyncio.run(result).value == 0.25
