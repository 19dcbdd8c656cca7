"""Alerts, review, coverage, schedules, success, search and settings in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest
from tests.report.browsing import follow
from tests.server.opened import OpenPage
from tests.server.service import Service, serving
from tests.server.test_pages_of_findings import run_versions

from assay.model.access import Scope
from assay.model.label import LabelVerdict
from assay.model.regression import RegressionState
from assay.store.labels import LabelFilter
from assay.store.store import Store

pytestmark = pytest.mark.browser

PATHS = {
    "/ui/alerts": "Regressions",
    "/ui/review": "to label",
    "/ui/coverage": "2 agents on 1 suite",
    "/ui/coverage?agent=changing": "Suites of changing",
    "/ui/schedules": "at 06:30, Monday to Friday",
    "/ui/success": "goal 90 %",
    "/ui/search?q=chang": "changing",
    "/ui/search?q=": "What are you looking for?",
    "/ui/search?q=%3Cscript%3Ewindow.broken%3D1%3C%2Fscript%3E": "Nothing has",
    "/ui/settings": "Create key",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("operations")
    run_versions(made)
    return made


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    with serving(folder) as running:
        yield running


def open_store(folder: Path) -> Store:
    return Store.open(f"sqlite:///{folder / '.assay' / 'assay.db'}")


@pytest.mark.parametrize("path", PATHS)
def test_a_page_shows_what_it_is_for(service: Service, open_url: OpenPage, path: str) -> None:
    for width, scheme in ((1380, "light"), (400, "dark")):
        opened = open_url(service.url + path, width, scheme)
        assert PATHS[path] in opened.page.inner_text("main")
        assert opened.is_within_its_width
        assert not opened.complaints
        assert opened.page.evaluate("window.broken") is None


def test_a_person_says_what_became_of_a_regression(
    service: Service, folder: Path, open_url: OpenPage
) -> None:
    opened = open_url(f"{service.url}/ui/alerts?agent=changing")
    page, note = opened.page, "<b>the new prompt</b>"
    page.locator("details.regression summary").first.click()
    page.locator("details.regression select[name=state]").first.select_option("investigating")
    page.locator("details.regression input[name=note]").first.fill(note)
    follow(page.get_by_role("button", name="Save").first)
    # Back on the page as it was asked for, with the new state.
    assert "agent=changing" in page.url
    text = page.locator("details.regression").first.text_content()
    assert "investigating" in text
    assert note in text
    with open_store(folder) as store:
        (found,) = [one for one in store.regressions("changing") if one.note == note]
        assert found.state is RegressionState.INVESTIGATING
        assert found.is_marked
    page.goto(f"{service.url}/ui/alerts?state=resolved")
    assert page.locator("details.regression").count() == 0
    assert not opened.complaints


def test_a_person_labels_answers_with_the_keyboard(
    service: Service, folder: Path, open_url: OpenPage
) -> None:
    opened = open_url(f"{service.url}/ui/review?suite=desk&agent=changing")
    page = opened.page

    def press(key: str) -> None:
        with page.expect_navigation():
            page.keyboard.press(key)

    page.locator("#review-title").wait_for()
    before = count_waiting(page)
    first = page.inner_text("#review-title")
    press("p")
    assert count_waiting(page) == before - 1
    press("f")
    assert count_waiting(page) == before - 2
    press("s")
    assert count_waiting(page) == before - 2
    assert "skip=1" in page.url
    # Where somebody writes, a letter is a letter.
    page.locator("input[name=note]").fill("")
    page.locator("input[name=note]").press("p")
    assert page.locator("input[name=note]").input_value() == "p"
    with open_store(folder) as store:
        labels = store.labels(LabelFilter(suite="desk"))
        assert [label.verdict for label in labels] == [LabelVerdict.FAIL, LabelVerdict.PASS]
        assert labels[-1].case == first
        assert {label.author for label in labels} == {"local"}
    agreement = page.locator("#agreement").inner_text()
    assert "all scorers together" in agreement
    assert "Kappa" in agreement
    assert re.search(r"\d %? ?\[", agreement)
    assert not opened.complaints


def count_waiting(page: object) -> int:
    found = re.search(r"([\d,]+) answers? to label", page.inner_text("main"))  # type: ignore[attr-defined]
    assert found
    return int(found[1].replace(",", ""))


def test_doubtful_answers_come_first(service: Service) -> None:
    page = service.get("/ui/review", suite="desk", agent="changing").body.decode()
    assert "random sample" in page or "scorers disagree" in page
    assert 'data-key="p"' in page


def test_search_finds_things_of_every_kind(service: Service, open_url: OpenPage) -> None:
    page = open_url(service.url).page
    page.keyboard.press("/")
    page.keyboard.type("desk")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/ui/search?q=desk")
    assert page.locator("#suites a", has_text="desk").count() == 1
    assert page.locator("#runs a").count() == 2
    page.goto(f"{service.url}/ui/search?q=%3Ci%3E7")
    assert "<i>7</i>" in page.inner_text("#cases")
    assert page.locator("#cases i").count() == 0


def test_an_administrator_makes_and_revokes_keys(
    tmp_path_factory: pytest.TempPathFactory, open_url: OpenPage
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    (folder / "assay.toml").write_text("[assay]\n")
    with open_store(folder) as store:
        _, token = store.create_key("owner", Scope.ADMIN)
    with serving(folder) as service:
        opened = open_url(f"{service.url}/ui/settings")
        page = opened.page
        assert page.url.endswith("/login?next=%2Fui%2Fsettings")
        page.fill("#key", token)
        follow(page.get_by_role("button", name="Log in"))
        assert page.url.endswith("/ui/settings")
        page.fill("input[name=name]", "<u>ci</u>")
        page.select_option("select[name=scope]", "run")
        follow(page.get_by_role("button", name="Create key"))
        made = page.inner_text("#new-key")
        assert made.startswith("assay_")
        answer = service.request("GET", "/runs", headers={"authorization": f"Bearer {made}"})
        assert answer.status == 200
        # Shown once: it is on no later page.
        page.goto(f"{service.url}/ui/settings")
        assert made not in page.content()
        assert token not in page.content()
        assert "<u>ci</u>" in page.inner_text("#keys")
        page.on("dialog", lambda dialog: dialog.accept())
        row = page.locator("#keys tr", has_text="<u>ci</u>")
        follow(row.get_by_role("button", name="Revoke"))
        assert "revoked" in page.locator("#keys tr", has_text="<u>ci</u>").inner_text()
        sleep(1.5)  # a server that knows the key may take a second to notice
        refused = service.request("GET", "/runs", headers={"authorization": f"Bearer {made}"})
        assert refused.status == 401
        assert "POST /ui/settings/keys/revoke" in page.inner_text("#audit")
        assert not opened.complaints


def test_whoever_may_only_read_is_offered_nothing_to_change(
    tmp_path_factory: pytest.TempPathFactory, open_url: OpenPage
) -> None:
    folder = tmp_path_factory.mktemp("reader")
    run_versions(folder)
    with open_store(folder) as store:
        _, token = store.create_key("reader", Scope.READ)
    with serving(folder) as service:
        page = open_url(f"{service.url}/login").page
        page.fill("#key", token)
        follow(page.get_by_role("button", name="Log in"))
        assert page.url == f"{service.url}/"
        for path in ("/ui/alerts", "/ui/review", "/ui/settings"):
            page.goto(service.url + path)
            assert page.locator("main form[method=post]").count() == 0, path
        assert "Create key" not in page.inner_text("main")
        assert "Audit log" not in page.inner_text("main")
