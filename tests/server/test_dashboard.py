"""The dashboard over the results of the demo: every page is filled, in a real browser, with a picture of each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.browsing import Visit
from tests.server.browsing import browser as browser
from tests.server.browsing import visit as visit
from tests.server.service import Service, serving
from tests.test_readme_and_examples import run_in_one_shell

from assay.server.html import NAVIGATION

ROOT = Path(__file__).parents[2]
PLACES = [place.path for places in NAVIGATION.values() for place in places]
COMPONENTS = ["leaderboard", "radar", "cost", "timeline", "head-to-head", "stress", "alerts"]
"""Those of the performance specification, section 10.1."""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """What `make demo` leaves, served."""
    folder = tmp_path_factory.mktemp("dashboard")
    # Pages show paths: one without a place to break is wider than a phone.
    examples = shutil.copytree(ROOT / "examples", folder / f"examples{'-of-a-long-path' * 5}")
    done = run_in_one_shell([f"sh '{examples / 'demo.sh'}' 2>&1"], folder)
    assert done.returncode == 0, done.stdout[-3000:]
    with serving(folder / "demo") as service:
        yield service


@pytest.fixture(scope="module")
def pictures() -> Path | None:
    """Where screenshots go, to be looked at: the folder that ASSAY_SCREENSHOTS names. Without it none are taken."""
    folder = os.environ.get("ASSAY_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) if folder else None


def test_the_first_page_shows_the_seven_components(demo: Service, visit: Callable[..., Visit]) -> None:
    shown = visit(demo, "/?suite=puzzles&a=moody&b=exact")
    assert [part.get_attribute("id") for part in shown.page.locator(".component section").all()] == COMPONENTS
    shown.draw_charts()
    assert shown.page.locator("#leaderboard .chip.lead").count() >= 3
    assert "exact is better" in shown.page.locator("#head-to-head").inner_text()
    assert "moody" in shown.page.locator("#alerts").inner_text()
    shown.check_inert()


def test_what_is_chosen_is_in_the_address(demo: Service, visit: Callable[..., Visit]) -> None:
    shown = visit(demo, "/")
    shown.page.select_option("select[name=a]", "greedy")
    shown.page.wait_for_url("**a=greedy**")
    assert "Timeline of greedy" in shown.text
    assert "Stress test of greedy" in shown.text
    again = visit(demo, shown.page.url.removeprefix(demo.url))
    for part in ("main h2", "main .finding", "main table"):
        assert again.page.locator(part).all_inner_texts() == shown.page.locator(part).all_inner_texts()


def test_a_leaderboard_is_sorted_by_its_headings(demo: Service, visit: Callable[..., Visit]) -> None:
    shown = visit(demo, "/")
    table = shown.page.locator("#leaderboard table").first
    table.get_by_role("button", name="Accuracy").click()
    rows = table.locator("tbody tr td:first-child a").all_inner_texts()
    table.get_by_role("button", name="Accuracy").click()
    assert table.locator("tbody tr td:first-child a").all_inner_texts() == rows[::-1]


@pytest.mark.parametrize("path", PLACES)
def test_every_page_is_filled_and_fits(
    demo: Service, visit: Callable[..., Visit], pictures: Path | None, path: str
) -> None:
    name = path.strip("/").replace("/", "-") or "dashboard"
    for width, scheme in ((1380, "light"), (400, "dark")):
        shown = visit(demo, path, width, scheme)
        shown.page.locator("h1").wait_for()
        if shown.page.locator("[data-fragment]").count():
            shown.wait_for_analysis()
        shown.draw_charts()
        shown.check_width()
        shown.check_inert()
        if pictures:
            shown.page.screenshot(path=pictures / f"{name}-{width}.png", full_page=True)
    has_content = shown.page.locator("main table, main figure, main form.review, main dl").count() > 0
    assert has_content, shown.text


def test_the_keyboard_reaches_pages_and_the_search(demo: Service, visit: Callable[..., Visit]) -> None:
    shown = visit(demo, "/ui/runs")
    shown.page.keyboard.press("g")
    shown.page.keyboard.press("a")
    shown.page.wait_for_url("**/ui/agents")
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("puzz")
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_url("**/ui/search?q=puzz")
    assert "puzzles" in shown.text


def test_pages_load_nothing_from_elsewhere(demo: Service, visit: Callable[..., Visit]) -> None:
    shown = visit(demo, "/")
    shown.draw_charts()
    loaded = shown.page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert loaded
    assert all(address.startswith(demo.url) for address in loaded)
