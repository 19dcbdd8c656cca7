"""`assay gate --require` and `require:` in suites: limits that a run keeps or not, with or without a baseline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.command import AssayInline
from tests.past import Past, suite_of
from tests.suites.project import numbers, suite
from tests.wording import Wording

import assay
from assay.model import RunState
from assay.spec.requirements import parse_requirements
from assay.store.store import Store


@pytest.fixture
def past(assay_inline: AssayInline) -> Iterator[Past]:
    with Store.open(f"sqlite:///{assay_inline.folder}/.assay/assay.db") as store:
        yield Past(store, repetitions=3)


def requirements(assay_inline: AssayInline, *texts: str) -> list[Any]:
    """By the JSON of a gate that may fail."""
    options = [word for text in texts for word in ("--require", text)]
    found: list[Any] = json.loads(assay_inline("gate", *options, "--json").out)["requirements"]
    return found


def test_a_run_is_checked_without_a_baseline(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("1", wrong=6)
    assert assay_inline("gate", "--require", "accuracy>=0.7,p95_seconds<10").code == 0
    done = assay_inline("gate", "--require", "accuracy>=0.9", "--require", "median_seconds<1s")
    assert done.code == 1
    found = requirements(assay_inline, "accuracy>=0.9", "median_seconds<1s")
    assert [one["met"] for one in found] == [False, False]
    headline = done.out.splitlines()[0]
    assert (headline[0], re.findall(r"\d+", headline)) == ("✗", ["2", "2"])
    wording(headline)


def test_every_output_shows_value_limit_and_result(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("1", wrong=6)
    written = ("--markdown", "m.md", "--junit", "j.xml")
    assert assay_inline("gate", "--require", "accuracy>=0.95,completion>=99%", *written).code == 1
    comment = (assay_inline.folder / "m.md").read_text()
    for mark, limit, value in (("❌", "0.95", "0.8"), ("✅", "0.99", "1")):
        (line,) = (line for line in comment.splitlines() if line.startswith(f"- {mark} "))
        assert re.findall(r"[\d.]+", line)[:2] == [limit, value]
        wording(line)
    cases = ElementTree.parse(assay_inline.folder / "j.xml").findall(".//testcase")
    failed = {case.get("name"): case.find("failure") is not None for case in cases}
    assert failed == {"require accuracy>=0.95": True, "require completion>=0.99": False}
    accuracy, completion = requirements(assay_inline, "accuracy>=0.95,completion>=99%")
    assert (accuracy["value"], accuracy["limit"], accuracy["met"]) == (pytest.approx(0.8), 0.95, False)
    assert accuracy["interval"][0] < 0.8 < accuracy["interval"][1]
    assert (completion["value"], completion["met"]) == (1.0, True)


def test_an_interval_that_includes_the_limit_is_noted(assay_inline: AssayInline, past: Past) -> None:
    past.run("1", wrong=6)
    close, clear = requirements(assay_inline, "accuracy>=0.78", "accuracy>=0.2")
    assert (close["met"], close["interval_includes_limit"]) == (True, True)
    assert (clear["met"], clear["interval_includes_limit"]) == (True, False)


def test_what_is_unknown_is_not_met_and_says_why(assay_inline: AssayInline, past: Past) -> None:
    past.run("1")
    (cost,) = requirements(assay_inline, "cost_per_solved<0.01")
    assert (cost["value"], cost["met"]) == (None, False)
    assert cost["note"]
    (ttft,) = requirements(assay_inline, "p95_ttft<1")
    assert (ttft["met"], ttft["value"]) == (False, None)
    past.run("1", usd=0.004)
    (cost,) = requirements(assay_inline, "cost_per_solved<0.01")
    assert (cost["value"], cost["met"]) == (pytest.approx(0.004), True)


def test_a_requirement_may_be_about_one_benchmark(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.suite = suite_of("refunds", "orders")
    past.run("1", wrong={"orders": 10})
    assert assay_inline("gate", "--require", "refunds:accuracy>=0.9").code == 0
    assert assay_inline("gate", "--require", "orders:accuracy>=0.9").code == 1
    assert len(requirements(assay_inline, "accuracy>=0.9")) == 2
    unknown = assay_inline("gate", "--require", "order:accuracy>=0.9")
    assert (unknown.code, "'orders'" in unknown.err) == (2, True)
    wording(unknown.err)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("acuracy>=0.9", "'accuracy'"),
        ("p95_secnds<2", "'p95_seconds'"),
        ("accuracy", "accuracy>=0.9"),
        ("accuracy>=90", "0.9"),
        ("speed<2", "0.9"),
        ("p100_seconds<2", "max_"),
        ("", "accuracy>=0.9"),
        (" ,", "accuracy>=0.9"),
    ],
)
def test_a_mistake_on_the_command_line_is_reported_with_the_nearest_name(
    assay_inline: AssayInline, past: Past, text: str, told: str, wording: Wording
) -> None:
    past.run("1")
    done = assay_inline("gate", "--require", text)
    assert done.code == 2
    assert told in done.err
    wording(done.err)


def test_an_unknown_name_is_reported_in_two_lines(assay_inline: AssayInline, past: Past) -> None:
    past.run("1", more={f"own_metric_{n}": 1.0 for n in range(40)})
    done = assay_inline("gate", "--require", "foo>=1")
    assert done.code == 2
    assert len(done.err) < 200


@pytest.mark.parametrize(
    ("written", "value", "met"),
    [
        ("accuracy>=57%", 0.57, True),
        ("accuracy>=0.9", 0.9 - 1e-16, True),
        ("accuracy<0.9", 0.9 - 1e-16, False),
        ("accuracy>0.9", 0.9 + 2e-16, False),
        ("usd<0.000001", 0.0000009, True),
        ("latency_ms<200ms", 150.0, True),
        ("seconds<200ms", 0.25, False),
        ("accuracy>=0.9", 0.8999, False),
    ],
)
def test_a_value_at_the_limit_keeps_it_whatever_its_last_digit(written: str, value: float, met: bool) -> None:
    (one,) = parse_requirements(written)
    assert one.holds(value) is met


def test_a_limit_is_repeated_with_all_its_digits(assay_inline: AssayInline, past: Past) -> None:
    past.run("1", more={"tokens": 12.0})
    assay_inline("gate", "--require", "tokens<1234567", "--markdown", "m.md")
    assert "tokens<1234567" in (assay_inline.folder / "m.md").read_text()


def test_a_run_that_was_interrupted_after_few_cases_fails_whatever_these_meet(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("1", only=3, state=RunState.INTERRUPTED)
    done = assay_inline("gate", "--require", "accuracy>=0.9", "--json")
    found = json.loads(done.out)
    assert (done.code, len(found["incomplete"])) == (1, 1)
    assert [one["met"] for one in found["requirements"]] == [True]
    assert {one["code"] for one in found["warnings"]} == {"missing", "unfinished"}


def test_requirements_come_on_top_of_the_comparison_with_a_baseline(
    assay_inline: AssayInline, past: Past
) -> None:
    past.store.set_baseline("main", past.run("1").id)
    past.run("2", wrong=5)
    done = assay_inline("gate", "--require", "accuracy>=0.1", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert [one["met"] for one in found["requirements"]] == [True]
    assert found["counts"]["worse"] > 0
    past.run("3")
    assert assay_inline("gate", "--metric", "score", "--require", "accuracy>=0.99").code == 0
    assert assay_inline("gate", "--metric", "score", "--require", "median_seconds<0.1").code == 1


def test_the_suite_itself_may_require_and_the_command_adds_to_it(
    assay_inline: AssayInline, past: Past
) -> None:
    past.suite = replace(past.suite, require=("accuracy>=0.9",))
    past.run("1", wrong=6)
    done = assay_inline("gate", "--json")
    assert done.code == 1
    both = requirements(assay_inline, "completion>=0.5")
    assert [(one["requirement"], one["met"]) for one in both] == [
        ("accuracy>=0.9", False),
        ("completion>=0.5", True),
    ]


def test_the_requirements_of_a_suite_hold_for_a_result_file(assay_inline: AssayInline, past: Past) -> None:
    past.store.set_baseline("main", past.run("1", wrong=6).id)
    past.suite = replace(past.suite, require=("accuracy>=0.9",))
    past.run("2", wrong=6)
    assay_inline("report", "last", "--format", "json", "--out", "made")
    file = "made/result.json"
    for asked in ((), ("--baseline", "main")):
        done = assay_inline("gate", file, "--json", *asked)
        assert done.code == 1
        assert [one["met"] for one in json.loads(done.out)["requirements"]] == [False]


def test_an_interval_of_no_width_leaves_nothing_open(assay_inline: AssayInline, past: Past) -> None:
    past.run("1", usd=0.0)
    (cost,) = requirements(assay_inline, "usd<=0")
    assert (cost["met"], cost["interval_includes_limit"]) == (True, False)


def test_require_does_not_change_what_a_suite_asks(assay_inline: AssayInline, past: Past) -> None:
    """The definition is the same, so a run with new requirements is still held against the baseline."""
    past.store.set_baseline("main", past.run("1").id)
    past.suite = replace(past.suite, require=("accuracy>=0.5",))
    past.run("2")
    assert assay_inline("gate", "--metric", "score").code == 0


@pytest.mark.parametrize(
    ("written", "key"),
    [
        (["accuracy>=0.9", "p95_secnds<2"], "require.1"),
        ("accuracy=0.9", "require"),
        (["x:accuracy>1"], "require.0"),
    ],
)
def test_a_suite_file_with_a_wrong_requirement_is_refused_with_line_and_key(
    assay_inline: AssayInline, written: Any, key: str
) -> None:
    (assay_inline.folder / "suite.yaml").write_text(suite(numbers(3), require=written))
    done = assay_inline("suite", "check", "suite.yaml")
    assert done.code == 2
    assert f"suite.yaml:1: {key}: " in done.out + done.err


def test_python_takes_them_too(assay_inline: AssayInline, past: Past) -> None:
    past.run("1", wrong=6)
    url = f"sqlite:///{assay_inline.folder}/.assay/assay.db"
    assert assay.gate(require="accuracy>=0.7", db=url).passed
    found = assay.gate(require=["accuracy>=0.7", "accuracy>=0.9"], db=url)
    assert not found.passed
    assert [one["met"] for one in found["requirements"]] == [True, False]


def test_without_a_baseline_and_requirements_the_missing_baseline_is_reported(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("1")
    assert assay_inline("gate").code == 2
    assert assay_inline("gate", "--require", "accuracy>=0.1", "--max-lost", "0").code == 2


def test_limits_are_read_with_their_units() -> None:
    limits = [
        one.limit for one in parse_requirements("a>=90%, seconds<200ms, b:usd<=1e-3 , max_seconds < 2 s")
    ]
    assert limits == pytest.approx([0.9, 0.2, 0.001, 2.0])


@pytest.mark.parametrize(("unscored", "met"), [(9, True), (20, False)])
def test_a_score_is_unknown_where_most_executions_are_unscored(
    assay_inline: AssayInline, past: Past, unscored: int, met: bool
) -> None:
    suite_file = suite(numbers(30), benchmark={"scorer": ["judge.py:judge"]})
    (assay_inline.folder / "suite.yaml").write_text(suite_file)
    (assay_inline.folder / "judge.py").write_text(
        f"def judge(output, expected):\n    return 1 / (float(expected) >= {unscored})\n"
    )
    assay_inline("run", "suite.yaml", "--agent", "oracle")
    accuracy, speed = requirements(assay_inline, "accuracy>=0.9", "completion>=0.9")
    assert (accuracy["met"], speed["met"]) == (met, True)
    assert "unscored" in accuracy["note"]
