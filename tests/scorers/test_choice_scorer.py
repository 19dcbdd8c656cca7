from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.computing import at_most
from tests.scorers.asking import judgement, value

CITIES = {"choices": ["London", "Paris", "Rome", "New York"]}


@pytest.mark.parametrize(
    "output",
    [
        "B",
        "b",
        "B)",
        "(b)",
        "**B**",
        "B. Paris",
        "B\n\nBecause A and C are wrong.",
        "The answer is (B).",
        "The answer is b.",
        "Answer: B because A is too small",
        "**Answer:** B",
        "The correct option is **B**.",
        "Final answer: \\boxed{\\text{B}}",
        "At first the answer is A, I thought. But the answer is B.",
        "A) London\nB) Paris\nC) Rome\n\nThe correct answer is B",
        "Option A is wrong, so B is correct.",
        "I choose option B",
        "I think B",
        "The answer is a bit long to explain, so: (B)",
        "It is Paris, of course.",
    ],
)
def test_the_chosen_letter_is_found_however_it_is_put(output: str) -> None:
    assert value("choice", output, "B", CITIES) == 1.0
    assert value("choice", output, "C", CITIES) == 0.0


@pytest.mark.parametrize(
    "output", ["A or B", "The answer is A or B.", "Both (A) and (B) fit", "Paris and Rome"]
)
def test_an_ambiguous_choice_is_wrong_and_says_what_it_wavers_between(output: str) -> None:
    found = judgement("choice", output, "B", CITIES)
    assert found.value == 0.0
    assert found.reason.startswith("ambiguous: ")


@pytest.mark.parametrize("output", ["", "I do not know", "A dog barks", "Zebra"])
def test_no_choice_is_wrong(output: str) -> None:
    assert value("choice", output, "A") == 0.0


@pytest.mark.parametrize("expected", ["b", "(B)", 1, "Paris", "paris."])
def test_the_expected_choice_is_a_letter_a_number_or_a_text(expected: object) -> None:
    assert value("choice", "B", expected, CITIES) == 1.0


def test_choices_may_be_listed_as_data_sets_do() -> None:
    assert value("choice", "2", "2", {"choices": {"label": ["1", "2"], "text": ["hot", "cold"]}}) == 1.0
    assert value("choice", "cold", "Y", {"choices": {"X": "hot", "Y": "cold"}}) == 1.0
    assert value("choice", "New York", "B", {"choices": ["York", "New York"]}) == 1.0
    assert value("choice", "G", "G", choices=list("ABCDEFGH")) == 1.0


def test_an_expected_output_that_is_no_choice_leaves_the_case_unscored() -> None:
    assert value("choice", "B", "Berlin", CITIES) is None


@given(st.text())
def test_any_text_is_judged_0_or_1(text: str) -> None:
    assert value("choice", text, "B", CITIES) in (0.0, 1.0)


@pytest.mark.parametrize(
    "piece", ["answer" + " " * 1000, "answer is ", "(Q)", "*", "answer\n \n", "Q or ", "\\boxed{"]
)
def test_no_output_of_100_kb_takes_long(piece: str) -> None:
    with at_most(1):
        assert value("choice", piece * (100_000 // len(piece)), "B", CITIES) == 0.0
