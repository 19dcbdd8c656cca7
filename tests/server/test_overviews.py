"""Coverage, search and success figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.proportion import proportion_confint
from tests.command import Assay
from tests.past import NOON, Past, suite_of
from tests.server.service import Service
from tests.store.test_store_regressions import FOUND

from assay.model.regression import Regression, RegressionState
from assay.model.success import FoundOpportunity, GateLoss, GateRecord
from assay.pipeline.coverage import measure_coverage
from assay.pipeline.success import measure_success
from assay.report.documents.operations import success_document
from assay.server.overviews import CoverageAnswer, SearchAnswer, SuccessAnswer
from assay.spec.settings import Settings, find_settings
from assay.store.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open("sqlite:///:memory:") as opened:
        yield opened


NOTHING = Settings(Path("/nonexistent"), "")


def test_coverage_tells_fresh_stale_and_never(store: Store) -> None:
    Past(store, "careful").run()
    Past(store, "fast", suite_of("refunds", name="other"), made=1).run()
    now = NOON + timedelta(days=30)
    latest = {cell.agent: cell.latest for cell in store.coverage()}
    found = measure_coverage(store, NOTHING, latest["careful"] + timedelta(days=30))
    cells = {(cell.agent, cell.suite): cell for cell in found.cells}
    assert {key: cell.state for key, cell in cells.items()} == {
        ("careful", "desk"): "fresh",
        ("careful", "other"): "never",
        ("fast", "desk"): "never",
        ("fast", "other"): "fresh",
    }
    assert cells["careful", "desk"].age_days == 30
    late = measure_coverage(store, NOTHING, now + timedelta(days=40))
    assert late.counts == {"fresh": 0, "stale": 2, "never": 2}
    page = measure_coverage(store, NOTHING, now, limit=1)
    assert (page.agents, page.next_agent, len(page.cells)) == (("careful",), "careful", 2)
    rest = measure_coverage(store, NOTHING, now, after="careful")
    assert (rest.agents, rest.next_agent, rest.counts) == (("fast",), None, page.counts)


def test_agents_that_never_ran_are_in_the_coverage(server: Service) -> None:
    found = CoverageAnswer.model_validate(server.get("/coverage").document)
    assert (found.agents, found.suites) == (["bad", "good", "slow"], ["desk"])
    assert found.counts == {"fresh": 2, "stale": 0, "never": 1}


def test_search_finds_agents_suites_runs_and_cases(server: Service) -> None:
    def find(q: str, **more: object) -> SearchAnswer:
        return SearchAnswer.model_validate(server.get("/search", q=q, **more).document)

    assert find("SLO").agents == ["slow"]
    desk = find("desk")
    assert (desk.suites, [run.name for run in desk.runs]) == (["desk"], ["desk"])
    run_id = desk.runs[0].id
    assert [run.id for run in find(run_id[:6]).runs] == [run_id]
    assert [(case.suite_id, case.benchmark_id, case.case) for case in find("c17").cases] == [
        ("desk", "refunds", "c17")
    ]
    assert [case.case for case in find("39").cases] == ["c39"]
    assert len(find("c", limit=7).cases) == 7
    for nothing in ("%", "_", "'", '"', "\\", "0x", "é"):
        found = find(nothing)
        assert (found.agents, found.suites, found.cases) == ([], [], []), nothing
    assert server.get("/search").status == 422
    assert server.get("/search", q="").status == 422
    assert server.get("/search", q="x" * 201).status == 422


@pytest.mark.parametrize("text", ['say "hi"', "Grüße", "50% off_", "back\\slash"])
def test_search_finds_inputs_with_any_characters(store: Store, text: str) -> None:
    suite = suite_of("refunds")
    benchmark = replace(
        suite.benchmarks[0], cases=(replace(suite.benchmarks[0].cases[0], input=f"Well, {text}?"),)
    )
    store.register_suite(replace(suite, benchmarks=(benchmark,)))
    assert [case.input for case in store.search(text, 5).cases] == [f"Well, {text}?"]
    assert store.search(text + "!", 5).cases == []


NOW = datetime(2026, 5, 20, tzinfo=UTC)


def found_on(day: datetime, number: int, **changes: Any) -> Regression:
    return replace(FOUND, id=f"bbbb{number:04}", detected=day, changed=day, **changes)


def test_without_data_nothing_is_claimed(store: Store) -> None:
    document = success_document(measure_success(store, NOTHING, NOW))
    SuccessAnswer.model_validate(document)
    recent = document["last_30_days"]
    for name in ("agents_benchmarked", "regressions_confirmed", "caught_by_gate", "opportunities_resolved"):
        assert recent[name] == {"count": 0, "of": 0, "percent": None, "interval": None}
    assert set(document["changes"].values()) == {None}


def test_agents_benchmarked_are_a_share_of_those_registered(store: Store, project: Path) -> None:
    settings = find_settings(project, {})
    Past(store, "good").run()
    [cell] = store.coverage()
    for days, count, missing in ((29, 1, ("bad", "slow")), (31, 0, ("bad", "good", "slow"))):
        found = measure_success(store, settings, store.run("run001").started + timedelta(days=days))
        assert (found.last_30_days.benchmarked.count, found.last_30_days.benchmarked.of) == (count, 3)
        assert found.not_benchmarked == missing
        assert found.never_benchmarked == ("bad", "slow")
    assert cell.agent == "good"
    months = measure_success(store, settings, NOW).months
    by_month = {f"{one.begins:%m}": (one.benchmarked.count, one.benchmarked.of) for one in months}
    # Past months know only of agents that had results by then.
    assert by_month == {"05": (0, 3), "04": (0, 1), "03": (1, 1), "02": (0, 0), "01": (0, 0), "12": (0, 0)}


def test_regressions_count_as_people_judged_them(store: Store) -> None:
    april, may = datetime(2026, 4, 10, tzinfo=UTC), datetime(2026, 5, 10, tzinfo=UTC)
    store.keep_regressions(found_on(april if n < 4 else may, n) for n in range(10))
    for number, states in {
        0: ["false_positive"], 1: ["confirmed"], 4: ["confirmed", "resolved"], 5: ["false_positive", "confirmed"],
        6: ["confirmed"], 7: ["confirmed", "false_positive"], 8: ["resolved"],
    }.items():  # fmt: skip
        for state in states:
            store.mark_regression("gpt", f"bbbb{number:04}", RegressionState(state), author="ann", now=may)
    found = measure_success(store, NOTHING, NOW)
    assert (found.last_30_days.regressions, found.months[1].regressions) == (6, 4)
    assert (found.last_30_days.detection.count, found.last_30_days.detection.of) == (3, 4)
    low, high = proportion_confint(3, 4, method="wilson")
    assert (found.last_30_days.detection.low, found.last_30_days.detection.high) == pytest.approx((low, high))
    assert (found.months[1].detection.count, found.months[1].detection.of) == (1, 2)
    assert success_document(found)["changes"]["regressions_found_percent"] is None


def test_a_regression_is_caught_by_a_gate_that_failed_on_it(store: Store) -> None:
    day = datetime(2026, 5, 10, tzinfo=UTC)
    store.keep_regressions(
        [
            found_on(day, 1),
            found_on(day, 2, benchmark="returns"),
            found_on(day, 3, after="1.5 run r9", benchmark="billing"),
            found_on(day, 4, benchmark="late"),
            found_on(day, 5, benchmark="false"),
        ]
    )
    store.mark_regression("gpt", "bbbb0005", RegressionState.FALSE_POSITIVE)
    loss = GateLoss("gpt", "1.4", "desk", "refunds", "seconds")
    other = replace(loss, benchmark="returns", metric="score")
    store.keep_gate_result(GateRecord("r8", "main", day - timedelta(hours=1), False, (loss, other)))
    store.keep_gate_result(
        GateRecord("r9", "main", day, False, (replace(loss, version="1.5", benchmark="billing", metric=""),))
    )
    store.keep_gate_result(
        GateRecord("r10", "main", day + timedelta(days=2), False, (replace(loss, benchmark="late"),))
    )
    store.keep_gate_result(GateRecord("r11", "main", day, True))
    found = measure_success(store, NOTHING, NOW).last_30_days
    # returns failed on another metric, late came later, false is no regression.
    assert (found.caught.count, found.caught.of) == (2, 4)
    assert (found.gates.count, found.gates.of) == (3, 4)


def test_an_opportunity_that_a_later_profile_does_not_find_is_resolved(store: Store) -> None:
    day = datetime(2026, 5, 10, tzinfo=UTC)
    first = FoundOpportunity("a", "ask · a", "caching", "agent.py answer", 0.4, "r1", day)
    second = replace(first, category="batching")
    elsewhere = replace(first, place="other · a")
    store.keep_opportunities([("a", "ask · a"), ("a", "other · a")], [first, second, elsewhere], day)
    later = day + timedelta(days=1)
    store.keep_opportunities([("a", "ask · a")], [replace(second, found=later, run_id="r2")], later)
    kept = {(one.category, one.place): one for one in store.opportunities()}
    assert kept["caching", "ask · a"].resolved == later
    assert kept["batching", "ask · a"] == replace(second, run_id="r2")
    assert kept["caching", "other · a"].resolved is None
    found = measure_success(store, NOTHING, NOW).last_30_days
    assert (found.opportunities, found.resolved.count, found.resolved.of) == (3, 1, 3)
    store.keep_opportunities([("a", "ask · a")], [first], later + timedelta(days=1))
    assert measure_success(store, NOTHING, NOW).last_30_days.resolved.count == 1


def test_gates_and_profiles_of_the_command_are_counted(project: Path, server: Service) -> None:
    SuccessAnswer.model_validate(server.get("/success").document)
    assay = Assay(project)
    for agent in ("good", "bad"):
        assert assay("run", "desk", "--agent", agent, "-q").code == 0
        if agent == "good":
            assay("baseline", "set", "main", "last")
    (project / "agents.yaml").write_text(
        (project / "agents.yaml").read_text().replace("name: bad", "name: spare")
    )
    (project / "agents.yaml").write_text(
        (project / "agents.yaml")
        .read_text()
        .replace("agents.py:good', version: '1'", "agents.py:bad', version: '2'")
    )
    assert assay("run", "desk", "--agent", "good", "-q").code == 0
    assert assay("gate", "last", "--baseline", "main").code == 1
    assert assay("regressions", "good", "--json").json["has_regressions"]
    with Store.open(f"sqlite:///{project / '.assay' / 'assay.db'}") as store:
        [gate] = store.gate_results()
        assert ("good", "2", "refunds", "score") in {
            (one.agent, one.version, one.benchmark, one.metric) for one in gate.losses
        }
        found = measure_success(store, find_settings(project, {}), datetime.now(UTC)).last_30_days
    assert (found.gates.count, found.caught.count) == (1, 1)
