"""Pages in a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assay.report.pages.html import Html


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass
class Opened:
    """A page in a browser, and what it did that it should not."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def drawn(self) -> None:
        """Scroll each chart into view and wait until it stands."""
        self.page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        for figure in self.page.locator(".chart").all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg").wait_for(timeout=20_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    if path is None and os.environ.get("CI"):
        pytest.fail("CI must have Chromium: apt-get install chromium")
    if path is None:
        pytest.skip("no Chromium; to enable: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    contexts = []

    def opened(report: Any, width: int = 1240, scheme: str = "light") -> Opened:
        (path,) = Html().write(report, tmp_path)
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        shown = Opened(context.new_page())
        shown.page.on("console", lambda message: shown.complaints.append(message.text))
        shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.page.on("request", lambda request: shown.requests.append(request.url))
        shown.page.goto(path.as_uri())
        return shown

    yield opened
    for context in contexts:
        context.close()
