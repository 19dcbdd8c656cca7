from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import Assay
from tests.report.browsing import follow
from tests.server.browsing import browser as browser
from tests.server.browsing import visit as visit
from tests.server.conftest import write_project
from tests.server.service import Service, serving

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.hacked=1</script>"
HOSTILE_PATH = "%3Cscript%3Ewindow.hacked%3D1%3C/script%3E"
AGENT = """
def evil(text): return "<img src=x onerror='window.hacked=1'>" + text
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which three agents ran a suite, one of them with a hostile name and hostile answers."""
    folder = tmp_path_factory.mktemp("results")
    write_project(folder)
    assay = Assay(folder)
    (folder / "evil.py").write_text(AGENT)
    with (folder / "agents.yaml").open("a") as file:
        file.write(
            f"  - {{name: '{HOSTILE}', type: python, target: 'evil.py:evil', version: '1', price: free}}\n"
        )
    done = assay("run", "desk", "--agent", "good", "--agent", "bad", "--agent", HOSTILE, "-q")
    assert done.code == 0, done.err
    assert assay("run", "noop", "--repetitions", "5200", "-q").code == 0
    assert assay("load", "good", "--requests", "20", "--concurrency", "2", "-q").code == 0
    return folder


@pytest.fixture(scope="module")
def service(results: Path) -> Iterator[Service]:
    with serving(results) as found:
        yield found


@pytest.fixture(scope="module")
def run_id(service: Service) -> str:
    return str(service.get("/runs", name="desk").document["runs"][0]["id"])


@pytest.fixture(scope="module")
def trial_id(service: Service, run_id: str) -> int:
    found = service.get("/trials", run_id=run_id, agent_id="bad").document["results"]
    return int(found[0]["id"])


def test_the_list_of_runs_leads_to_a_run_and_its_analysis(visit, service, run_id):
    shown = visit(service, "/ui/runs")
    row = shown.page.locator("tbody tr", has_text=run_id)
    assert "completed" in row.inner_text()
    assert "360" in row.inner_text()
    follow(row.get_by_role("link"))
    shown.wait_for_analysis()
    shown.draw_charts()
    assert shown.page.locator(".tile", has_text="executions ok").count() == 1
    assert shown.page.locator("#environment").count() == 1
    shown.check_inert()


def test_filters_of_runs_are_in_the_address(visit, service):
    shown = visit(service, "/ui/runs")
    shown.page.get_by_label("State").select_option("failed")
    shown.page.wait_for_url("**/ui/runs?state=failed")
    assert shown.page.locator("tbody tr").count() == 0
    follow(shown.page.get_by_role("link", name="Show all runs"))
    assert shown.page.url.endswith("/ui/runs")
    assert shown.page.locator("tbody tr").count() == 3
    assert visit(service, "/ui/runs?agent=bad&name=desk").page.locator("tbody tr").count() == 1


def test_a_large_run_is_analysed_when_somebody_asks(visit, service):
    found = service.get("/runs", name="noop").document["runs"][0]
    shown = visit(service, f"/ui/runs/{found['id']}")
    assert "5,200" in shown.text
    assert shown.page.locator("[data-analysis]").count() == 0
    shown.page.get_by_role("link", name="Analyse").click()
    shown.wait_for_analysis()
    shown.check_inert()


def test_executions_of_a_trial_are_paged_filtered_and_sorted(visit, service, run_id, trial_id):
    shown = visit(service, f"/ui/runs/{run_id}/trials/{trial_id}")
    assert shown.page.locator("tbody tr").count() == 50
    shown.page.get_by_role("button", name="Time").click()
    times = [
        float(cell.get_attribute("data-sort")) for cell in shown.page.locator("td[data-label=Time]").all()
    ]
    assert times == sorted(times)
    assert len(set(times)) > 1
    follow(shown.page.get_by_role("link", name="More"))
    assert shown.page.locator("tbody tr").first.inner_text().startswith("#50")
    shown.page.get_by_label("Case").fill("c3")
    shown.page.get_by_label("Case").press("Enter")
    shown.page.wait_for_url(re.compile("case=c3"))
    assert shown.page.locator("tbody tr").count() == 3
    shown.check_inert()


def test_an_execution_shows_what_was_asked_answered_and_scored(visit, service, trial_id):
    shown = visit(service, f"/ui/trials/{trial_id}/executions/5")
    panels = {
        panel.locator("h2").inner_text(): panel.locator("pre").inner_text()
        for panel in shown.page.locator(".text").all()
    }
    assert panels == {"Input": "5", "Expected": "5", "Output": "?"}
    assert shown.page.locator(".headline .chip").inner_text() == "fail"
    scores = shown.page.locator("section", has_text="Scores").last
    assert scores.locator("tbody tr").count() == 1
    assert shown.page.locator("tr", has_text="seconds").count() >= 1
    follow(shown.page.get_by_role("link", name="Next"))
    assert shown.page.url.endswith("/executions/6")
    follow(shown.page.get_by_role("link", name="Previous"))
    assert shown.page.url.endswith("/executions/5")
    follow(shown.page.get_by_role("link", name="This case with every agent"))
    assert shown.page.locator("tbody tr").count() == 9
    shown.check_inert()


def test_a_case_in_a_run_leads_to_the_answers_of_every_agent(visit, service, run_id):
    shown = visit(service, f"/ui/runs/{run_id}")
    shown.wait_for_analysis()
    shown.page.locator("select[data-cases]").select_option("c1")
    shown.page.wait_for_url(re.compile("/ui/cases.suite=desk&benchmark=refunds&case=c1"))
    rows = [row.inner_text() for row in shown.page.locator("tbody tr").all()]
    assert sum("pass" in row for row in rows) == 3
    assert sum("fail" in row for row in rows) == 6
    assert any("<img src=x onerror='window.hacked=1'>1" in row for row in rows)
    shown.check_inert()


def test_an_agent_has_its_results_with_intervals_and_its_runs(visit, service, run_id):
    shown = visit(service, "/ui/agents")
    follow(shown.page.get_by_role("link", name="bad", exact=True))
    assert re.search(r"0\.25\s\[0\.\d\d, 0\.\d\d\]", shown.text)
    assert shown.page.locator("tr", has_text=run_id).count() == 1
    assert "10 of 40" in shown.text
    shown.check_inert()


def test_a_suite_says_how_hard_its_cases_are(visit, service):
    shown = visit(service, "/ui/suites")
    follow(shown.page.get_by_role("link", name="desk"))
    tiles = {
        tile.locator("dt").inner_text(): tile.locator(".value").inner_text()
        for tile in shown.page.locator(".tile").all()
    }
    assert tiles["cases that all agents pass"] == "0"
    assert tiles["cases that no agent passes"] == "0"
    assert tiles["flaky cases"] == "0"
    cases = shown.page.locator("#cases tbody tr")
    assert cases.count() == 40
    # One agent of three passes all cases, another every fourth, the third none.
    assert "0.33" in cases.first.inner_text()
    assert "1 of 3" in cases.first.inner_text()
    assert "0.67" in cases.last.inner_text()
    follow(cases.first.get_by_role("link"))
    assert "/ui/cases" in shown.page.url
    shown.check_inert()


def test_load_tests_are_listed_by_kind_with_their_key_figures(service):
    found = service.get("/findings/load", limit=1).document
    [row] = found["findings"]
    assert row["status"] == "completed"
    assert service.get("/findings/load", agent_id="nobody").document["findings"] == []
    assert all(figure["label"] and figure["value"] for figure in row["key_figures"])
    assert service.get(f"/runs/{row['run_id']}/findings/load").status == 200
    assert service.get("/findings/load", cursor=found["next_cursor"]).document["findings"] == []
    assert service.get("/findings/stress").document == {
        "kind": "stress",
        "findings": [],
        "next_cursor": None,
    }
    assert [service.get(path).status for path in ("/findings/weather", "/findings/load?cursor=x")] == [
        422,
        404,
    ]


def test_load_tests_are_listed_with_the_newest_in_full(visit, service):
    shown = visit(service, "/ui/load")
    assert shown.page.locator("tbody tr").first.locator("td").count() == 5
    shown.wait_for_analysis()
    shown.draw_charts()
    shown.check_inert()


@pytest.mark.parametrize("kind", ["stress", "teams", "profiles"])
def test_a_page_without_runs_says_how_to_make_one(visit, service, kind):
    shown = visit(service, f"/ui/{kind}")
    assert "assay " in shown.page.locator(".empty pre").inner_text()
    shown.check_inert()


def test_what_does_not_exist_is_reported_on_a_page(service, trial_id, run_id):
    for path in (
        "/ui/runs/none",
        "/ui/runs/none/analysis",
        f"/ui/runs/{run_id}/trials/999999",
        f"/ui/runs/other/trials/{trial_id}",
        f"/ui/trials/{trial_id}/executions/999",
        "/ui/agents/none",
        "/ui/suites/none",
        "/ui/suites/desk?benchmark=none",
        "/ui/cases?suite=desk&benchmark=refunds&case=none",
    ):
        answer = service.get(path)
        assert answer.status == 404, path
        assert answer.headers["content-type"].startswith("text/html")
    assert service.get("/ui/agents", page=0).status == 422


@pytest.mark.parametrize(("width", "scheme"), [(1380, "dark"), (400, "light")])
def test_pages_fit_every_screen_and_keep_hostile_texts_inert(visit, service, run_id, trial_id, width, scheme):
    hostile = service.get("/trials", run_id=run_id, agent_id=HOSTILE).document["results"][0]["id"]
    paths = (
        "/ui/runs",
        f"/ui/runs/{run_id}",
        f"/ui/runs/{run_id}/trials/{hostile}",
        f"/ui/trials/{hostile}/executions/3",
        "/ui/agents",
        f"/ui/agents/{HOSTILE_PATH}",
        "/ui/suites",
        "/ui/suites/desk",
        "/ui/cases?suite=desk&benchmark=refunds&case=c3",
        "/ui/load",
        "/ui/stress",
    )
    for path in paths:
        shown = visit(service, path, width, scheme)
        if path in (f"/ui/runs/{run_id}", "/ui/load"):
            shown.wait_for_analysis()
            shown.draw_charts()
        assert shown.page.evaluate("document.documentElement.dataset.theme") == scheme
        shown.check_width()
        shown.check_inert()
