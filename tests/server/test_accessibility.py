"""Pages can be read by everybody: enough contrast in light and dark (WCAG 2.1 AA, 1.4.3), and on paper."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.server.browsing import Visit
from tests.server.browsing import browser as browser
from tests.server.browsing import visit as visit
from tests.server.service import Service

pytestmark = pytest.mark.browser

PATHS = (
    "/",
    "/ui/leaderboard",
    "/ui/radar",
    "/ui/compare",
    "/ui/cost",
    "/ui/runs",
    "/ui/runs/last",
    "/ui/agents/good",
    "/ui/suites/desk",
    "/ui/alerts",
    "/ui/review",
    "/ui/coverage",
    "/ui/coverage?suite=desk",
    "/ui/success",
    "/ui/settings",
    "/ui/nowhere",
)

FAINT = """() => {
  const parse = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...found.slice(0, 3).map((part) => part * scale), found.length > 3 ? found[3] : 1];
  };
  const over = (front, back) => [0, 1, 2].map((n) => front[n] * front[3] + back[n] * (1 - front[3])).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((back, layer) => over(layer, back), [255, 255, 255, 1]);
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.closest("svg, script, noscript, [aria-hidden=true], :disabled") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    const [first, second] = [luminance(over(parse(style.color), back)), luminance(back)];
    const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5) - 0.005) faint.push(`${ratio.toFixed(2)} ${text.slice(0, 40)} .${element.className}`);
  }
  return faint;
}"""
"""Texts whose contrast with what is behind them is below 4.5, or 3 where they are large, with the ratio."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(server: Service, visit: Callable[..., Visit], scheme: str) -> None:
    shown = visit(server, "/", scheme=scheme)
    faint = {}
    for path in PATHS:
        shown.page.goto(server.url + path)
        if found := shown.page.evaluate(FAINT):
            faint[path] = found
    assert faint == {}


def test_paper_has_the_content_and_no_navigation(server: Service, visit: Callable[..., Visit]) -> None:
    shown = visit(server, "/ui/leaderboard", scheme="dark")
    assert shown.page.locator("aside nav").is_visible()
    shown.page.emulate_media(media="print")
    for hidden in ("header.masthead", "aside.side", "form.controls"):
        assert not shown.page.locator(hidden).is_visible(), hidden
    for kept in ("h1", "main table >> nth=0"):
        assert shown.page.locator(kept).is_visible(), kept
    # Dark screens do not cost ink.
    ground = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert shown.page.evaluate(FAINT) == []
