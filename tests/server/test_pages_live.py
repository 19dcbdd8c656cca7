from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from tests.command import Assay
from tests.report.browsing import follow
from tests.server.browsing import PATIENCE
from tests.server.browsing import browser as browser
from tests.server.browsing import visit as visit
from tests.server.service import Answer, Service, serving

FORM = {"content-type": "application/x-www-form-urlencoded"}


def send_form(service: Service, path: str, **fields: str) -> Answer:
    return service.request(
        "POST",
        path,
        urlencode(fields).encode(),
        {**FORM, "origin": service.url, "sec-fetch-site": "same-origin"},
    )


@pytest.fixture
def service(project) -> Iterator[Service]:
    with serving(project) as found:
        yield found


@pytest.mark.browser
def test_a_run_started_in_the_browser_is_followed_until_its_results_are_there(visit, service):
    shown = visit(service, "/ui/agents/slow")
    assert "no results yet" in shown.text
    shown.page.get_by_label("Repetitions").fill("1")
    shown.page.get_by_label("First cases only").fill("8")
    follow(shown.page.get_by_role("button", name="Run"))
    assert "/ui/runs/" in shown.page.url
    shown.page.evaluate("window.isSamePage = true")
    advanced = "document.querySelector('#live progress')?.value > 0.3 && window.isSamePage"
    shown.wait_until(advanced)
    assert " of 8 executions" in shown.page.locator("[data-done]").inner_text()
    shown.wait_for_analysis()
    assert shown.page.locator(".headline .chip").first.inner_text() == "completed"
    shown.check_inert()


@pytest.mark.browser
def test_a_run_is_cancelled_and_resumed_by_buttons(visit, service):
    started = send_form(service, "/ui/run", agent="slow", suite="desk", repetitions="1", limit="10")
    assert started.status == 303
    shown = visit(service, started.headers["location"])
    shown.wait_until("document.querySelector('#live progress')?.value > 0.1")
    shown.page.get_by_role("button", name="Cancel").click()
    resume = shown.page.get_by_role("button", name="Resume")
    resume.wait_for(timeout=PATIENCE)
    shown.wait_for_analysis()
    done = shown.page.locator(".tile", has_text="executions ok").locator(".value").inner_text()
    assert 0 < int(done) < 10
    resume.click()
    shown.page.locator(".headline .chip", has_text="completed").wait_for(timeout=PATIENCE)
    shown.wait_for_analysis()
    # The analysis of the cancelled run was kept; what is shown is that of the whole run.
    assert shown.page.locator(".tile", has_text="executions ok").locator(".value").inner_text() == "10"


def test_a_form_that_makes_no_sense_is_refused_and_starts_nothing(service):
    assert send_form(service, "/ui/run", agent="slow", suite="desk", repetitions="many").status == 422
    assert send_form(service, "/ui/run", agent="slow", suite="desk", limit="0").status == 422
    assert send_form(service, "/ui/run", agent="slow", suite="none").status == 404
    assert send_form(service, "/ui/run", agent="none", suite="desk").status == 404
    assert send_form(service, "/ui/run").status == 422
    assert send_form(service, "/ui/runs/none/cancel").status == 404
    assert service.get("/runs/queue").document["queue"] == []
    assert service.get("/runs").document["runs"] == []


@pytest.mark.browser
def test_a_key_that_may_only_read_sees_no_forms_that_act(visit, project):
    key = Assay(project)("key", "create", "reader", "--scope", "read", "--json").json["key"]
    with serving(project) as service:
        shown = visit(service, "/ui/agents/good")
        shown.page.get_by_label("Key").fill(key)
        follow(shown.page.get_by_role("button", name="Log in"))
        assert shown.page.url.endswith("/ui/agents/good")
        assert shown.page.get_by_role("button", name="Run").count() == 0
        asked = "fetch('/ui/run', {method: 'POST', body: new URLSearchParams({agent: 'good', suite: 'desk'})}).then((answer) => answer.status)"
        assert shown.page.evaluate(asked) == 403
