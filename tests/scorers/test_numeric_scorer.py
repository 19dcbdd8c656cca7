from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.computing import at_most
from tests.scorers.asking import judgement, made, shown, value


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("She pays $1,234.50 in all.", 1234.5),
        ("16 - 3 = 13, so the answer is 26", "16 - 3 = <<16-3=13>>13\n#### 26"),
        ("#### 72\n(I took 3 steps.)", 72),
        ("#### 2. Add them up\nThat makes 42", 42),
        ("#### The answer is 7\nchecked twice: 2", 7),
        (r"Hence \boxed{\frac{3}{4}} by lemma 9.", 0.75),
        (r"\boxed{1{,}000}", 1000),
        (r"$\dfrac12$", "0.5"),
        ("x = −5", -5),
        ("between 5-10", 10),
        ("- 3 apples", 3),
        ("a loss of -$5", "-5"),
        ("a loss of $-5", "-5"),
        ("3/4", 0.75),
        ("1 3/4 cups", 1.75),
        ("6.02e23 or so", 6.02e23),
        ("1.5 × 10^3 m", 1500),
        ("about 50%", 50),
        ("about 50 %", 0.5),
        ("0.5", "50%"),
        ("1,2,3", 3),
        ("12\u202f345\u202f678", 12345678),
        ("答案是42。", "42"),
        ("**18**", 18),
        ("-.5", -0.5),
        (18.0, "18"),
        ({"answer": 18}, 18),
        ("four, or 4", ["three", "3", "4"]),
    ],
)
def test_the_answer_is_found_however_it_is_written(output: object, expected: object) -> None:
    assert value("numeric", output, expected) == 1.0


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1000001", "1000000"),
        ("5", "-5"),
        ("3/0", 5),
        ("H2O", 2),
        (float("nan"), 1),
        (True, 1),
        ("none", 0),
    ],
)
def test_another_number_or_none_is_wrong(output: object, expected: object) -> None:
    assert value("numeric", output, expected) == 0.0


def test_numbers_beyond_all_bounds_are_wrong() -> None:
    assert value("numeric", 10**5000, 1) == 0.0
    assert value("numeric", "9" * 5000, 1) == 0.0


def test_a_wrong_judgement_says_which_number_was_read() -> None:
    assert judgement("numeric", "it is 41", 42).reason == "found 41"


def test_tolerances_widen_what_is_right() -> None:
    assert value("numeric", "3.14", 3.14159) == 0.0
    assert value("numeric", "3.14", 3.14159, tolerance=0.01) == 1.0
    assert value("numeric", "1000001", 1000000, relative=1e-5) == 1.0
    assert value("numeric", "3.1415927", 3.14159265358979) == 1.0


def test_the_first_number_can_be_asked_for() -> None:
    assert value("numeric", "7 of 10", 7, which="first") == 1.0
    assert value("numeric", "7 of 10", 7) == 0.0


def test_an_expected_output_without_a_number_leaves_the_case_unscored() -> None:
    assert value("numeric", "5", "many") is None


@given(st.integers(-(10**14), 10**14))
def test_whole_numbers_survive_thousands_separators_and_prose(number: int) -> None:
    text = f"In the end she has {number:,} of them."
    assert value("numeric", text, number) == 1.0
    assert value("numeric", text, number + 1) == 0.0


@given(
    st.floats(-1e12, 1e12, allow_nan=False),
    st.sampled_from(["{:.6f}", "{:e}", "{:,.6f}", "{!r}", "${:,.6f}"]),
)
def test_formatted_numbers_are_read_back(number: float, form: str) -> None:
    assert value("numeric", "so " + form.format(number), number, tolerance=1e-5) == 1.0


@given(st.text(alphabet="0123456789.,/-+−–e$%{}\\#[] boxdfrac^×*x\n_\ud800", max_size=200))
def test_junk_is_judged_0_or_1_and_never_fails(text: str) -> None:
    assert value("numeric", text, 5) in (0.0, 1.0)


def test_1300_outputs_are_judged_well_within_half_a_second() -> None:
    text = (
        "Janet sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs and makes 9 * 2 = $<<9*2=18>>18 a day. " * 4
        + "\n#### 18"
    )
    scorer, judged = made("numeric"), shown(text, text)
    with at_most(0.5):
        for _ in range(1300):
            scorer.score(judged)


@pytest.mark.parametrize("piece", ["1,", "9", "1/", "1 1/", "- ", "\\frac{1}", "####", "#### 1. x\n", "$", "e1", "{,}\\", "\\boxed{", "1,000", "1_", "x10^", " "])  # fmt: skip
def test_no_output_of_100_kb_takes_long(piece: str) -> None:
    with at_most(0.5):
        assert value("numeric", piece * (100_000 // len(piece)), "17") == 0.0
