"""Pages in a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
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


def follow(link: Any) -> None:
    """Click what leads to another page, and wait until that page stands: a click alone returns before it has one."""
    with link.page.expect_navigation():
        link.click()


class Pages:
    """Pages of a browser for the tests of a file. Each has a profile of its own; a test gets them as good as new.

    A new profile and a new page cost half a second of processor time, more than what most tests do with them.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._idle: list[Any] = []
        self._shown: list[tuple[Any, dict[str, Callable[[Any], None]]]] = []

    def open(self, url: str, width: int, scheme: str, complaints: list[str], requests: list[str]) -> Any:
        """Go to an address, and note what the page says and asks for."""
        page = self._idle.pop() if self._idle else self._browser.new_context().new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        listeners: dict[str, Callable[[Any], None]] = {
            "console": lambda message: complaints.append(message.text),
            "pageerror": lambda error: complaints.append(str(error)),
            "request": lambda request: requests.append(request.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        self._shown.append((page, listeners))
        page.goto(url)
        return page

    def forget(self) -> None:
        """End a test: nobody is logged in any more, and nothing is kept."""
        for page, listeners in self._shown:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            page.evaluate("try { localStorage.clear(); sessionStorage.clear() } catch {}")
            page.context.clear_cookies()
            page.goto("about:blank")
            self._idle.append(page)
        self._shown.clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Pages]:
    path = chromium()
    if path is None and os.environ.get("CI"):
        pytest.fail("CI must have Chromium: apt-get install chromium")
    if path is None:
        pytest.skip("no Chromium; to enable: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield Pages(started)
        started.close()


@pytest.fixture
def pages(browser: Pages) -> Iterator[Pages]:
    yield browser
    browser.forget()


@pytest.fixture
def open_page(pages: Pages, tmp_path: Path) -> Callable[..., Opened]:
    def opened(report: Any, width: int = 1240, scheme: str = "light") -> Opened:
        (path,) = Html().write(report, tmp_path)
        shown = Opened(None)
        shown.page = pages.open(path.as_uri(), width, scheme, shown.complaints, shown.requests)
        return shown

    return opened
