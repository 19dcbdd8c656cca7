"""Samples compared line by line: the method, testable from outside."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.command import COMMAND
from tests.computing import at_most
from tests.wording import Wording

from assay.analysis.comparison.json_lines import answer_line

KEYS = {"effect", "ci", "p", "verdict", "method"}


def ask(*lines: str | bytes, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    text = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n"
    return subprocess.run(
        [COMMAND, "compare", "--lines", *options], input=text, capture_output=True, timeout=60
    )


def line(kind: str, a: Any, b: Any, paired: bool = False) -> str:
    return json.dumps({"kind": kind, "a": a, "b": b, "paired": paired})


def answer(kind: str, a: Any, b: Any, paired: bool = False) -> dict[str, Any]:
    return answer_line(line(kind, a, b, paired), 1)


def test_each_line_gets_an_answer_in_its_place() -> None:
    slow = [2.0 + i / 100 for i in range(10)]
    quick = [1.0 + i / 100 for i in range(10)]
    wide = [float(i) for i in range(1, 11)]
    done = ask(line("latency", quick, slow), line("latency", slow, quick), line("latency", wide, wide))

    answers = [json.loads(text) for text in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [one["verdict"] for one in answers] == ["worse", "better", "unsure"]
    assert all(set(one) >= KEYS for one in answers)
    assert answers[0]["effect"] == pytest.approx(1.96, abs=0.05)
    assert answers[0]["ci"][0] < answers[0]["effect"] < answers[0]["ci"][1]


def test_accuracy_is_compared_by_the_difference_of_case_means(wording: Wording) -> None:
    a, b = [[1, 0, 0]] * 20 + [[1, 1, 1]] * 20, [[1, 1, 0]] * 20 + [[1, 1, 1]] * 20
    for paired in (True, False):
        one = answer("accuracy", a, b, paired)
        assert one["effect"] == pytest.approx(1 / 6)
    paired_one = answer("accuracy", a, b, paired=True)
    assert paired_one["verdict"] == "better"
    assert paired_one["method"] != answer("accuracy", a, b, paired=False)["method"]
    wording(paired_one["method"])


def test_repetitions_of_a_case_do_not_count_as_cases() -> None:
    once = answer("accuracy", [0, 1] * 10, [1, 1] * 10)
    often = answer("accuracy", [[0] * 50, [1] * 50] * 10, [[1] * 50, [1] * 50] * 10)
    assert often["p"] == pytest.approx(once["p"], rel=0.2)


def test_pairs_are_compared_pair_by_pair() -> None:
    machine = np.exp(np.linspace(0, 3, 12))
    jitter = np.random.default_rng(1).normal(0, 0.02, 12)
    a, b = machine.tolist(), (1.2 * machine * np.exp(jitter)).tolist()
    assert answer("latency", a, b, paired=True)["verdict"] == "worse"
    assert answer("latency", a, b, paired=False)["verdict"] == "unsure"


def test_a_lasting_sameness_is_reported() -> None:
    chance = np.random.default_rng(2)
    a, b = chance.lognormal(0, 0.01, (2, 30)).tolist()
    assert answer("latency", a, b)["verdict"] == "same"
    scores = [[1, 1, 0]] * 1000
    assert answer("accuracy", scores, scores, paired=True)["verdict"] == "same"


def test_a_tolerance_may_be_given() -> None:
    chance = np.random.default_rng(2)
    question = line(
        "latency", chance.lognormal(0, 0.01, 30).tolist(), chance.lognormal(0.05, 0.01, 30).tolist()
    )
    assert json.loads(ask(question).stdout)["verdict"] == "worse"
    assert json.loads(ask(question, options=("--tolerance", "10%")).stdout)["verdict"] == "same"


def test_unsure_says_how_many_units_would_settle_it(wording: Wording) -> None:
    chance = np.random.default_rng(3)
    one = answer("latency", chance.lognormal(0, 0.2, 10).tolist(), chance.lognormal(0.05, 0.2, 10).tolist())
    assert one["verdict"] == "unsure"
    assert "140" in one["reason"]
    wording(one["reason"])


@pytest.mark.parametrize(
    ("a", "b", "paired", "numbers"),
    [
        ([1.0], [2.0], False, ["5"]),
        ([1.0, 2.0], [3.0, 4.0], False, ["2", "5"]),
        ([1.0] * 5, [2.0] * 5, True, ["5", "6"]),
        ([], [], False, ["0", "5"]),
        ([float("nan")] * 9, [1.0] * 9, True, ["0", "6"]),
        ([1.0, None] * 5, [None, 1.0] * 5, True, ["0", "6"]),
        ([0.0, 1, 2, 3, 4, 5], [9.0, 9, 9, 9, 9, 9], False, []),
        ([-1.0, 1, 2, 3, 4, 5], [9.0, 9, 9, 9, 9, 9], True, []),
    ],
)  # fmt: skip
def test_times_that_cannot_be_compared_are_unsure_with_the_reason(
    a: list[float], b: list[float], paired: bool, numbers: list[str], wording: Wording
) -> None:
    one = answer("latency", a, b, paired)
    assert (one["verdict"], re.findall(r"\d+", one["reason"])) == ("unsure", numbers)
    wording(one["reason"])


def test_what_was_left_out_is_counted() -> None:
    one = answer("latency", [1.0, None, 2, 3, 4, 5, 6], [1.0, 2, 3, 4, 5, 6, float("inf")])
    assert one["left_out"] == 2


def test_numbers_at_the_edge_of_what_fits_are_compared() -> None:
    one = answer("latency", [1e-300] * 6, [1e300] * 6)
    assert one["verdict"] == "worse"
    assert one["effect"] > 1e300


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", ["JSON"]),
        ("[1, 2]", ["JSON"]),
        ("[" * 100_000, ["JSON"]),
        (b"\xff\xfe", ["JSON"]),
        ('{"kind": "speed", "a": [], "b": []}', ["'kind'", '"speed"', '"latency"', '"accuracy"']),
        ('{"kind": [], "a": [], "b": []}', ["'kind'", "[]"]),
        ('{"kind": "latency", "a": [1]}', ["'b'", "null"]),
        ('{"kind": "latency", "a": ["1 ms"], "b": [1]}', ["'a[0]'", '"1 ms"']),
        ('{"kind": "latency", "a": [true], "b": [1]}', ["'a[0]'", "true"]),
        ('{"kind": "latency", "a": [1], "b": [1e999, {}]}', ["'b[1]'", "{}"]),
        ('{"kind": "latency", "a": [1' + "0" * 400 + '], "b": [1]}', ["'a[0]'"]),
        ('{"kind": "accuracy", "a": [[0, 2]], "b": [[1]]}', ["'a[0]'", "2", "0", "1"]),
        ('{"kind": "accuracy", "a": [[[1]]], "b": [[1]]}', ["'a[0]'", "[1]"]),
        ('{"kind": "latency", "a": [1, 2], "b": [1], "paired": true}', ["2", "1"]),
        ('{"kind": "latency", "a": [1], "b": [1], "paired": "yes"}', ["'paired'", '"yes"', "true", "false"]),
    ],
    ids=["nonsense", "list", "nested", "bytes", "kind", "kind list", "no b", "text", "true", "object", "large",
         "score", "nested score", "no pairs", "paired"],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_answered_with_what_is_wrong(
    text: str | bytes, told: list[str], wording: Wording
) -> None:
    one = answer_line(text, 7)
    assert one["line"] == 7
    assert "7" in one["error"].partition(": ")[0]
    assert all(part in one["error"].partition(": ")[2] for part in told)
    assert one["verdict"] == "unsure"
    wording(one["error"])


def test_a_wrong_line_does_not_keep_the_others_from_being_answered_and_ends_with_2() -> None:
    good = line("latency", [1.0] * 6, [1.0] * 6)
    done = ask(good, "", "nonsense", good)
    answers = [json.loads(text) for text in done.stdout.splitlines()]
    assert done.returncode == 2
    assert ["error" in one for one in answers] == [False, True, False]
    assert answers[1]["line"] == 3


def test_sides_are_read_from_standard_input_only(wording: Wording) -> None:
    done = subprocess.run([COMMAND, "compare", "x", "--lines"], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 2
    assert b"--lines" in done.stderr
    wording(done.stderr.decode(), near="--lines")


def test_without_lines_two_sides_are_needed(wording: Wording) -> None:
    done = subprocess.run([COMMAND, "compare", "x"], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 2
    assert b"--lines" in done.stderr
    wording(done.stderr.decode(), near="--lines")


def test_an_answer_comes_before_the_next_question_is_asked() -> None:
    question = line("latency", [1.0] * 6, [1.0] * 6).encode() + b"\n"
    with subprocess.Popen(
        [COMMAND, "compare", "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for _ in range(2):
            asked.stdin.write(question)
            asked.stdin.flush()
            assert json.loads(asked.stdout.readline())["verdict"] == "same"
        asked.stdin.close()


def test_a_thousand_lines_take_a_second_of_computing() -> None:
    chance = np.random.default_rng(1)
    lines = []
    for i in range(500):
        times, scores = chance.lognormal(0, 1, (2, 20)), chance.binomial(1, 0.8, (2, 100, 3))
        lines.append(line("latency", times[0].tolist(), times[1].tolist(), bool(i % 2)))
        lines.append(line("accuracy", scores[0].tolist(), scores[1].tolist(), bool(i % 2)))
    with at_most(2):
        for number, text in enumerate(lines):
            answer_line(text, number)


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)
documents = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["latency", "accuracy"]) | anything,
        "a": st.lists(anything, max_size=8) | st.lists(st.floats(0, 1), max_size=12),
        "b": st.lists(anything, max_size=8) | st.lists(st.floats(0, 1), max_size=12),
    },
    optional={"paired": st.booleans() | anything},
)


@settings(max_examples=300, deadline=None)
@given(documents | anything)
def test_whatever_is_asked_the_answer_is_a_document_with_a_verdict(document: Any) -> None:
    one = answer_line(json.dumps(document), 1)
    assert set(one) >= KEYS
    assert one["verdict"] in ("better", "worse", "same", "unsure")
    json.dumps(one, allow_nan=False)
