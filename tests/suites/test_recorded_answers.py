"""Answers that were made earlier, judged now: a data set of the size of a public one."""

from __future__ import annotations

import json
import random

import pytest
from tests.command import AssayInline
from tests.suites.project import QUICK, Stored, suite

QUESTIONS = 1300


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_large_set_of_recorded_answers_is_judged_in_no_time(assay_inline: AssayInline) -> None:
    chance = random.Random(4)
    numbers = [chance.randint(1, 9999) for _ in range(QUESTIONS)]
    is_right = [chance.random() < 0.8 for _ in numbers]
    cases: list[dict[str, object]] = [
        {"id": f"q{i}", "question": f"How many? {n}", "answer": f"Counting on.\n#### {n:,}"}
        for i, n in enumerate(numbers)
    ]
    answers: list[dict[str, object]] = [
        {"id": f"q{i}", "output": f"Of 12 I take some, so it is ${n if right else n + 1}.00 in all."}
        for i, (n, right) in enumerate(zip(numbers, is_right, strict=True))
    ]
    assay_inline.write("cases.jsonl", lines(cases))
    assay_inline.write("answers.jsonl", lines(answers))
    agent = {"name": "past", "type": "recorded", "answers": "answers.jsonl"}
    benchmark = {"scorer": "numeric", "iterations": QUICK}
    assay_inline.write("s.yaml", suite("cases.jsonl", [agent], benchmark=benchmark))
    done = assay_inline("run", "s.yaml", "--json")
    accuracy = done.json["trials"][0]["ratings"]["accuracy"]["value"]
    assert accuracy == pytest.approx(sum(is_right) / QUESTIONS)
    stored = Stored(assay_inline.folder)
    assert stored.counts() == {"ok": QUESTIONS}
    began, ended = (f(one.started for one in stored.measured) for f in (min, max))
    assert ended - began < 30
