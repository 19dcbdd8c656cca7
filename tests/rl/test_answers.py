from __future__ import annotations

import pytest

from assay.builtin.experiments.rl.tasks import TASKS
from assay.builtin.experiments.rl.trl_backend import cut_answer, read_answer


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("3 <end>", [3, 6]),
        ("3 <end> <pad>", [3, 6]),
        ("<pad> <end>", []),
        ("3 <pad> <end>", []),
        ("three", []),
        ("", []),
    ],
)
def test_an_answer_with_a_word_that_is_none_of_the_task_is_no_answer(text: str, tokens: list[int]) -> None:
    assert read_answer(TASKS["arithmetic"], text) == tokens


def test_padding_after_the_end_is_dropped_and_padding_that_was_sampled_is_kept() -> None:
    assert cut_answer([7, 3, 6, 7, 7], {6}, with_end=True) == [7, 3, 6]
    assert cut_answer([3, 7, 7], {6}, with_end=True) == [3, 7, 7]
