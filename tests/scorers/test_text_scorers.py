"""exact, text, contains, regex."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scorers.asking import judgement, made, shown, value
from tests.wording import Wording

from assay.errors import PlanError


@pytest.mark.parametrize(
    ("output", "expected", "score"),
    [
        (" Paris\n", "Paris", 1.0),
        ("paris", "Paris", 0.0),
        ("4", 4, 1.0),
        ("Lyon", ["Paris", "Lyon"], 1.0),
        ("Rome", ["Paris", "Lyon"], 0.0),
        ({"a": [1, 2]}, {"a": [1, 2]}, 1.0),
        ([1, 2], [1, 2], 1.0),
        ((1, 2), [1, 2], 1.0),
        (True, 1, 0.0),
        (None, "None", 0.0),
        ("", "", 1.0),
    ],
)
def test_exact_compares_texts_without_space_around_and_other_values_as_values(
    output: object, expected: object, score: float
) -> None:
    assert value("exact", output, expected) == score


def test_exact_may_leave_case_aside() -> None:
    assert value("exact", "STRASSE", "straße", case_sensitive=False) == 1.0


@given(st.text())
def test_a_text_is_exactly_itself(text: str) -> None:
    assert value("exact", text, text) == 1.0


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_value_is_exactly_itself(data: object) -> None:
    assert value("exact", {"value": data}, {"value": data}) == 1.0


@pytest.mark.parametrize("scorer", ["exact", "text", "contains", "regex", "numeric", "choice", "json", "f1", "rouge_l", "edit"])  # fmt: skip
def test_a_case_without_expected_output_is_unscored_and_says_so(scorer: str) -> None:
    found = judgement(scorer, "something", None)
    assert found.value is None
    assert found.reason


@pytest.mark.parametrize("scorer", ["exact", "text", "contains", "regex", "numeric", "choice", "json", "f1", "rouge_l", "edit"])  # fmt: skip
def test_no_output_is_wrong_not_unscored(scorer: str) -> None:
    assert value(scorer, None, "5" if scorer == "numeric" else "B") == 0.0


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("The  Eiffel-Tower!", "eiffeltower"),
        ("“Yes.”", "yes"),
        ("ﬁne", "FINE"),
        ("a cat and the dog", "cat and dog"),
        ("CAFÉ", "cafe\u0301"),
        ("1,234", "1234"),
    ],
)
def test_normalised_text_leaves_case_marks_articles_and_spacing_aside(output: str, expected: str) -> None:
    assert value("text", output, expected) == 1.0


@pytest.mark.parametrize(("output", "expected"), [("-5", "5"), ("3.14", "314"), ("-", "+"), ("कि", "का")])
def test_normalised_text_keeps_what_changes_the_meaning(output: str, expected: str) -> None:
    assert value("text", output, expected) == 0.0


def test_articles_may_be_kept() -> None:
    assert value("text", "the who", "who", drop_articles=False) == 0.0


def test_contains_all_names_what_is_missing() -> None:
    found = judgement("contains", "Paris and Lyon", ["paris", "Nice"])
    assert (found.value, found.reason) == (0.0, "missing: 'Nice'")


@pytest.mark.parametrize(
    ("options", "score"),
    [
        ({"mode": "any"}, 1.0),
        ({"mode": "all"}, 0.0),
        ({"texts": "LYON"}, 1.0),
        ({"texts": "LYON", "case_sensitive": True}, 0.0),
    ],
)
def test_contains_looks_for_any_or_all_of_its_texts(options: dict[str, object], score: float) -> None:
    assert value("contains", "Paris and Lyon", ["paris", "Nice"], **options) == score


def test_regex_takes_its_pattern_from_the_option_or_from_the_case() -> None:
    assert value("regex", "order 4711", None, pattern=r"order \d{4}") == 1.0
    assert value("regex", "order 4711", r"^\d+$") == 0.0
    assert value("regex", "ORDER", "order", ignorecase=True) == 1.0
    assert value("regex", "order 4711", r"order", mode="fullmatch") == 0.0


def test_a_case_whose_pattern_is_broken_is_unscored(wording: Wording) -> None:
    found = judgement("regex", "text", "(")
    assert found.value is None
    wording(found.reason.partition(": ")[0])


def test_a_catastrophic_pattern_is_unscored_in_bounded_time_and_the_next_match_works(
    wording: Wording,
) -> None:
    scorer = made("regex", pattern="(a+)+b", seconds=2)
    start = time.monotonic()
    found = scorer.score(shown("a" * 60))
    assert time.monotonic() - start < 30
    assert found.value is None  # type: ignore[union-attr]
    assert "2 s" in found.reason  # type: ignore[union-attr]
    wording(found.reason)  # type: ignore[union-attr]
    assert scorer.score(shown("aaab")).value == 1.0  # type: ignore[union-attr]


def test_a_pattern_that_is_quadratic_on_a_long_output_is_bounded_too() -> None:
    start = time.monotonic()
    assert value("regex", "a" * 300_000, None, pattern="a*b", seconds=0.2) is None
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("scorer", "options", "told"),
    [
        ("exact", {"case_sensitive": "no"}, "case_sensitive"),
        ("contains", {"mode": "most"}, "mode"),
        ("contains", {"texts": []}, "texts"),
        ("regex", {"pattern": "("}, "pattern"),
        ("regex", {"pattern": 5}, "pattern"),
        ("numeric", {"tolerance": -1}, "tolerance"),
        ("numeric", {"which": "middle"}, "which"),
        ("choice", {"choices": ["A"]}, "choices"),
        ("json", {"tolerance": float("nan")}, "tolerance"),
        ("json_schema", {"schema": {"type": "nonsense"}}, "schema"),
        ("tool_calls", {"order": "loose"}, "order"),
        ("f1", {"threshold": 2}, "threshold"),
        ("code", {"seconds": 0}, "seconds"),
        ("embedding", {"model": "unheard-of"}, "model"),
        ("rubric", {"criteria": []}, "criteria"),
        ("judge", {"agent": "gpt"}, "agent"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(
    scorer: str, options: dict[str, object], told: str
) -> None:
    with pytest.raises(PlanError, match=f"'{scorer}'.*'{told}'"):
        made(scorer, **options)


def test_an_option_that_a_scorer_does_not_have_is_refused() -> None:
    with pytest.raises(PlanError, match="'exact'"):
        made("exact", colour="red")
