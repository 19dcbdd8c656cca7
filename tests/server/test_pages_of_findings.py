"""Leaderboard, timeline, cost and comparisons in a real browser, with names and outputs that try to break out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay
from tests.report.browsing import follow
from tests.server.opened import OpenPage
from tests.server.service import Service, serving

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.broken=1</script><img src=x onerror='window.broken=1'>"
AGENTS = """
def good(text): return text
def worse(text): return text if int(text) % 3 else HOSTILE
""".replace("HOSTILE", repr(HOSTILE))


def write_versions(folder: Path, version: str) -> Assay:
    """Two agents; `changing` answers a third of the cases with markup from version 2 on."""
    assay = Assay(folder)
    assay.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\nsuites = ["suites/*.yaml"]\n')
    assay.write("agents.py", AGENTS)
    target = "good" if version == "1" else "worse"
    lines = [
        f"  - {{name: changing, type: python, target: 'agents.py:{target}', version: '{version}', price: free}}",
        "  - {name: \"<b>bold</b>\", type: python, target: 'agents.py:good', version: '1', price: free}",
    ]
    assay.write("agents.yaml", "agents:\n" + "\n".join(lines) + "\n")
    cases = "\n".join(
        f"      - {{id: {json.dumps(f'<i>{n}</i>')}, input: '{n}', expected: '{n}'}}" for n in range(30)
    )
    assay.write(
        "suites/desk.yaml",
        "suite: desk\nversion: '1'\ncategory: accuracy\nschedule: '30 6 * * mon-fri'\nbenchmarks:\n  - id: answers\n"
        "    scorers: [exact, contains]\n    iterations: {warmup: 0, measured: 2}\n"
        f"    rubric: {{reference: {{seconds: 0.001}}}}\n    cases:\n{cases}\n",
    )
    return assay


def run_versions(folder: Path) -> None:
    for version in ("1", "2"):
        assay = write_versions(folder, version)
        done = assay("run", "desk", "--agent", "changing", "--agent", "<b>bold</b>", "-q")
        assert done.code == 0, done.err
    found = assay("regressions", "changing", "--json")
    assert json.loads(found.out)["regressions"], found.out


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("findings")
    run_versions(folder)
    with serving(folder) as running:
        yield running


def find_runs(service: Service) -> list[str]:
    """The newest first."""
    return [run["id"] for run in service.get("/runs").document["runs"]]


PATHS = {
    "/ui/leaderboard": "Leaderboard of desk",
    "/ui/leaderboard?suite=desk&metric=accuracy&limit=1": "1 more agent",
    "/ui/timeline?agent=changing": "1 open regression",
    "/ui/cost?suite=desk&volume=5000": "5,000 tasks a month",
    "/ui/cost?suite=desk&limit=1": "1 more row left out",
    "/ui/radar?suite=desk&agent=changing": "Five dimensions on desk",
    "/ui/compare?a=changing&b=%3Cb%3Ebold%3C%2Fb%3E": "Answers side by side",
    "/ui/compare?a=changing": "changing@1 to changing@2",
}


@pytest.mark.parametrize("path", PATHS)
def test_a_page_shows_its_findings(service: Service, open_url: OpenPage, path: str) -> None:
    for width, scheme in ((1380, "light"), (400, "dark")):
        opened = open_url(service.url + path, width, scheme)
        assert PATHS[path] in opened.page.inner_text("main")
        opened.drawn()
        assert opened.is_within_its_width
        assert not opened.complaints
        assert opened.page.evaluate("window.broken") is None


def test_names_of_agents_stay_text(service: Service, open_url: OpenPage) -> None:
    opened = open_url(f"{service.url}/ui/leaderboard?suite=desk")
    assert "<b>bold</b>" in opened.page.inner_text("table")
    assert opened.page.locator("table b", has_text="bold").count() == 0


def test_the_controls_of_a_page_are_its_address(service: Service, open_url: OpenPage) -> None:
    page = open_url(f"{service.url}/ui/leaderboard").page
    page.select_option("select[name=metric]", "speed")
    page.wait_for_url("**metric=speed**")
    assert page.locator("select[name=metric]").input_value() == "speed"
    assert "by speed" in page.inner_text(".head")
    # Fields that say nothing stay out of it.
    assert "category=" not in page.url


def test_two_runs_are_compared_with_their_answers_side_by_side(service: Service, open_url: OpenPage) -> None:
    newer, older = find_runs(service)
    opened = open_url(f"{service.url}/ui/compare?a={older}&b={newer}")
    page = opened.page
    follow(page.get_by_role("link", name="All answers: answers, changing"))
    assert page.locator("article.pair").count() == 10
    text = page.inner_text("main")
    assert "lower in 10" in " ".join(text.split())
    # The answer is markup, and stands there as text.
    assert "window.broken=1" in text
    page.select_option("select[name=only]", "lower")
    page.wait_for_url("**only=lower**")
    chips = page.locator("article.pair header .chip").all_inner_texts()
    assert chips == ["B scores lower"] * 10
    assert page.evaluate("window.broken") is None
    assert not opened.complaints


def test_cases_that_do_not_differ_can_be_paged_through(service: Service, open_url: OpenPage) -> None:
    newer, older = find_runs(service)
    page = open_url(f"{service.url}/ui/compare?a={older}&b={newer}").page
    follow(page.get_by_role("link", name="All answers: answers, changing"))
    seen: list[str] = page.locator("article.pair h3").all_inner_texts()
    while page.locator("a[rel=next]").count():
        follow(page.locator("a[rel=next]"))
        seen += page.locator("article.pair h3").all_inner_texts()
    assert len(seen) == len(set(seen)) == 30
    page.select_option("select[name=only]", "higher")
    page.wait_for_url("**only=higher**")
    assert page.locator("article.pair").count() == 0


@pytest.mark.parametrize("ref", ["/etc/passwd", "assay.toml", "../x.json", "nobody", "http://127.0.0.1/"])
def test_a_side_that_is_a_file_or_unknown_is_refused(service: Service, ref: str) -> None:
    page = service.get("/ui/compare", a=ref, b="changing").body.decode()
    assert "Unknown run or agent" in page
    assert "[assay]" not in page


def test_several_agents_are_compared_in_all_pairs(service: Service) -> None:
    refs = {"a": "changing@1", "b": "changing@2", "c": "<b>bold</b>", "suite": "desk"}
    page = service.get("/ui/compare", **refs).body.decode()
    assert "head to head" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    over_time = service.get("/ui/compare", **{**refs, "view": "time"}).body.decode()
    assert "Last against first" in over_time


def test_a_page_without_results_says_what_to_do(tmp_path: Path, open_url: OpenPage) -> None:
    Assay(tmp_path).write("assay.toml", "[assay]\n")
    with serving(tmp_path) as empty:
        for path in (
            "leaderboard",
            "timeline",
            "cost",
            "compare",
            "review",
            "coverage",
            "schedules",
            "alerts",
        ):
            opened: Any = open_url(f"{empty.url}/ui/{path}", 400)
            assert not opened.complaints, path
            assert opened.is_within_its_width, path
            assert len(opened.page.inner_text("main")) > 60, path
        assert "assay run SUITE" in empty.get("/ui/leaderboard").body.decode()
        assert "schedule:" in empty.get("/ui/schedules").body.decode()
