from __future__ import annotations

import pytest
from tests.sim_llm.asking import OPENAI, openai_text, posts, quick, said

from assay.simulator import SimServer
from assay.simulator.arithmetic import sum_in


def answers(server: SimServer, prompts: list[str]) -> list[str]:
    responses = posts(server, OPENAI, [said(prompt) for prompt in prompts])
    return [response.json()["choices"][0]["message"]["content"] for response in responses]


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("12 + 7", "19"),
        ("What is 3*4?", "12"),
        ("What is 9-4?", "5"),
        ("Please calculate 9-4.", "5"),
        ("9-4", "5"),
        ("Compute 2 + 3 * 4 - 1, please.", "13"),
        ("10 / 4 = ", "2.5"),
        ("How much is 6 x 7 in total?", "42"),
        ("1234567.25 + 1", "1234568.25"),
        ("A train has 3 cars. [[expected: 42]]", "42"),
        ("[[expected: several words here]]", "several words here"),
        ("[[expected: [1, 2]]]", "[1, 2]"),
    ],
)
def test_a_perfect_model_knows_the_answer(prompt: str, answer: str) -> None:
    with quick(skill=1.0) as server:
        assert openai_text(server, prompt) == answer


@pytest.mark.parametrize("prompt", ["12 + 7", "[[expected: yes]]", "[[expected: B]]", "[[expected: Lima]]"])
def test_a_hopeless_model_is_always_wrong_but_says_something(prompt: str) -> None:
    right = {"12 + 7": "19"}.get(prompt, prompt[12:-2])
    with quick(skill=0.0) as server:
        given = answers(server, [prompt] * 10)

    assert all(given)
    assert right not in given


def test_the_share_of_right_answers_is_the_skill() -> None:
    prompts = [f"What is {n} + {n}?" for n in range(400)]
    with quick(skill=0.8) as server:
        given = answers(server, prompts)

    right = sum(answer == str(2 * n) for n, answer in enumerate(given))
    assert 0.74 <= right / 400 <= 0.86


def test_repetitions_vary_and_a_new_server_with_the_same_seed_repeats_them() -> None:
    prompts = ["What is 5 + 6?", "Say something."] * 15
    with quick(skill=0.5) as server:
        first = answers(server, prompts)
    with quick(skill=0.5) as server:
        again = answers(server, prompts)
    with quick(skill=0.5, seed=2) as server:
        other = answers(server, prompts)

    assert len(set(first[::2])) > 1
    assert len(set(first[1::2])) > 1
    assert again == first
    assert other != first


def test_a_seed_in_the_request_fixes_the_answer() -> None:
    with quick(skill=0.5) as server:
        answers = {openai_text(server, "What is 5 + 6?", seed=3) for _ in range(8)}
    assert len(answers) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tell me a story.",
        "born on 2024-01-05",
        "1-2 sentences",
        "v1.2 and 3",
        "see a/b or 1/2 of it",
        "1/0?",
    ],
)
def test_what_only_looks_like_a_sum_is_none(text: str) -> None:
    assert sum_in(text) is None


def test_a_long_row_of_digits_takes_no_time() -> None:
    assert sum_in("1" * 1_000_000) is None
