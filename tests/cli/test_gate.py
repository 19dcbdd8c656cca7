"""`assay gate`: exit 1 on evidence, 0 without, 2 when it cannot be done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.command import AssayInline, Done, Prepare
from tests.past import FACTS, NOISE, Past, suite_of
from tests.suites.project import numbers, suite
from tests.wording import Wording

from assay.model import RunState
from assay.store.store import Store


def open_store(assay: AssayInline) -> Store:
    return Store.open(f"sqlite:///{assay.folder}/.assay/assay.db")


def make_baseline(assay: AssayInline) -> None:
    with open_store(assay) as store:
        made = Past(store)
        made.know_noise()
        store.set_baseline("main", made.run("1").id)
    assay.write("past.json", made.to_json())


@pytest.fixture
def past(assay_inline: AssayInline, prepare: Prepare) -> Iterator[Past]:
    """A baseline `main`, in the store of the folder that the command works in."""
    prepare(assay_inline, make_baseline)
    with open_store(assay_inline) as store:
        made = Past(store)
        made.go_on((assay_inline.folder / "past.json").read_text())
        yield made


@pytest.fixture
def once(past: Past) -> Past:
    """The same with one repetition of each case."""
    past.repetitions = 1
    past.store.set_baseline("main", past.run("1").id)
    return past


def numbers_in(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def score_of(done: Done) -> dict[str, Any]:
    (found,) = (one for one in json.loads(done.out)["comparisons"] if one["metric"] == "score")
    return dict(found)


def doubt_of(done: Done) -> dict[str, Any]:
    (found,) = done.json["warnings"]
    return dict(found)


def test_without_evidence_it_passes(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("2")
    done = assay_inline("gate", "last", "--baseline", "main")
    assert done.code == 0, done.err
    assert done.out.startswith("✓ ")
    command = "assay baseline set main run002"
    assert command in done.err
    wording(done.out, near="✓")


def test_a_slower_run_fails_and_names_what_got_worse(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2", slower=1.25)
    done = assay_inline("gate", "last", "--baseline", "main")
    assert done.code == 1
    headline = done.out.splitlines()[0]
    assert (headline[0], numbers_in(headline)) == ("✗", ["1", "2"])
    wording(headline)
    assert "+25" in done.out
    assert "assay regressions desk-agent" in done.err


def test_wrong_answers_fail(assay_inline: AssayInline, past: Past) -> None:
    past.run("2", wrong=12)
    found = assay_inline("gate", "--json")
    assert found.code == 1
    assert '"metric": "score"' in found.out


def test_failures_fail_though_they_have_no_figures(assay_inline: AssayInline, past: Past) -> None:
    past.run("2", failed=12)
    done = assay_inline("gate", "--metric", "completed")
    assert done.code == 1
    assert "completed" in done.out


def test_completed_can_be_asked_for_when_nothing_failed(assay_inline: AssayInline, past: Past) -> None:
    past.run("2")
    assert assay_inline("gate", "--metric", "completed").code == 0


def test_a_run_in_which_nothing_works_fails(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("2", failed=30, state=RunState.FAILED)
    done = assay_inline("gate", COLUMNS="300")
    assert done.code == 1
    assert json.loads(assay_inline("gate", "--json").out)["broken"] == ["refunds · desk-agent"]
    broken, lost = (line for line in done.out.splitlines() if line.startswith("✗ refunds · desk-agent"))
    assert "c00" in lost
    wording(broken)


@pytest.mark.parametrize("asked", [("--metric", "seconds"), ("--tolerance", "seconds=20%")])
def test_a_run_in_which_nothing_works_fails_whichever_metric_is_asked_for(
    assay_inline: AssayInline, past: Past, asked: tuple[str, str]
) -> None:
    past.run("2", failed=30, state=RunState.FAILED)
    done = assay_inline("gate", *asked, "--json")
    assert done.code == 1
    assert json.loads(done.out)["broken"] == ["refunds · desk-agent"]
    assert assay_inline("gate", "--metric", "secnds").code == 2


def test_cases_that_the_run_lacks_are_named_and_it_is_no_baseline(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2", only=3)
    done = assay_inline("gate", "--max-lost", "0", "--markdown", "m.md")
    assert done.code == 0
    found = assay_inline("gate", "--json")
    doubt = doubt_of(found)
    assert (doubt["code"], numbers_in(doubt["message"])[:2]) == ("missing", ["27", "30"])
    assert doubt["message"] in " ".join(done.out.split())
    assert doubt["message"] in (assay_inline.folder / "m.md").read_text()
    wording(doubt["message"])
    assert "baseline set" not in done.err
    assert "baseline set" not in assay_inline("compare", "@main", "last").err
    assert found.json["missing"]["cases"] == {
        "refunds · desk-agent": [f"c{number:02}" for number in range(3, 30)]
    }


def test_trials_that_the_run_lacks_are_named_and_it_is_no_baseline(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    both = suite_of("refunds", "orders")
    past.store.set_baseline("main", past.run("1", suite=both).id)
    past.run("2", suite=replace(both, benchmarks=both.benchmarks[:1]))
    done = assay_inline("gate")
    assert done.code == 0
    assert "baseline set" not in done.err
    found = assay_inline("gate", "--json")
    assert found.json["missing"]["trials"] == ["orders · desk-agent"]
    doubt = doubt_of(found)
    assert (doubt["code"], numbers_in(doubt["message"])) == ("missing", ["1", "2"])
    assert "orders · desk-agent" in doubt["message"]
    assert doubt["message"] in " ".join(done.out.split())
    wording(doubt["message"])


def test_a_run_that_fails_everything_is_not_suggested_as_the_baseline(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.store.set_baseline("main", past.run("1", failed=30, state=RunState.FAILED).id)
    past.run("2", failed=30, state=RunState.FAILED)
    done = assay_inline("compare", "@main", "last")
    assert "baseline set" not in done.err
    (showdown,) = assay_inline("compare", "@main", "last", "--json").json["agents"]
    assert (showdown["winner"], set(showdown["winners"].values())) == (None, {None})
    (told,) = showdown["recommendations"]
    assert told in " ".join(done.out.split())
    wording(told)
    past.run("3", wrong=30)
    assert "baseline set" not in assay_inline("compare", "@main", "last").err


def test_what_the_run_can_no_longer_tell_is_named(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.store.set_baseline("main", past.run("1", usd=0.01).id)
    past.run("2")
    doubt = doubt_of(assay_inline("gate", "--json"))
    told = doubt["message"]
    assert doubt["code"] == "unjudged"
    assert "'usd'" in told
    wording(told)
    assert told in " ".join(assay_inline("gate", "--markdown", "gate.md").out.split())
    assert told in (assay_inline.folder / "gate.md").read_text()
    assert told not in " ".join(assay_inline("gate", "--metric", "score").out.split())
    assert assay_inline("gate", "--metric", "score", "--json").json["warnings"] == []


def test_a_tolerance_lets_small_losses_pass(assay_inline: AssayInline, past: Past) -> None:
    past.run("2", slower=1.25)
    assert assay_inline("gate", "--tolerance", "50%").code == 0
    assert assay_inline("gate", "--tolerance", "seconds=0.5").code == 0
    assert assay_inline("gate", "--tolerance", "50%", "--tolerance", "seconds=5%").code == 1


def test_only_metrics_that_were_asked_for_are_judged(assay_inline: AssayInline, past: Past) -> None:
    past.run("2", slower=1.5)
    assert assay_inline("gate", "--metric", "score").code == 0
    assert assay_inline("gate", "--metric", "score", "--metric", "seconds").code == 1


def test_what_is_unsure_passes_and_is_named_with_what_would_settle_it(
    assay_inline: AssayInline, once: Past, wording: Wording
) -> None:
    once.run("2", wrong=2)
    done = assay_inline("gate")
    assert done.code == 0
    assert "unsure" in done.out
    score = score_of(assay_inline("gate", "--json"))
    assert (score["verdict"], "3" in numbers_in(score["reason"])) == ("unsure", True)
    assert score["reason"] in " ".join(done.out.split())
    wording(score["reason"])


def test_a_run_is_named_by_id_prefix_baseline_or_result_file(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2", slower=1.5)
    assert assay_inline("report", "last", "--format", "json", "--out", "results").code == 0
    (file,) = (assay_inline.folder / "results").glob("*.json")
    for ref in ("run002", "run002"[:6], "last", str(file)):
        assert assay_inline("gate", ref).code == 1, ref
    itself = assay_inline("gate", "@main")
    assert itself.code == 0
    doubt = doubt_of(assay_inline("gate", "@main", "--json"))
    assert doubt["code"] == "itself"
    assert doubt["message"] in " ".join(itself.out.split())
    wording(doubt["message"])


def test_a_result_file_can_be_the_baseline(assay_inline: AssayInline, past: Past) -> None:
    assert assay_inline("report", "@main", "--format", "json", "--out", "results").code == 0
    (file,) = (assay_inline.folder / "results").glob("*.json")
    past.run("2", slower=1.5)
    assert assay_inline("gate", "--baseline", file).code == 1


def test_the_next_commands_name_result_files_where_those_were_compared(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("2")
    assay_inline("report", "@main", "--format", "json", "--out", "old")
    done = assay_inline("gate", "last", "--baseline", "old/result.json")
    assert done.code == 0
    command = "assay compare old/result.json run002"
    assert command in " ".join(done.err.split())
    assert "baseline set" not in done.err


def test_it_answers_in_json(assay_inline: AssayInline, past: Past) -> None:
    past.run("2")
    found = assay_inline("gate", "--json").json
    assert found["schema"] == "assay.gate/1"
    assert (found["passed"], found["baseline"], found["run_id"]) == (True, "main", "run002")
    assert {one["metric"] for one in found["comparisons"]} == {"seconds", "score"}
    assert sum(found["counts"].values()) == 2


def test_junit_has_a_case_for_each_benchmark_and_metric_and_fails_only_what_got_worse(
    assay_inline: AssayInline, past: Past
) -> None:
    past.run("2", slower=1.5)
    assert assay_inline("gate", "--junit", "out/gate.xml").code == 1
    root = ElementTree.parse(assay_inline.folder / "out/gate.xml").getroot()
    cases = {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}
    assert set(cases) == {("refunds · desk-agent", "seconds"), ("refunds · desk-agent", "score")}
    failed = [key for key, case in cases.items() if case.find("failure") is not None]
    assert failed == [("refunds · desk-agent", "seconds")]
    assert (root.get("tests"), root.get("failures")) == ("2", "1")


def test_markdown_is_a_comment_for_a_pull_request(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2", slower=1.5)
    assay_inline("gate", "--markdown", "gate.md")
    text = (assay_inline.folder / "gate.md").read_text()
    headline = text.splitlines()[0]
    assert headline.startswith("## ❌ ")
    assert numbers_in(headline) == ["1", "2"]
    wording(headline)
    row, command = "| ❌ | refunds · desk-agent | seconds |", "assay gate last --baseline main"
    assert row in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert command in text


def test_a_comment_repeats_the_gate_with_all_its_options(assay_inline: AssayInline, past: Past) -> None:
    past.run("2")
    asked = ("--metric", "score", "--metric", "seconds", "--tolerance", "seconds=20%", "--max-lost", "1")
    assay_inline("gate", *asked, "--markdown", "gate.md")
    commands = (assay_inline.folder / "gate.md").read_text().splitlines()
    (again,) = (line.split() for line in commands if line.startswith("assay gate"))
    assert again == ["assay", "gate", "last", "--baseline", "main", *asked]


def test_a_baseline_that_does_not_exist_is_reported_with_those_that_do(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    refusal = assay_inline("gate", "--baseline", "mian").refusal
    command = "assay baseline set mian RUN"
    assert all(part in refusal for part in ("'mian'", "Baselines: main.", "'main'", command))
    wording(refusal)


def test_a_changed_suite_is_refused(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("2", suite=suite_of("refunds", hash="s2"))
    refusal = assay_inline("gate").refusal
    assert all(part in refusal for part in ("'desk'", "s1", "s2"))
    wording(refusal)


def test_another_suite_is_refused(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("2", suite=suite_of("refunds", name="other", hash="o1"))
    refusal = assay_inline("gate").refusal
    assert all(part in refusal for part in ("'other'", "'desk'"))
    wording(refusal)


def test_another_machine_is_refused_unless_only_what_it_does_not_change_is_judged(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2", facts={**FACTS, "cpu": {"model": "Apple M3", "cores_logical": 8}})
    refusal = assay_inline("gate").refusal
    assert "Apple M3, 8 " in refusal
    assert "--metric score" in refusal
    wording(refusal)
    assert assay_inline("gate", "--metric", "score").code == 0


def test_simulated_figures_are_not_held_against_measured_ones(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2", simulated=True)
    refusal = assay_inline("gate").refusal
    assert all(part in refusal for part in ("'refunds · desk-agent'", "simulated"))
    wording(refusal)


def test_runs_without_anything_in_common_are_refused(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    run_id = assay_inline("run", "noop", "--json").json["run_id"]
    refusal = assay_inline("gate").refusal
    assert all(name in refusal for name in ("'main'", "'noop'", "'refunds'"))
    wording(refusal.replace(run_id, "RUN"))
    asked = assay_inline("gate", "--metric", "score").refusal
    assert "'main'" in asked
    assert "(none)" not in asked


@pytest.mark.parametrize("tolerance", ["five", "120%", "-3%", "seconds=x", "nan"])
def test_a_tolerance_that_is_none_is_refused(assay_inline: AssayInline, past: Past, tolerance: str) -> None:
    assert "--tolerance" in assay_inline("gate", f"--tolerance={tolerance}").refusal


def test_metrics_that_nobody_has_are_refused(assay_inline: AssayInline, past: Past, wording: Wording) -> None:
    past.run("2")
    for name, asked in (("second", ("--metric", "second")), ("usd", ("--tolerance", "usd=5%"))):
        refusal = assay_inline("gate", *asked).refusal
        assert f"'{name}'" in refusal
        assert "seconds" in refusal
        wording(refusal)


def test_a_file_that_cannot_be_written_is_reported(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2")
    assay_inline.write("taken", "")
    refusal = assay_inline("gate", "--junit", "taken/gate.xml", "--json").refusal
    assert "taken/gate.xml" in refusal
    wording(refusal)


def test_a_slow_hour_does_not_fail_a_gate_once_the_history_knows_how_hours_differ(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    for number, hour in enumerate((1.0, 1.08, 0.95, 1.1, 0.93, 1.05, 0.98, 1.12)):
        past.run(f"1.{number}", hour=hour)
    past.store.set_baseline("main", "run009")
    past.run("2", hour=1.22)
    done = assay_inline("gate")
    assert done.code == 0, done.out
    reason = unsure_seconds(assay_inline("gate", "--json"))
    assert reason in " ".join(done.out.split())
    wording(reason)


def unsure_seconds(done: Any) -> str:
    (found,) = (one for one in done.json["comparisons"] if one["metric"] == "seconds")
    assert found["verdict"] == "unsure"
    return str(found["reason"])


def test_times_of_two_runs_fail_no_gate_while_nobody_knows_what_runs_differ_by(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.store.tag("run000", [], ["noise"])
    past.run("2", slower=2.0)
    done = assay_inline("gate", "--json")
    assert done.code == 0
    assert "--rerun-baseline" in unsure_seconds(done)
    wording(unsure_seconds(done))
    wording(unsure_seconds(assay_inline("compare", "@main", "last", "--json")))
    assert assay_inline("gate", "--tolerance", "seconds=20%").code == 1
    assert assay_inline("gate", "--tolerance", "seconds=99.9%").code == 0


def test_five_earlier_runs_tell_what_runs_differ_by(assay_inline: AssayInline, past: Past) -> None:
    past.store.tag("run000", [], ["noise"])
    for hour in (1.01, 0.99, 1.02, 1.0):
        past.run("1", hour=hour)
    past.run("2", slower=1.5)
    assert assay_inline("gate").code == 1
    past.run("2", slower=1.03)
    assert assay_inline("gate").code == 0


def test_what_the_machines_own_pace_explains_does_not_fail_a_gate(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    slower_machine = {**FACTS, "noise": {**NOISE, "seconds": 0.078}}
    past.run("2", hour=1.3, facts=slower_machine)
    done = assay_inline("gate")
    assert done.code == 0, done.out
    reason = unsure_seconds(assay_inline("gate", "--json"))
    assert "30 %" in reason
    assert reason in " ".join(done.out.split())
    wording(reason)
    past.run("3", hour=1.3, slower=1.5, facts=slower_machine)
    assert assay_inline("gate").code == 1


def seen(chunk: float, spread: float = 0.05) -> dict[str, object]:
    """Facts of a machine that was looked at while the run went on."""
    during = {"samples": 16, "chunk_seconds": chunk, "spread": spread, "lost": 0.0}
    return {**FACTS, "noise_during": during}


@pytest.mark.parametrize(
    ("after", "slower", "code"),
    [
        (seen(0.001), 1.5, 1),
        (seen(0.0014), 1.4, 0),
        (seen(0.001, spread=0.8), 1.4, 0),
        (seen(0.001, spread=0.8), 3.0, 1),
        (seen(0.0013, spread=3.0), 2.0, 1),
        (seen(0.0007), 1.4, 1),
    ],
    ids=["steady", "slower", "varied", "varied less than this", "busy", "faster"],
)
def test_a_claim_that_the_machine_may_explain_by_what_it_did_during_the_runs_is_unsure(
    assay_inline: AssayInline, past: Past, after: dict[str, object], slower: float, code: int
) -> None:
    past.store.set_baseline("seen", past.run("1", facts=seen(0.001)).id)
    past.run("2", slower=slower, facts=after)
    done = assay_inline("gate", "--baseline", "seen", "--json")
    seconds = next(one for one in json.loads(done.out)["comparisons"] if one["metric"] == "seconds")
    assert (done.code, seconds["verdict"]) == (code, "worse" if code else "unsure")
    assert ("machine" in seconds["reason"]) == (code == 0)


def test_baselines_are_set_listed_and_deleted(
    assay_inline: AssayInline, past: Past, wording: Wording
) -> None:
    past.run("2")
    assert assay_inline("baseline", "set", "next", "last", "--json").json == {
        "baseline": "next",
        "run_id": "run002",
        "rated_again": 0,
    }
    assert assay_inline("baseline", "list", "--json").json == {"main": "run001", "next": "run002"}
    assert assay_inline("show", "@next", "--json").json["run_id"] == "run002"
    assert assay_inline("baseline", "delete", "@next", "--json").json == {
        "deleted": "next",
        "run_id": "run002",
        "rated_again": 0,
    }
    assert assay_inline("baseline", "list", "--json").json == {"main": "run001"}
    refusal = assay_inline("baseline", "delete", "next").refusal
    assert "'next'" in refusal
    wording(refusal)


UNASKED = {"cpu_seconds": 0.1, "score.exact": 1.0, "score.style": 1.0, "rss_max_bytes": 1e6}


def test_a_gate_does_not_fail_on_metrics_that_nobody_asked_about(
    assay_inline: AssayInline, past: Past
) -> None:
    past.store.set_baseline("main", past.run("1", more=UNASKED).id)
    past.run("2", more={**UNASKED, "cpu_seconds": 0.3, "score.style": 0.1})
    found = assay_inline("gate", "--json")
    assert found.code == 0
    verdicts = {one["metric"]: one["verdict"] for one in found.json["comparisons"]}
    assert {name for name, verdict in verdicts.items() if verdict is not None} == {"score", "seconds"}
    assert verdicts.keys() >= UNASKED.keys()
    assert found.json["counts"]["worse"] == 0
    assert sum(found.json["counts"].values()) == 2
    assert assay_inline("gate", "--metric", "cpu_seconds").code == 1
    assert assay_inline("gate", "--metric", "score.style").code == 1
    assert assay_inline("gate", "--tolerance", "cpu_seconds=5%").code == 1


def comparisons(assay_inline: AssayInline) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(assay_inline("gate", "--json").out)["comparisons"]
    return found


def test_metrics_that_nobody_asked_about_do_not_burden_the_others(
    assay_inline: AssayInline, past: Past
) -> None:
    past.store.set_baseline("main", past.run("1").id)
    past.run("2", wrong=7)
    (alone,) = (one for one in comparisons(assay_inline) if one["metric"] == "score")
    past.store.set_baseline("main", past.run("1", more=UNASKED).id)
    past.run("2", wrong=7, more=UNASKED)
    (among,) = (one for one in comparisons(assay_inline) if one["metric"] == "score")
    assert among["p_corrected"] == alone["p_corrected"]


def test_lost_cases_are_named_whatever_the_verdict(
    assay_inline: AssayInline, once: Past, wording: Wording
) -> None:
    once.run("2", wrong=2)
    done = assay_inline("gate", "--markdown", "gate.md", COLUMNS="300")
    assert done.code == 0
    headline = done.out.splitlines()[0]
    assert (headline[0], numbers_in(headline)) == ("✓", ["2", "2", "2"])
    wording(headline)
    found = assay_inline("gate", "--json").json
    (flips,) = found["flips"]
    assert found["lost"] == 2
    assert all(case in done.out for case in ("c00", "c01"))
    assert (flips["lost"], flips["won"], flips["unchanged"]) == (["c00", "c01"], [], 28)
    assert flips["repetitions"]["c00"] == {"a": [1, 1], "b": [0, 1]}


def test_a_comment_leads_with_the_verdict_the_lost_cases_and_what_changed(
    assay_inline: AssayInline, past: Past
) -> None:
    past.store.set_baseline("main", past.run("1", more=UNASKED).id)
    past.run("2", slower=1.5, wrong=1, more=UNASKED)
    assay_inline("gate", "--markdown", "gate.md")
    text = (assay_inline.folder / "gate.md").read_text()
    open_part = text[: text.index("<details>")]
    places = [open_part.index(part) for part in ("## ❌ ", "c00", "| seconds |")]
    assert places == sorted(places)
    for unchanged in ("cpu\\_seconds", "score.style", "| score |"):
        assert unchanged not in open_part
        assert unchanged in text
    assert text.count("<details>") == text.count("</details>")


def test_cases_are_lost_by_the_pass_mark_of_the_rubric(assay_inline: AssayInline, past: Past) -> None:
    """A score of 0.8 is no pass where 0.9 is asked for."""
    (benchmark,) = past.suite.benchmarks
    strict = replace(benchmark, rubric=replace(benchmark.rubric, pass_mark=0.9), hash="strict")
    suite = replace(past.suite, benchmarks=(strict,), hash="strict")
    past.store.set_baseline("main", past.run("1", suite=suite).id)
    past.run("2", suite=suite, more={"score": 0.8})
    (flips,) = assay_inline("gate", "--metric", "seconds", "--json").json["flips"]
    assert len(flips["lost"]) == 30


@pytest.fixture
def thrice(past: Past) -> Past:
    """Every case three times, in a new baseline `main` as well."""
    past.repetitions = 3
    past.store.set_baseline("main", past.run("1").id)
    return past


@pytest.mark.parametrize("lost", [2, 5])
def test_cases_lost_in_every_repetition_fail_the_gate(
    assay_inline: AssayInline, thrice: Past, lost: int, wording: Wording
) -> None:
    thrice.run("2", wrong=lost)
    done = assay_inline("gate", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    (score,) = (one for one in found["comparisons"] if one["metric"] == "score")
    assert score["verdict"] == "worse"
    wording(score["method"])
    assert score["p"] == pytest.approx(2 / 20**lost)
    assert score["difference_interval"][0] < score["difference"] < score["difference_interval"][1] < 0
    assert found["flips"][0]["lost"] == [f"c{number:02}" for number in range(lost)]
    assert found["lost"] == lost


def test_identical_scores_are_the_same_and_pass(assay_inline: AssayInline, thrice: Past) -> None:
    thrice.run("2")
    done = assay_inline("gate", "--metric", "score", "--json")
    assert done.code == 0
    assert [one["verdict"] for one in done.json["comparisons"] if one["metric"] == "score"] == ["same"]


def test_one_lost_case_passes_unless_none_may_be_lost(
    assay_inline: AssayInline, thrice: Past, wording: Wording
) -> None:
    thrice.run("2", wrong=1)
    passed = assay_inline("gate", "--metric", "score", COLUMNS="300")
    assert passed.code == 0
    found = assay_inline("gate", "--metric", "score", "--json")
    assert found.json["flips"][0]["repetitions"]["c00"] == {"a": [3, 3], "b": [0, 3]}
    (lost,) = (line for line in passed.out.splitlines() if "c00" in line)
    assert numbers_in(lost.partition("c00")[2]) == ["3", "3", "0", "3"]
    wording(lost)
    reason = score_of(found)["reason"]
    assert "4" in numbers_in(reason)
    assert reason in passed.out
    wording(reason)
    assert "baseline set" not in passed.err
    failed = assay_inline(
        "gate", "--metric", "score", "--max-lost", "0", "--junit", "j.xml", "--markdown", "m.md"
    )
    assert failed.code == 1
    headline = failed.out.splitlines()[0]
    assert (headline[0], numbers_in(headline)) == ("✗", ["1", "0"])
    wording(headline)
    assert "c00" in (assay_inline.folder / "m.md").read_text()
    failure = ElementTree.parse(assay_inline.folder / "j.xml").find(".//testcase[@name='lost cases']/failure")
    assert failure is not None
    assert "c00" in str(failure.text)
    assert assay_inline("gate", "--metric", "score", "--max-lost", "1").code == 0


def test_with_one_repetition_a_flip_is_named_with_the_repetitions_it_takes(
    assay_inline: AssayInline, once: Past, wording: Wording
) -> None:
    once.run("2", wrong=1)
    done = assay_inline("gate", "--metric", "score", COLUMNS="300")
    assert done.code == 0
    assert "--repetitions 4" in done.out
    wording(done.out, near="--repetitions 4")
    assert "baseline set" not in done.err
    assert assay_inline("gate", "--max-lost", "0").code == 1


def test_versions_of_one_agent_are_compared_over_the_same_cases(
    assay_inline: AssayInline, thrice: Past, wording: Wording
) -> None:
    thrice.run("2", wrong=1)
    done = assay_inline("compare", "@main", "last", COLUMNS="300")
    (lost,) = (line for line in done.out.splitlines() if line.startswith("✗ "))
    assert numbers_in(lost.partition("c00")[2]) == ["3", "3", "0", "3"]
    assert "maintain" not in done.out
    assert "baseline set" not in done.err
    found = assay_inline("compare", "@main", "last", "--json").json
    (score,) = (one for one in found["comparisons"] if one["metric"] == "score")
    assert score["p"] == pytest.approx(2 / 20)
    wording(score["method"])


def test_the_version_with_fewer_lost_cases_is_better_in_accuracy(
    assay_inline: AssayInline, thrice: Past
) -> None:
    """Over cases as a sample, two of thirty would prove nothing."""
    thrice.run("2", wrong=2)
    (showdown,) = assay_inline("compare", "@main", "last", "--json").json["agents"]
    assert showdown["winners"]["accuracy"] == showdown["a"]
    assert showdown["flips"][0]["lost"] == ["c00", "c01"]


def test_a_lower_score_within_a_wide_tolerance_passes_and_is_no_baseline(
    assay_inline: AssayInline, thrice: Past
) -> None:
    thrice.run("2", more={"score": 0.96})
    done = assay_inline("gate", "--metric", "score", "--tolerance", "10%")
    assert done.code == 0
    assert "baseline set" not in done.err


def test_runs_without_a_case_in_common_are_refused(assay_inline: AssayInline, wording: Wording) -> None:
    (assay_inline.folder / "suite.yaml").write_text(suite(numbers(4)))
    for case in ("c0", "c1"):
        assay_inline("run", "suite.yaml", "--agent", "oracle", "--case", case)
        if case == "c0":
            assay_inline("baseline", "set", "main", "last")
    refused = assay_inline("gate", "--max-lost", "0")
    run_id = assay_inline("runs", "list", "--json").json[0]["id"]
    assert refused.code == 2
    assert f"'{run_id}'" in refused.err
    assert "'main'" in refused.err
    wording(refused.err.replace(run_id, "RUN"))


def test_lost_cases_are_not_asked_for_where_there_are_no_cases(assay_inline: AssayInline) -> None:
    for _ in range(2):
        assay_inline("run", "noop", "--processes", "1")
        assay_inline("baseline", "set", "main", "last")
    refused = assay_inline("gate", "--max-lost", "0")
    assert (refused.code, "--max-lost" in refused.err) == (2, True)


def test_a_gate_by_time_alone_suggests_no_baseline_for_it_has_not_looked_at_scores(
    assay_inline: AssayInline, thrice: Past
) -> None:
    thrice.run("2", more={"score": 0.9})
    done = assay_inline("gate", "--metric", "seconds")
    assert done.code == 0
    assert "baseline set" not in done.err
