"""Answers that were made earlier, judged now: their recorded times count, those of looking them up do not."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from functools import partial
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import QUICK, Stored, numbers, python_agent, suite
from tests.wording import Wording

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
    done = assay_inline.run_inline("s.yaml", "--json")
    accuracy = done.json["trials"][0]["ratings"]["accuracy"]["value"]
    assert accuracy == pytest.approx(sum(is_right) / QUESTIONS)
    stored = Stored(assay_inline.folder)
    assert stored.counts() == {"ok": QUESTIONS}
    began, ended = (f(one.started for one in stored.measured) for f in (min, max))
    assert ended - began < 30


class Recordings:
    """A suite with agents whose answers are written to files."""

    def __init__(self, assay: AssayInline, cases: int = 12) -> None:
        self.assay, self.cases = assay, cases
        self.agents: list[dict[str, Any]] = []

    def add(self, name: str, *repetitions: dict[str, Any], seconds: float | None = None) -> None:
        """An agent that answers rightly in each repetition but for what is changed there, later cases more slowly."""
        rows = [
            {
                "id": f"c{n}",
                "output": str(n),
                **({} if seconds is None else {"seconds": seconds * (n + 1)}),
                **changes.get(f"c{n}", {}),
            }
            for changes in repetitions or ({},)
            for n in range(self.cases)
        ]
        self.assay.write(f"{name}.jsonl", lines(rows))
        self.agents.append({"name": name, "type": "recorded", "answers": f"{name}.jsonl"})

    def run(self, repetitions: int = 1, **benchmark: Any) -> dict[str, dict[str, Any]]:
        """The trials by the names of their agents."""
        iterations = {"iterations": {"measured": repetitions}, **benchmark}
        self.assay.write("s.yaml", suite(numbers(self.cases), self.agents, benchmark=iterations))
        # Only workers can be held to limits.
        start = partial(self.assay, "run") if "limits" in benchmark else self.assay.run_inline
        self.document = start("s.yaml", "--json").json
        return {trial["agent"]["name"]: trial for trial in self.document["trials"]}

    def remarks(self, code: str) -> list[str]:
        return [doubt["message"] for doubt in self.document["warnings"] if doubt["code"] == code]


@pytest.fixture
def recordings(assay_inline: AssayInline) -> Recordings:
    return Recordings(assay_inline)


def test_the_recorded_seconds_are_the_times_and_nothing_is_measured(recordings: Recordings) -> None:
    recordings.add("fast", seconds=0.5)
    recordings.add("slow", seconds=1.0)
    found = recordings.run()
    assert {name: trial["metrics"]["seconds"]["median"] for name, trial in found.items()} == {
        "fast": 3.25,
        "slow": 6.5,
    }
    assert [found["fast"]["metrics"]["seconds"]["kind"], found["fast"]["recorded"]] == ["recorded", True]
    assert found["fast"]["metrics"].keys() == {"seconds", "score", "score.exact"}
    assert found["fast"]["ratings"]["speed"]["value"] > found["slow"]["ratings"]["speed"]["value"]
    assert "(recorded)" in recordings.assay("show", "last").out


def test_in_older_runs_the_recorded_seconds_count_instead_of_those_of_looking_up(
    recordings: Recordings,
) -> None:
    recordings.add("past", seconds=0.5)
    recordings.add("untimed")
    recordings.run()
    with sqlite3.connect(recordings.assay.folder / ".assay" / "assay.db") as database:
        database.execute("UPDATE measurements SET value = 5e-7 WHERE metric = 'seconds'")
    shown = recordings.assay("show", "last", "--json").json["trials"]
    assert [trial["metrics"].get("seconds", {}).get("median") for trial in shown] == [3.25, None]


def test_recorded_seconds_are_not_waited_for_and_not_forecast(recordings: Recordings) -> None:
    recordings.add("past", seconds=100.0)
    recordings.run()
    planned = recordings.assay.run_inline("s.yaml", "--dry-run", "--json").json
    assert planned["trials"][0]["expected_basis"]["seconds"]["basis"] == "recorded"
    assert planned["trials"][0]["expected_seconds"] == 0.0


def test_recorded_times_are_compared_over_cases_with_a_doubt_beside_them(recordings: Recordings) -> None:
    recordings.add("fast", seconds=0.5)
    recordings.add("slow", seconds=1.0)
    recordings.run()
    compared = recordings.assay("compare", "slow", "fast", "--json").json
    [seconds] = [one for one in compared["comparisons"] if one["metric"] == "seconds"]
    assert (seconds["verdict"], seconds["ratio"]) == ("better", pytest.approx(0.5))
    assert "recorded" in [doubt["code"] for doubt in compared["warnings"]]


def test_recorded_times_are_no_measure_for_measured_ones(recordings: Recordings) -> None:
    recordings.assay.write("agents.py", "def live(text): return text\n")
    recordings.add("past", seconds=0.5)
    recordings.agents.append(python_agent("live"))
    recordings.run()
    compared = recordings.assay("compare", "past", "live", "--json").json
    [seconds] = [one for one in compared["comparisons"] if one["metric"] == "seconds"]
    assert (seconds["verdict"], compared["agents"][0]["winner"]) == ("unsure", None)
    assert "kind" in [doubt["code"] for doubt in compared["warnings"]]
    for metric in ("overall", "speed"):
        [board] = recordings.assay("leaderboard", "--metric", metric, "--json").json
        assert "speed" not in board["dimensions"]
        assert {row["agent"]: (row["recorded"], row["rank"]) for row in board["standings"]} == {
            "past": (True, [1, 2]),
            "live": (False, [1, 2]),
        }


def test_without_recorded_seconds_speed_is_unrated_and_decides_nothing(recordings: Recordings) -> None:
    recordings.add("one")
    recordings.add("other")
    found = recordings.run(rubric={"reference": {"seconds": 1.0}})
    assert [trial["ratings"]["speed"]["value"] for trial in found.values()] == [None, None]
    assert all(trial["metrics"].keys() == {"score", "score.exact"} for trial in found.values())
    assert len(recordings.remarks("recorded")) == 2
    compared = recordings.assay("compare", "one", "other", "--json").json
    assert [one["metric"] for one in compared["comparisons"]] == ["score"]


def test_where_some_answers_have_seconds_it_is_said_of_how_many(
    recordings: Recordings, wording: Wording
) -> None:
    recordings.add("past", {f"c{n}": {"seconds": 2.0} for n in range(8)})
    found = recordings.run(rubric={"reference": {"seconds": 2.0}})
    assert found["past"]["metrics"]["seconds"]["n"] == 8
    assert found["past"]["ratings"]["speed"]["value"] == 0.5
    basis = found["past"]["ratings"]["speed"]["basis"]
    assert {"8", "12"} <= set(re.findall(r"\d+", basis))
    wording(basis)
    [message] = recordings.remarks("recorded")
    assert re.findall(r"\d+", message)[:2] == ["8", "12"]
    wording(message)


def test_several_recorded_answers_are_the_repetitions_of_a_case(recordings: Recordings) -> None:
    recordings.add("past", {}, {"c0": {"output": "?"}}, {f"c{n}": {"output": "?"} for n in range(12)})
    found = recordings.run(repetitions=2)
    assert found["past"]["counts"] == {"ok": 24}
    assert found["past"]["ratings"]["accuracy"]["value"] == pytest.approx(23 / 24)
    assert found["past"]["ratings"]["reliability"]["value"] == pytest.approx(11 / 12)
    assert recordings.remarks("remark") == []


def test_an_answer_that_was_recorded_once_is_not_repeated(recordings: Recordings, wording: Wording) -> None:
    recordings.add("past")
    found = recordings.run(repetitions=3)
    assert (found["past"]["counts"], found["past"]["iterations"]["measured"]) == ({"ok": 12}, 1)
    assert found["past"]["ratings"]["reliability"]["value"] is None
    [message] = recordings.remarks("remark")
    assert re.findall(r"\d+", message) == ["1", "3"]  # recorded, wanted
    wording(message)


def test_cases_are_repeated_as_often_as_answers_are_recorded_for_each(
    recordings: Recordings, wording: Wording
) -> None:
    recordings.add("past", {}, {f"c{n}": {"id": "unused"} for n in range(3, 12)})
    found = recordings.run(repetitions=3)
    assert found["past"]["counts"] == {"ok": 15}
    tries = [(one.case, one.repetition) for one in Stored(recordings.assay.folder).measured]
    assert sorted(tries) == sorted([*((f"c{n}", 0) for n in range(12)), *((f"c{n}", 1) for n in range(3))])
    [message] = recordings.remarks("remark")
    assert re.findall(r"\d+", message) == ["1", "2", "3"]
    wording(message)


def test_recorded_errors_keep_their_cost_and_recorded_times_their_limit(recordings: Recordings) -> None:
    changes = {"c0": {"error": "rate limit", "usd": 0.5}, "c11": {"seconds": 30.0}}
    recordings.add("past", changes, seconds=0.5)
    found = recordings.run(limits={"seconds": 10})
    assert found["past"]["counts"] == {"ok": 10, "failed": 1, "timeout": 1}
    stored = Stored(recordings.assay.folder)
    assert (stored.metric("usd")["c0"], stored.metric("seconds")["c11"]) == (0.5, 30.0)
