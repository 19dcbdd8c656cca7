"""Pages of the real server in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest
from tests.report.browsing import Pages
from tests.report.browsing import browser as browser
from tests.report.browsing import pages as pages
from tests.server.service import Service

PATIENCE = 30_000
"""Milliseconds that a page may take on a busy machine."""


@dataclass
class Visit:
    """A page of a server in a browser, and what it complained about."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return str(self.page.locator("main").inner_text())

    def wait_for_analysis(self) -> None:
        self.page.locator("[data-analysis]").wait_for(timeout=PATIENCE)

    def wait_until(self, expression: str) -> None:
        """Until it is true on the page, asked from outside: the security policy of pages forbids to evaluate texts in them."""
        deadline = monotonic() + PATIENCE / 1000
        while not self.page.evaluate(expression):
            assert monotonic() < deadline, expression
            self.page.wait_for_timeout(50)

    def draw_charts(self) -> None:
        """Scroll each chart into view and wait until it stands."""
        self.page.evaluate("document.querySelectorAll('main details').forEach((part) => (part.open = true))")
        for figure in self.page.locator(".chart").all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg").wait_for(timeout=PATIENCE)

    def check_inert(self) -> None:
        """Nothing that an agent or a name said was run, and the page found nothing to complain about."""
        assert self.page.evaluate("window.hacked") is None
        assert self.complaints == []

    def check_width(self) -> None:
        """Nothing sticks out at the side, once charts and tables have found their places."""
        self.wait_until("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def visit(pages: Pages) -> Callable[..., Visit]:
    """Opens a path of a server; each call is another browser profile."""

    def open_path(service: Service, path: str, width: int = 1380, scheme: str = "light") -> Visit:
        shown = Visit(None)
        shown.page = pages.open(service.url + path, width, scheme, shown.complaints, [])
        shown.page.set_default_timeout(PATIENCE)
        return shown

    return open_path
