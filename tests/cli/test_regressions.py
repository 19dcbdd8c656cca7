"""`assay regressions`: what got worse, since which version, and in which state it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.command import AssayInline
from tests.past import FACTS, NOISE, Past, suite_of
from tests.wording import Wording

from assay.model import Batch, Run, RunState
from assay.store.store import Store

AGENT = "desk-agent"


@pytest.fixture
def past(assay_inline: AssayInline) -> Iterator[Past]:
    with Store.open(f"sqlite:///{assay_inline.folder}/.assay/assay.db") as store:
        yield Past(store)


def found(assay: AssayInline, *arguments: str) -> Any:
    return assay("regressions", AGENT, *arguments, "--json").json


def one(assay: AssayInline, *arguments: str) -> Any:
    (only,) = found(assay, *arguments)["regressions"]
    return only


def test_times_of_two_runs_are_no_regression_while_run_to_run_noise_is_unknown(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    """The same agent twice; the machine was slower the second time."""
    past.run("1")
    past.run("2", hour=1.3)
    report = found(assay_inline)
    assert report["regressions"] == []
    assert report["recommended_action"] == "hold"
    (unsure,) = report["unsure"]
    assert unsure["metric"] == "seconds"
    wording(unsure["reason"])


@pytest.mark.parametrize(("slower", "is_found"), [(1.0, False), (1.2, False), (2.0, True)])
def test_five_earlier_runs_tell_what_a_slower_version_has_to_exceed(
    assay_inline: AssayInline, past: Past, slower: float, is_found: bool
) -> None:
    for hour in (1.0, 1.08, 0.97, 1.06, 1.02):
        past.run("1", hour=hour)
    past.run("2", slower=slower)
    regressions = found(assay_inline)["regressions"]
    assert [each["metric"] for each in regressions] == (["seconds"] if is_found else [])


def test_a_slower_version_found_by_five_runs_is_resolved_by_a_faster_one(
    assay_inline: AssayInline, past: Past
) -> None:
    for hour in (1.0, 1.08, 0.97, 1.06, 1.02):
        past.run("1", hour=hour)
    past.run("2", slower=2.0)
    assert one(assay_inline)["state"] == "detected"
    past.run("3")
    assert one(assay_inline)["state"] == "resolved"


def test_a_slower_version_found_beyond_a_tolerance_is_resolved_by_a_faster_one(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("1")
    past.run("2", slower=2.0)
    assert one(assay_inline, "--threshold", "20%")["state"] == "detected"
    past.run("3")
    assert one(assay_inline, "--threshold", "20%")["state"] == "resolved"


def test_the_latest_version_is_held_against_the_one_before(assay_inline: AssayInline, past: Past) -> None:
    past.know_noise()
    past.run("1.3")
    past.run("1.4", slower=1.25)
    report = found(assay_inline)
    (only,) = report["regressions"]
    assert (only["benchmark_id"], only["metric"], only["versions"]) == ("refunds", "seconds", ["1.3", "1.4"])
    assert only["regression_percentage"] == pytest.approx(25, abs=2)
    assert (only["severity"], only["state"]) == ("major", "detected")
    assert only["p_corrected"] < 0.001
    assert only["threshold"] == 0.03
    assert (report["has_regressions"], report["recommended_action"]) == (True, "hold")
    assert report["overall_health"] == pytest.approx(1 - 0.2 * 0.25 / 0.3, abs=0.02)


@pytest.mark.parametrize("metric", ["usd", "score", "seconds"])
def test_a_drift_over_versions_is_a_regression_with_its_severity(
    assay_inline: AssayInline, past: Past, metric: str
) -> None:
    for number in range(20):
        share = number / 19
        past.run(
            f"1.{number}",
            usd=0.01 * (1 + 0.4 * share * (metric == "usd")),
            wrong=round(10 * share) if metric == "score" else 0,
            slower=1 + 0.4 * share * (metric == "seconds"),
        )
    only = one(assay_inline)
    assert (only["metric"], only["found_by"]) == (metric, ["drift"])
    assert only["versions"] == ["1.0", "1.19"]
    assert only["regression_percentage"] == pytest.approx(33 if metric == "score" else 40, abs=3)
    assert only["severity"] == "critical"
    assert "(drift)" in assay_inline("regressions", AGENT).out


def test_the_impact_names_cases_share_of_the_score_and_price(assay_inline: AssayInline, past: Past) -> None:
    past.repetitions = 1
    past.run("1", usd=0.01)
    past.run("2", usd=0.01, wrong=10)
    impact = one(assay_inline)["impact_analysis"]
    assert impact["cases"] == [f"c{number:02}" for number in range(10)]
    assert impact["per_1000"] == pytest.approx(333.3, abs=0.1)
    assert impact["usd_per_1000"] == pytest.approx(1000 * (0.015 - 0.01))
    # One repetition, so reliability is unrated: accuracy has 0.3 of the 0.5 that accuracy and speed weigh.
    assert impact["overall"] == pytest.approx(0.3 / 0.5 * (1 / 3))


def test_what_is_no_worse_is_promoted(assay_inline: AssayInline, past: Past) -> None:
    past.know_noise()
    past.run("1", wrong=20)
    past.run("2", slower=0.5)
    report = found(assay_inline)
    assert (report["has_regressions"], report["recommended_action"]) == (False, "promote")
    assert report["overall_health"] == 1.0


def test_a_critical_loss_is_to_be_rolled_back(assay_inline: AssayInline, past: Past) -> None:
    past.know_noise()
    past.run("1")
    past.run("2", slower=2.0)
    done = assay_inline("regressions", AGENT)
    assert done.code == 0
    report = found(assay_inline)
    assert report["recommended_action"] == "roll back"
    assert [each["severity"] for each in report["regressions"]] == ["critical"]
    assert report["recommended_action"] in done.out
    assert "critical" in done.out
    command = "assay regressions desk-agent --mark"
    assert command in done.err


def test_a_version_that_was_given_up_because_it_fails_is_the_latest(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("1")
    past.run("2")
    _given_up(past, past.run("3", failed=30, state=RunState.FAILED), "10 executions in a row were not ok")
    report = found(assay_inline)
    assert (report["version"], report["recommended_action"]) == ("3", "roll back")
    assert {(each["metric"], each["severity"]) for each in report["regressions"]} == {
        ("score", "critical"),
        ("completed", "critical"),
    }
    (score,) = (each for each in report["history"] if each["metric"] == "score")
    assert [point["value"] for point in score["points"]] == [1.0, 1.0, 0.0]
    compared = assay_inline("compare", f"{AGENT}@2", f"{AGENT}@3", "--json").json["comparisons"]
    assert [(each["metric"], each["verdict"]) for each in compared] == [("score", "worse")]


def test_one_failure_is_enough_where_nothing_works_any_more(assay_inline: AssayInline, past: Past) -> None:
    past.run("1")
    _given_up(past, past.run("2", failed=30, only=1, state=RunState.FAILED), "the agent could not be started")
    report = found(assay_inline)
    (only,) = report["regressions"]
    assert (only["metric"], only["severity"], only["regression_percentage"]) == ("completed", "critical", 100)
    assert (report["has_regressions"], report["recommended_action"]) == (True, "roll back")
    past.run("3")
    after = found(assay_inline)
    assert [each["state"] for each in after["regressions"]] == ["resolved"]


def _given_up(past: Past, run: Run, reason: str) -> None:
    past.store.add(run.id, Batch(stopped={0: reason}))


def test_failures_are_a_regression_of_their_own(assay_inline: AssayInline, past: Past) -> None:
    past.run("1")
    past.run("2", failed=12)
    metrics = {each["metric"] for each in found(assay_inline)["regressions"]}
    assert "completed" in metrics


def test_a_baseline_version_or_a_named_baseline_can_be_asked_for(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.know_noise()
    first = past.run("1")
    past.run("2", slower=1.5)
    past.run("3", slower=1.5)
    assert found(assay_inline)["regressions"] == []
    assert one(assay_inline, "--baseline-version", "1")["versions"] == ["1", "3"]
    past.store.set_baseline("gold", first.id)
    told = found(assay_inline, "--baseline", "gold")["baseline"]
    assert all(part in told for part in ("gold", "1", first.id))
    wording(told)


def test_of_one_version_the_baseline_of_its_suite_or_main_is_taken(
    assay_inline: AssayInline, past: Past
) -> None:
    past.know_noise("1")
    first = past.run("1")
    past.store.set_baseline("main", first.id)
    past.run("1", slower=1.5)
    assert one(assay_inline)["versions"] == [f"1 run {first.id}", "1 run run002"]
    past.store.set_baseline("desk", past.run("1").id)
    past.run("1", slower=1.5)
    assert "desk" in found(assay_inline)["baseline"].split()


def test_a_threshold_leaves_smaller_losses_out(assay_inline: AssayInline, past: Past) -> None:
    past.run("1")
    past.run("2", slower=1.25)
    assert found(assay_inline, "--threshold", "0.5")["regressions"] == []
    assert one(assay_inline, "--threshold", "10%")["threshold"] == 0.1


def test_a_step_in_the_history_is_found_without_a_baseline(assay_inline: AssayInline, past: Past) -> None:
    for number in range(24):
        past.run(f"1.{number}", slower=1.0 if number < 12 else 1.2)
    report = found(assay_inline)
    (only,) = report["regressions"]
    assert (only["found_by"], only["versions"]) == (["step"], ["1.11", "1.12"])
    assert len(report["history"][0]["points"]) == 24
    assert "1.11 → 1.12" in assay_inline("regressions", AGENT).out


def test_a_version_that_is_run_again_later_stays_in_its_place(assay_inline: AssayInline, past: Past) -> None:
    for number in range(12):
        past.run(f"1.{number}")
    for number in range(12, 24):
        past.run("1.11")
        past.run(f"1.{number}", slower=1.2)
    (only,) = [each for each in found(assay_inline)["regressions"] if "step" in each["found_by"]]
    assert only["versions"] == ["1.11", "1.12"]


def test_a_regression_that_both_ways_find_is_reported_once(assay_inline: AssayInline, past: Past) -> None:
    for number in range(12):
        past.run(f"1.{number}")
    for _ in range(12):
        past.run("1.12", slower=1.2)
    assert one(assay_inline)["found_by"] == ["baseline", "step"]


def test_a_history_that_is_too_short_says_so(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("1")
    report = found(assay_inline)
    assert re.findall(r"\d+", report["unsearched"]["refunds · seconds"]) == ["1", "16"]
    assert (report["recommended_action"], report["baseline"]) == ("hold", None)
    wording(report["reason"])
    shown = assay_inline("regressions", AGENT, COLUMNS="300").out
    (line,) = (line for line in shown.splitlines() if report["unsearched"]["refunds · seconds"] in line)
    wording(line)


def test_a_state_with_its_note_is_kept_when_the_same_is_found_again(
    assay_inline: AssayInline, past: Past
) -> None:
    past.know_noise()
    past.run("1")
    past.run("2", slower=1.25)
    id = one(assay_inline)["id"]
    marked = assay_inline(
        "regressions", AGENT, "--mark", id[:4], "investigating", "--note", "parser?", "--json"
    ).json
    assert (marked["id"], marked["state"], marked["note"]) == (id, "investigating", "parser?")
    again = one(assay_inline)
    assert (again["id"], again["state"], again["note"]) == (id, "investigating", "parser?")
    assert "“parser?”" in assay_inline("regressions", AGENT).out


def test_a_false_positive_counts_no_more(assay_inline: AssayInline, past: Past) -> None:
    past.know_noise()
    past.run("1", wrong=20)
    past.run("2", slower=2.0)
    id = one(assay_inline)["id"]
    assay_inline("regressions", AGENT, "--mark", id, "false_positive")
    report = found(assay_inline)
    assert report["has_regressions"] is False
    assert report["recommended_action"] == "promote"
    assert id not in assay_inline("regressions", AGENT).out
    assert id in assay_inline("regressions", AGENT, "--all").out


def test_what_is_mended_is_resolved_though_few_cases_never_prove_scores_the_same(
    assay_inline: AssayInline, past: Past
) -> None:
    past.know_noise()
    past.run("1")
    past.run("2", failed=12)
    assert found(assay_inline)["recommended_action"] == "roll back"
    past.run("3")
    report = found(assay_inline)
    assert {each["state"] for each in report["regressions"]} == {"resolved"}
    assert (report["overall_health"], report["recommended_action"]) == (1.0, "promote")


def test_what_is_mended_by_half_stays_open(assay_inline: AssayInline, past: Past) -> None:
    past.run("1")
    past.run("2", wrong=20)
    id = one(assay_inline)["id"]
    past.run("3", wrong=4)
    states = {each["id"]: each["state"] for each in found(assay_inline)["regressions"]}
    assert states == {id: "detected"}


def test_what_a_later_version_undoes_is_resolved(assay_inline: AssayInline, past: Past) -> None:
    past.know_noise()
    past.run("1")
    past.run("2", slower=1.25)
    id = one(assay_inline)["id"]
    past.run("3", slower=1.0)
    states = {each["id"]: each["state"] for each in found(assay_inline)["regressions"]}
    assert states == {id: "resolved"}


@pytest.mark.parametrize("worse", [{"usd": 0.02}, {"wrong": 5}])
def test_going_back_to_the_version_that_was_well_resolves_the_regression(
    assay_inline: AssayInline, past: Past, worse: Any
) -> None:
    past.repetitions = 3
    past.run("1", usd=0.01)
    past.run("2", **{"usd": 0.01, **worse})
    before = one(assay_inline)
    assert (before["state"], before["versions"]) == ("detected", ["1", "2"])
    past.run("1", usd=0.01)
    report = found(assay_inline)
    assert [(each["id"], each["state"]) for each in report["regressions"]] == [(before["id"], "resolved")]
    assert (report["has_regressions"], report["overall_health"]) == (False, 1.0)
    assert report["recommended_action"] != "roll back"
    assert before["id"] not in assay_inline("regressions", AGENT).out


def test_going_back_to_a_version_that_is_now_as_bad_resolves_nothing(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("1", usd=0.01)
    past.run("2", usd=0.02)
    id = one(assay_inline)["id"]
    past.run("1", usd=0.02)
    states = {each["id"]: each["state"] for each in found(assay_inline)["regressions"]}
    assert states[id] == "detected"


def test_a_step_of_a_long_history_is_over_when_an_earlier_version_runs_again(
    assay_inline: AssayInline, past: Past
) -> None:
    for number in range(16):
        past.run(f"1.{number}", usd=0.01 if number < 8 else 0.02)
    (step,) = found(assay_inline)["regressions"]
    assert step["found_by"] == ["step"]
    past.run("1.7", usd=0.01)
    report = found(assay_inline)
    assert {each["state"] for each in report["regressions"]} == {"resolved"}
    assert report["recommended_action"] != "roll back"


def test_a_fix_of_one_benchmark_resolves_only_that_one(assay_inline: AssayInline, past: Past) -> None:
    past.suite, past.repetitions = suite_of("refunds", "orders"), 3
    past.run("1")
    past.run("2", wrong=5)
    assert len(found(assay_inline)["regressions"]) == 2
    past.run("3", wrong={"orders": 5})
    states = {each["benchmark_id"]: each["state"] for each in found(assay_inline)["regressions"]}
    assert states == {"refunds": "resolved", "orders": "detected"}


def test_a_regression_within_one_version_name_is_resolved_by_a_later_run(
    assay_inline: AssayInline, past: Past
) -> None:
    past.repetitions = 3
    past.store.set_baseline("main", past.run("1").id)
    past.run("1", wrong=5)
    id = one(assay_inline)["id"]
    past.run("1")
    states = {each["id"]: each["state"] for each in found(assay_inline)["regressions"]}
    assert states == {id: "resolved"}


def test_lost_cases_are_named_beside_the_regressions(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.repetitions = 3
    past.run("1")
    past.run("2", wrong=1)
    (flips,) = found(assay_inline)["flips"]
    assert (flips["lost"], flips["repetitions"]["c00"]) == (["c00"], {"a": [3, 3], "b": [0, 3]})
    shown = assay_inline("regressions", AGENT, COLUMNS="300").out
    (line,) = (line for line in shown.splitlines() if "c00" in line)
    assert re.findall(r"\d+", line.partition("c00")[2]) == ["3", "3", "0", "3"]
    wording(line)


def test_what_a_later_version_does_not_undo_stays_open(assay_inline: AssayInline, past: Past) -> None:
    past.know_noise()
    past.run("1")
    past.run("2", slower=1.25)
    id = one(assay_inline)["id"]
    past.run("3", slower=1.25)
    report = found(assay_inline)
    assert [(each["id"], each["state"]) for each in report["regressions"]] == [(id, "detected")]
    assert report["has_regressions"]


def test_all_benchmarks_slower_alike_point_to_the_machine(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.suite = suite_of("refunds", "greetings", "orders")
    past.know_noise()
    past.run("1")
    past.run("2", hour=1.3, facts={**FACTS, "noise": {**NOISE, "seconds": 0.078}})
    report = found(assay_inline)
    (pattern,) = report["patterns"]
    assert pattern["factor"] == pytest.approx(1.3, abs=0.02)
    assert pattern["machine"] == pytest.approx(1.3)
    wording(pattern["message"])
    assert report["recommended_action"] == "re-run"
    assert report["regressions"] == []
    assert [each["metric"] for each in report["unsure"]] == ["seconds"] * 3
    assert all("30 %" in each["reason"] for each in report["unsure"])


def test_on_another_machine_only_what_it_does_not_change_is_compared(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("1")
    past.run("2", slower=2.0, facts={**FACTS, "machine": "arm64"})
    report = found(assay_inline)
    assert report["regressions"] == []
    assert report["recommended_action"] == "re-run"
    assert {warning["code"] for warning in report["warnings"]} == {"machine"}
    assert "arm64" in report["warnings"][0]["message"]
    wording(report["warnings"][0]["message"])


def test_a_changed_benchmark_is_not_compared(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("1")
    past.run("2", slower=2.0, suite=suite_of("refunds", hash="s2"))
    report = found(assay_inline)
    assert report["regressions"] == []
    assert {warning["code"] for warning in report["warnings"]} == {"unlike", "unmatched"}
    assert "refunds" in report["warnings"][0]["message"]
    wording(report["warnings"][0]["message"])


def test_a_price_where_there_was_none_is_a_regression_without_a_percentage(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("1", usd=0.0)
    past.run("2", usd=0.01)
    only = one(assay_inline)
    assert (only["metric"], only["baseline_value"], only["regression_percentage"]) == ("usd", 0.0, None)
    shown = assay_inline("regressions", AGENT, COLUMNS="300").out
    (row,) = (line for line in shown.splitlines() if "$0.00 → $0.01" in line)
    change = re.split(r"\s{2,}", row.partition("$0.00 → $0.01")[2].strip())[0]
    assert "%" not in change
    wording(change)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["desk-agnet"], ["'desk-agnet'", "results: desk-agent.", "'desk-agent'"]),
        ([AGENT, "--suite", "dask"], ["'dask'", "'desk-agent'", "'desk'"]),
        ([AGENT, "--baseline-version", "9"], ["'9'", "'desk-agent'", "ran: 1, 2."]),
        ([AGENT, "--baseline-version", "2"], ["'2'", "'desk-agent'"]),
        ([AGENT, "--baseline", "nope"], ["'nope'"]),
        ([AGENT, "--threshold", "lots"], ["--threshold", "'lots'"]),
        ([AGENT, "--mark", "ffff", "resolved"], ["'ffff'", "'desk-agent'"]),
        ([AGENT, "--mark", "ffff", "done"], ["'done'", "resolved"]),
        ([AGENT, "--note", "why"], ["--note", "--mark"]),
        ([AGENT, "--baseline", "a", "--baseline-version", "b"], ["--baseline", "--baseline-version"]),
    ],
)
def test_what_cannot_be_done_is_reported(
    assay_inline: AssayInline, past: Past, arguments: list[str], told: list[str], wording: Wording
) -> None:
    past.run("1")
    past.run("2")
    refusal = assay_inline("regressions", *arguments).refusal
    assert all(part in refusal for part in told)
    wording(refusal, near="Error: ")


def test_an_empty_store_has_no_agents(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    refusal = assay_inline("regressions", AGENT).refusal
    assert f"'{AGENT}'" in refusal
    assert "none." in refusal
    wording(refusal)


def test_a_baseline_without_the_agent_is_reported(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    other = Past(past.store, agent="other", made=50)
    past.store.set_baseline("theirs", other.run("1").id)
    past.run("1")
    refusal = assay_inline("regressions", AGENT, "--baseline", "theirs").refusal
    assert all(name in refusal for name in ("'theirs'", "'run051'", "'desk-agent'"))
    wording(refusal)


def test_only_score_seconds_and_cost_are_looked_at_unless_others_are_asked_for(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("1", more={"cpu_seconds": 0.1})
    past.run("2", more={"cpu_seconds": 0.3})
    found = assay_inline("regressions", AGENT, "--json").json
    assert found["regressions"] == []
    assert {one["metric"] for one in found["history"]} == {"score", "seconds"}
    asked = assay_inline("regressions", AGENT, "--metric", "cpu_seconds", "--json").json
    assert [one["metric"] for one in asked["regressions"]] == ["cpu_seconds"]
    assert assay_inline("regressions", AGENT, "--json").json["regressions"] == []
    assert "'nope'" in assay_inline("regressions", AGENT, "--metric", "nope").refusal


def test_a_version_that_cannot_be_compared_is_reported_with_that_reason(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("1")
    other = suite_of("refunds", hash="s2")
    past.run("2", suite=other)
    report = found(assay_inline)
    assert "1" in re.findall(r"\d+", report["reason"])
    wording(report["reason"])
