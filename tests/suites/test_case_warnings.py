"""A key of a case that looks misspelt, and a case that cannot be scored, are warned about before anything is asked."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import suite
from tests.wording import Wording

from assay.plan.case_warnings import case_warnings
from assay.spec.suite import read_suite

pytestmark = pytest.mark.usefixtures("trusted_code")


def warned(assay: AssayInline, cases: list[dict[str, Any]], scorer: Any = "exact") -> list[tuple[str, str]]:
    """What validate says in JSON: key and problem of each warning."""
    assay.write("s.yaml", suite(cases, benchmark={"scorer": scorer}))
    document = assay("validate", "s.yaml", "--json").json
    assert document["valid"]
    return [(warning["key"], warning["problem"] + " " + warning["hint"]) for warning in document["warnings"]]


def test_a_misspelt_key_is_warned_about_with_its_line(assay_inline: AssayInline, wording: Wording) -> None:
    lines = [{"id": "a", "input": "1", "expected": "1"}, {"id": "b", "input": "2", "expectd": "2"}]
    assay_inline.write("cases.jsonl", "\n".join(map(json.dumps, lines)))
    assay_inline.write("s.yaml", suite("cases.jsonl", ["oracle"]))

    done = assay_inline("validate", "s.yaml")
    assert done.code == 0
    (told,) = [line for line in done.err.splitlines() if "cases.jsonl:2: expectd: " in line]
    assert "'expected'" in told
    wording(told)

    ran = assay_inline.run_inline("s.yaml", "--json")
    assert "'expected'" in ran.err
    (warning,) = [one for one in json.loads(ran.out)["warnings"] if one["code"] == "case-keys"]
    assert {"expectd", "b"} <= set(re.findall(r"'(\w+)'", warning["message"]))
    wording(warning["message"])

    dry = assay_inline.run_inline("s.yaml", "--dry-run", "--json").json
    assert [one["code"] for one in dry["warnings"]] == ["case-keys"]
    shown = assay_inline("show", "last", "--json").json
    assert "case-keys" in [one["code"] for one in shown["warnings"]]


def test_many_cases_with_the_same_problem_make_one_warning(
    assay_inline: AssayInline, wording: Wording
) -> None:
    cases = [{"id": f"c{n}", "input": str(n), "expcted": str(n)} for n in range(30)]
    ((key, told),) = warned(assay_inline, cases)
    assert key == "benchmarks.0.cases.0.expcted"
    assert "30 " in told
    assert "'c0'" in told
    wording(told)


@pytest.mark.parametrize(
    ("scorer", "case", "lacking"),
    [
        ("exact", {}, "'expected'"),
        ("numeric", {"expected_output": 4}, "'expected'"),
        ("contains", {}, "'expected'"),
        ("regex", {}, "'expected'"),
        ("code", {}, "'expected' 'tests'"),
        ("tool_calls", {}, "'expected' 'expected_calls'"),
    ],
)
def test_a_case_that_its_scorer_cannot_score_is_warned_about(
    assay_inline: AssayInline, wording: Wording, scorer: str, case: dict[str, Any], lacking: str
) -> None:
    ((_, told),) = warned(assay_inline, [{"id": "a", "input": "x", **case}], scorer)
    assert [name for name in (f"'{scorer}'", "'a'", *lacking.split()) if name not in told] == []
    wording(told)


@pytest.mark.parametrize(
    ("scorer", "case"),
    [
        ("exact", {"expected": "x"}),
        ("exact", {"answer": "x"}),
        ("exact", {"expected": 0}),
        ("exact", {"expected": "x", "expectd": "also", "idx": 3, "label": "y", "difficulty": "hard"}),
        ({"name": "contains", "texts": ["x"]}, {}),
        ({"name": "regex", "pattern": "x"}, {}),
        ("code", {"tests": "assert f() == 1"}),
        ("tool_calls", {"expected_calls": [{"name": "f"}]}),
        ("choice", {"expected": "A", "choices": ["x", "y"]}),
    ],
)
def test_ordinary_cases_are_not_warned_about(
    assay_inline: AssayInline, scorer: Any, case: dict[str, Any]
) -> None:
    assert warned(assay_inline, [{"input": "x", **case}], scorer) == []


def test_right_outputs_that_stand_in_the_benchmark_are_enough(assay_inline: AssayInline) -> None:
    path = assay_inline.write("s.yaml", suite([{"input": "x"}], benchmark={"expected_outputs": ["y"]}))
    assert case_warnings(read_suite(path).suite) == []


def test_keys_that_a_scorer_reads_are_known(assay_inline: AssayInline) -> None:
    ((key, told),) = warned(assay_inline, [{"input": "x", "expected": "y", "test": "assert f()"}], "code")
    assert key.endswith(".test")
    assert "'tests'" in told


def test_a_misspelt_input_is_named_in_the_mistake(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("s.yaml", suite([{"inptu": "x", "expected": "y"}]))
    refusal = assay_inline("validate", "s.yaml").refusal
    assert "'input'" in refusal
    assert "'inptu'" in refusal
    wording(refusal, near="'inptu'")


def test_the_reference_explains_every_key_of_a_case_that_is_read_or_hidden() -> None:
    from assay.model.case import ANSWERS
    from assay.plugin import lookup
    from assay.spec.case_keys import CaseSection, ScoredKeys
    from assay.spec.schema import keys_of

    members = [lookup.find("scorers", name) for name in lookup.known("scorers")]
    read = {key for member in members for key in getattr(member, "reads", ())}
    assert read | ANSWERS <= keys_of(CaseSection) | keys_of(ScoredKeys)
