"""What overviews, labels and alerts read, on both kinds of databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.past import NOON, Past, suite_of
from tests.store.test_store_regressions import FOUND

from assay.model.alert import Alert, AlertKind, AlertState
from assay.model.label import LabelVerdict
from assay.model.regression import RegressionState, Severity
from assay.store.labels import LabelFilter
from assay.store.regressions import RegressionFilter
from assay.store.store import Store


def test_regressions_are_chosen_by_severity_and_state(store: Store) -> None:
    for number, severity in enumerate(Severity):
        store.keep_regressions([replace(FOUND, id=f"{number:08}", agent=f"a{number % 2}", severity=severity)])
    store.mark_regression("a1", "00000001", RegressionState.RESOLVED, author="ann")

    def find(**chosen: object) -> list[str]:
        return sorted(one.id[-1] for one in store.regression_page(RegressionFilter(**chosen)))  # type: ignore[arg-type]

    assert find(severity=Severity.MAJOR) == ["2"]
    assert find(is_open=True) == ["0", "2", "3"]
    assert find(is_open=False) == find(state=RegressionState.RESOLVED) == ["1"]
    assert find(agent="a0") == ["0", "2"]
    assert [change.author for change in store.regression_changes(["00000001"])["00000001"]] == ["ann"]


def test_overviews_count_runs_of_every_version_of_an_agent(store: Store) -> None:
    past = Past(store, "careful")
    for version in ("1", "2", "2"):
        past.run(version)
    Past(store, "fast", suite_of("refunds", name="other"), made=3).run()
    found = {(cell.agent, cell.suite): cell.runs for cell in store.coverage()}
    assert found == {("careful", "desk"): 3, ("fast", "other"): 1}
    assert [cell.agent for cell in store.coverage(["fast", "nobody"])] == ["fast"]
    assert (store.agents_on("desk"), store.agents_on("nothing")) == (["careful"], [])
    latest = store.latest_by_suite()
    assert {(agent, suite): at for suite, of in latest.items() for agent, at in of.items()} == {
        (cell.agent, cell.suite): cell.latest for cell in store.coverage()
    }
    assert store.latest_by_suite(["other", "nothing"]) == {"other": latest["other"]}
    assert store.latest_results().keys() == {"careful", "fast"}
    day = timedelta(days=1)
    activity = store.agent_activity([(NOON - day, NOON + day), (NOON + day, NOON + 2 * day)])
    assert {agent: one.is_active for agent, one in activity.items()} == {
        "careful": (True, False),
        "fast": (True, False),
    }


def test_a_search_ignores_case_and_takes_no_wildcards(store: Store) -> None:
    Past(store, "Careful_1").run()
    found = store.search("REFUL_", 5)
    assert (found.agents, found.suites) == (["Careful_1"], [])
    assert store.search("areful%", 5).agents == []
    assert [case.case for case in store.search("WHAT IS 7 ", 5).cases] == ["c07"]
    assert [run.id for run in store.search("run0", 5).runs] == ["run001"]
    store.tag("run001", ["Nightly"], [])
    assert [run.id for run in store.search("nightly", 5).runs] == ["run001"]


def test_labels_stand_beside_scores(store: Store) -> None:
    [stored] = Past(store, "careful").run(wrong=1).trials
    for case, verdict in (("c00", LabelVerdict.FAIL), ("c01", LabelVerdict.FAIL)):
        given = store.label(stored.id, case, None, "ann", verdict, "", NOON)
        assert [label.id for label in given] == sorted({label.id for label in given})
    assert len(store.labels(LabelFilter(suite="desk", author="ann"))) == 6
    found = store.read_labelled_scores(LabelFilter(benchmark="refunds"))
    assert {(one.case, one.is_passed_by_person, one.is_passed_by_scorer) for one in found} == {
        ("c00", False, False),
        ("c01", False, True),
    }


def test_an_alert_comes_back_as_it_was_raised(store: Store) -> None:
    alert = Alert("k", AlertKind.STALE_AGENT, "moderate", "ä ✓", {"agent_id": "a"}, NOON)
    assert store.raise_alerts([alert, alert]) == [alert]
    [kept] = store.alerts(state=AlertState.PENDING)
    assert kept == replace(alert, id=kept.id, due=NOON)
    assert store.alerts(before=kept.id) == []


def test_agents_with_trials_are_those_of_any_version_until_their_last_run_goes(store: Store) -> None:
    past = Past(store, "careful")
    past.run("1")
    past.run("2")
    Past(store, "fast", made=2).run()
    for gone, left in (("run002", ["careful", "fast"]), ("run003", ["careful"]), ("run001", [])):
        store.delete(gone)
        assert (store.agents_with_trials(), store.agents_on("desk")) == (left, left)
        assert store.count_agents("desk") == len(left)
