from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tests.report.suites import CLOUD, EXACT, GREEDY, TINY, WRONG_REASON, Made, benchmark, cases, suite_report
from tests.wording import Wording

from assay.analysis.estimates.case_results import case_series
from assay.model import Budget, Report, RunState, Status
from assay.plugin.json_data import format_strict_json
from assay.report.cases import case_table
from assay.report.documents.csv import Csv
from assay.report.documents.json import Json
from assay.report.documents.junit import JUnit
from assay.report.documents.result import case_document, read_result, result_schema, run_document
from assay.report.pages.markdown import report_page

UNKNOWN_COST = "the cost is unknown (give the agent a price, or set price: free)"


@pytest.fixture(scope="module")
def desk() -> Report:
    return suite_report()


@pytest.fixture
def read(desk: Report, tmp_path: Path) -> Report:
    (path,) = Json().write(desk, tmp_path)
    return read_result(path)


def entry_of(document: dict[str, Any], agent: str) -> dict[str, Any]:
    return next(entry for entry in document["trials"] if entry["agent"]["name"] == agent)


# JSON


def test_the_document_of_a_suite_follows_its_schema_and_has_no_key_beyond_it(desk):
    schema = result_schema()
    for part in (schema, *schema["$defs"].values()):
        part["additionalProperties"] = False
    whole = suite_report(state=RunState.OVER_BUDGET, budget=Budget(usd=1.0))
    for document in (run_document(desk), run_document(whole, with_executions=False)):
        jsonschema.validate(json.loads(format_strict_json(document)), schema)


def test_the_document_names_suite_agent_and_ratings(desk):
    document = run_document(desk)
    entry = entry_of(document, "tiny-llm")
    named = {"name": "support-desk", "version": "1.2", "category": "reasoning", "hash": "a1" * 32}
    assert document["suite"].items() >= named.items()
    assert entry["agent"] == {"name": "tiny-llm", "version": "smol-135m-q8", "type": "llama"}
    assert entry["benchmark_hash"] == "b" * 64
    assert entry["simulated"] is False
    assert entry_of(document, "cloud-sim")["simulated"] is True
    assert entry["ratings"]["cost"] == {"value": None, "interval": None, "basis": UNKNOWN_COST}
    assert entry["usd_per_solved"] is None
    assert sum(entry["outcomes"].values()) + entry["unscored"] == 120
    assert entry["pass_hat"]["3"] < entry["pass_at"]["3"]


def test_executions_have_case_score_named_scores_and_details(desk):
    entries = entry_of(run_document(desk), "tiny-llm")["iteration_metrics"]
    wrong = next(entry for entry in entries if entry.get("score") == 0)
    assert wrong["scores"]["correctness"] == 0
    assert "score" not in wrong["metrics"]
    assert "score.relevance" not in wrong["metrics"]
    assert wrong["detail"]["reasons"] == {"correctness": WRONG_REASON}
    unscored = next(entry for entry in entries if "unscored" in entry.get("detail", {}))
    assert "score" not in unscored


def test_a_metric_called_score_of_a_code_experiment_stays_a_metric(make_report, make_trial):
    trial = make_trial(1, "t", 0.1, processes=1, repetitions=1)
    (execution,) = trial.executions
    scored = replace(trial, executions=(replace(execution, measurements={"score": 3.0}),))
    (entry,) = run_document(make_report(scored))["trials"][0]["iteration_metrics"]
    assert entry["metrics"] == {"score": 3.0}
    assert "ratings" not in run_document(make_report(scored))["trials"][0]


def test_a_suite_is_read_back_as_it_was(desk, read):
    assert read.run.suite == desk.run.suite
    assert [trial.ratings for trial in read.trials] == [trial.ratings for trial in desk.trials]
    assert [list(trial.executions) for trial in read.trials] == [
        [replace(one, trial=trial.stored.id) for one in trial.executions] for trial in desk.trials
    ]
    for one, other in zip(read.trials, desk.trials, strict=True):
        assert one.stored == other.stored
        assert case_series(case_table(one.executions)) == other.series


def test_series_of_a_suite_that_was_read_back_are_of_cases(read):
    series = read.trials[1].series["seconds"]
    assert series.unit == "case"
    assert len(set(series.processes)) == 40


def test_a_budget_and_its_end_are_read_back(tmp_path):
    (path,) = Json().write(suite_report(state=RunState.OVER_BUDGET, budget=Budget(tokens=500)), tmp_path)
    run = read_result(path).run
    assert (run.state, run.budget) == (RunState.OVER_BUDGET, Budget(tokens=500))


def test_a_price_that_is_infinite_becomes_null(tmp_path):
    report = suite_report(agents=(Made("hopeless", -1.0, 0.1, usd=0.01),))
    assert report.trials[0].ratings is not None
    assert math.isinf(report.trials[0].ratings.usd_per_solved or 0)
    assert run_document(report)["trials"][0]["usd_per_solved"] is None


def test_one_case_is_a_document_of_its_own(desk):
    real, simulated = case_document(desk, "refund-013")
    format_strict_json(real)
    assert (real["input"][:10], real["expected"]) == ("Order 1013", "8")
    assert [answer["agent"] for answer in real["answers"]] == ["exact-search", "greedy", "tiny-llm"]
    assert [len(answer["executions"]) for answer in real["answers"]] == [3, 3, 3]
    assert [answer["simulated"] for answer in simulated["answers"]] == [True]


# CSV


def rows_of(report: Report, folder: Path) -> list[dict[str, str]]:
    (path,) = Csv().write(report, folder)
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_csv_has_case_score_and_outcome_of_every_execution(desk, tmp_path):
    rows = rows_of(desk, tmp_path)
    assert len(rows) == 4 * (120 + 2)
    first = rows[2]
    assert (first["case"], first["score"], first["outcome"]) == ("refund-001", "1.0", "pass")
    assert (first["suite"], first["simulated"]) == ("support-desk", "false")
    assert rows[-1]["simulated"] == "true"
    assert rows[0]["outcome"] == ""
    assert {row["outcome"] for row in rows} >= {
        "pass",
        "fail",
        "agent_error",
        "limit",
        "harness_error",
        "unscored",
    }
    names = list(first)
    assert names.index("score") < names.index("seconds")


def test_csv_of_code_has_no_columns_of_suites(small, tmp_path):
    assert not {"suite", "simulated", "outcome"} & set(rows_of(small, tmp_path)[0])


# JUnit


def suites_of(report: Report, folder: Path) -> list[ElementTree.Element]:
    (path,) = JUnit().write(report, folder)
    return ElementTree.parse(path).getroot().findall("testsuite")


def test_junit_has_a_suite_for_each_agent_and_a_test_case_for_each_case(desk, tmp_path):
    suites = suites_of(desk, tmp_path)
    assert [suite.get("name") for suite in suites] == [trial.name for trial in desk.trials]
    assert [suite.get("tests") for suite in suites] == ["40"] * 4
    first = suites[0].find("testcase")
    assert first is not None
    assert (first.get("name"), first.get("classname")) == ("refund-001", "support-desk.refunds.exact-search")
    assert 0.02 < float(first.get("time", "0")) < 0.07
    assert (suites[0].get("failures"), suites[0].get("errors")) == ("0", "0")


def test_junit_fails_the_cases_whose_mean_score_is_below_the_pass_mark(tmp_path):
    def failures(mark: float) -> int:
        asked = (benchmark("b", cases(40), pass_mark=mark),)
        (suite,) = suites_of(suite_report(agents=(Made("a", 0.5, 0.1),), benchmarks=asked), tmp_path)
        return int(suite.get("failures", ""))

    assert failures(0.3) < failures(0.5) < failures(0.9)


def one_case(made: Made, tmp_path: Path) -> ElementTree.Element:
    report = suite_report(agents=(made,), benchmarks=(benchmark("b", cases(1)),), repetitions=2)
    case = suites_of(report, tmp_path)[0].find("testcase")
    assert case is not None
    return case


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (Made("right", 2.0, 0.1), None),
        (Made("wrong", -1.0, 0.1), "failure"),
        (Made("late", 2.0, 0.1, faults={Status.TIMEOUT: 1.0}), "failure"),
        (Made("broken", 2.0, 0.1, faults={Status.FAILED: 1.0}), "error"),
        (Made("lost", 2.0, 0.1, faults={Status.HARNESS_ERROR: 1.0}), "skipped"),
        (Made("unjudged", 2.0, 0.1, unscored=1.0), "skipped"),
    ],
)
def test_what_became_of_a_case_is_what_junit_calls_it(made, verdict, tmp_path):
    found = [child.tag for child in one_case(made, tmp_path)]
    assert found == ([verdict] if verdict else [])


def test_junit_says_why_a_case_failed(tmp_path, wording: Wording):
    failure = one_case(Made("wrong", -1.0, 0.1), tmp_path).find("failure")
    assert failure is not None
    message = failure.get("message", "")
    assert "0.00" in message
    assert "2 fail" in message
    assert WRONG_REASON in (failure.text or "")
    wording(message)


def test_junit_of_a_suite_is_well_formed_whatever_an_agent_says(tmp_path):
    dirty = "\x00]]> & <b> \ud800"
    report = suite_report(agents=(GREEDY,), hostile=dirty)
    assert suites_of(report, tmp_path)


# Markdown


def test_markdown_shows_boards_reasons_and_missed_cases(desk):
    page = report_page(desk)
    for part in (
        "suite support-desk 1.2 · reasoning · definition a1a1a1a1a1a1",
        "| exact-search 2.1.0 | 1.00 [0.91, 1.00] | 0.98 [0.98, 0.99] | – | 1.00 [1.00, 1.00] |",
        "tiny-llm: cost is unrated: the cost is unknown (give the agent a price, or set price: free)",
        "| cloud-sim (simulated) |",
        "### Cases not passed (the hardest 30 of 34)",
        WRONG_REASON,
        "completion 0.957 × consistency",
    ):
        assert part in page
    simulated = "## Refunds · simulated agents"
    assert page.index(simulated) > page.index("| tiny-llm |")


def test_what_agents_say_is_literal_in_markdown():
    page = report_page(suite_report(agents=(TINY, CLOUD, EXACT), hostile="a|b\n<script>*x*"))
    page = page.split("## refunds · ")[0]
    assert "<script>" not in page
    assert r"a\|b \<script\>\*x\*" in page
