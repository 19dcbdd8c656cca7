"""Regressions of all agents with their states, and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.command import Assay
from tests.past import NOON
from tests.server.conftest import write_project
from tests.server.service import Service, serving
from tests.store.test_store_regressions import FOUND

from assay.model.access import Scope
from assay.model.regression import RegressionState, Severity
from assay.server.regressions import BaselineList, RegressionPage, TrackedRegression
from assay.store.store import Store


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Five regressions of two agents, and a key that is called ann."""
    write_project(tmp_path)
    with Store.open(f"sqlite:///{tmp_path / '.assay' / 'assay.db'}") as store:
        severities = list(Severity)
        store.keep_regressions(
            replace(
                FOUND,
                id=f"aaaa000{number}",
                agent=("careful", "fast")[number % 2],
                severity=severities[number % 4],
                detected=NOON + timedelta(days=number),
            )
            for number in range(5)
        )
        _, token = store.create_key("ann", Scope.RUN)
    with serving(tmp_path) as found:
        found.headers["Authorization"] = f"Bearer {token}"
        yield found


def list_ids(service: Service, **chosen: object) -> str:
    page = RegressionPage.model_validate(service.get("/regressions", **chosen).document)
    return "".join(one.id[-1] for one in page.regressions)


def test_regressions_of_all_agents_are_listed_and_chosen(service: Service) -> None:
    assert list_ids(service) == "43210"
    assert list_ids(service, agent_id="fast") == "31"
    assert list_ids(service, severity="minor") == "40"
    assert list_ids(service, suite_id="other") == ""
    assert list_ids(service, state="confirmed") == ""
    first = service.get("/regressions", limit=2).document
    assert list_ids(service, limit=2, cursor=first["next_cursor"]) == "21"
    assert service.get("/regressions", limit=5, cursor=5).document == {"regressions": [], "next_cursor": None}


def test_a_state_is_kept_with_who_gave_it_and_when(service: Service) -> None:
    before = service.get("/regressions", agent_id="fast").document["regressions"][0]
    assert (before["changed_by"], before["history"]) == (None, [])
    path = "/regressions/aaaa0003"
    for state in ("investigating", "confirmed"):
        assert service.post(path, state=state, note=f"because {state}").status == 200
    marked = TrackedRegression.model_validate(service.post(path, state="resolved").document)
    assert (marked.state, marked.note, marked.changed_by) == ("resolved", "because confirmed", "ann")
    assert [(one.by, one.state.value) for one in marked.history] == [
        ("ann", "investigating"), ("ann", "confirmed"), ("ann", "resolved"),
    ]  # fmt: skip
    assert marked.history[0].at < marked.history[2].at
    assert list_ids(service, is_open=True) == "4210"
    assert list_ids(service, is_open=False) == "3"
    assert list_ids(service, state="resolved") == "3"


def test_what_is_no_regression_or_no_state_is_refused(service: Service) -> None:
    assert service.post("/regressions/ffff", state="confirmed").status == 404
    assert service.post("/regressions/aaaa", state="confirmed").status == 404
    assert service.post("/regressions/aaaa0001", state="new").status == 422
    assert service.post("/regressions/aaaa0001").status == 422


def test_the_command_keeps_changes_too(tmp_path: Path, service: Service) -> None:
    assert Assay(tmp_path)("regressions", "fast", "--mark", "aaaa0001", "false_positive").code == 0
    [found] = service.get("/regressions", state="false_positive").document["regressions"]
    assert [(one["by"], one["state"]) for one in found["history"]] == [("", RegressionState.FALSE_POSITIVE)]


def test_a_run_becomes_a_baseline(project: Path) -> None:
    assay = Assay(project)
    assert assay("run", "desk", "--agent", "good", "--limit", "2", "-q").code == 0
    [run] = assay("runs", "list", "--json").json
    with serving(project) as service:
        assert service.get("/baselines").document == {"baselines": []}
        made = {"name": "release", "run_id": run["id"]}
        assert service.post("/baselines", name="release", run_id="last").document == made
        assert BaselineList.model_validate(service.get("/baselines").document).model_dump() == {
            "baselines": [made]
        }
        assert service.post("/baselines", name="x", run_id="nothing").status == 404
        assert service.post("/baselines", name="", run_id="last").status == 422
        assay("runs", "tag", run["id"], "gate-rerun")
        assert service.post("/baselines", name="x", run_id=run["id"]).status == 422
    assert assay("baseline", "list", "--json").code == 0
