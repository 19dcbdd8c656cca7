"""Which answers people are asked to label first."""

from __future__ import annotations

from assay.analysis.review.queue import JudgedAnswer, rank_answers
from assay.model.scored_answer import Uncertainty

PASS_MARK = 0.5


def judge(seq: int, case: str, trial: int = 1, **scores: float) -> JudgedAnswer:
    return JudgedAnswer(
        trial, seq, case, {name.replace("_", "."): value for name, value in scores.items()}, PASS_MARK
    )


def find_reasons(*answers: JudgedAnswer) -> dict[int, Uncertainty]:
    return {answer.seq: reason for answer, reason in rank_answers(answers)}


def test_scorers_that_disagree_about_passing_come_before_everything_else() -> None:
    clear, doubtful = judge(1, "a", score=1.0), judge(2, "b", score=0.5, score_exact=0.0, score_contains=1.0)
    border, flip = judge(3, "c", score=0.6), [judge(4, "d", score=1.0), judge(5, "d", score=0.0)]
    ranked = rank_answers([clear, border, *flip, doubtful])
    assert [reason for _, reason in ranked] == [
        Uncertainty.DISAGREE,
        Uncertainty.FLIP,
        Uncertainty.FLIP,
        Uncertainty.BORDERLINE,
        Uncertainty.SAMPLE,
    ]


def test_scorers_that_differ_on_the_same_side_of_the_pass_mark_agree() -> None:
    assert find_reasons(judge(1, "a", score=0.95, score_x=0.9, score_y=1.0)) == {1: Uncertainty.SAMPLE}


def test_repetitions_of_different_trials_are_no_flips() -> None:
    found = find_reasons(judge(1, "a", trial=1, score=1.0), judge(2, "a", trial=2, score=0.0))
    assert set(found.values()) == {Uncertainty.SAMPLE}


def test_a_scorer_that_knows_only_right_and_wrong_is_never_borderline() -> None:
    strict = JudgedAnswer(1, 1, "a", {"score": 1.0}, 0.9)
    assert [reason for _, reason in rank_answers([strict])] == [Uncertainty.SAMPLE]


def test_whoever_comes_back_finds_the_same_order() -> None:
    answers = [judge(number, f"c{number}", score=1.0) for number in range(50)]
    order = [answer.seq for answer, _ in rank_answers(answers)]
    assert order == [answer.seq for answer, _ in rank_answers(list(reversed(answers)))]
    # At random: a person who labels the first ten has not labelled the first ten cases.
    assert order != sorted(order)
