"""Pages of a running server in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.report.browsing import Opened


@dataclass
class OpenedUrl(Opened):
    """A page of the server."""

    @property
    def is_within_its_width(self) -> bool:
        """Whether nobody has to scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"))


OpenPage = Callable[..., OpenedUrl]


@pytest.fixture
def open_url(browser: Any) -> Iterator[OpenPage]:
    contexts = []

    def opened(url: str, width: int = 1380, scheme: str = "light") -> OpenedUrl:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        shown = OpenedUrl(context.new_page())
        shown.page.on("console", lambda message: shown.complaints.append(message.text))
        shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.page.on("request", lambda request: shown.requests.append(request.url))
        shown.page.goto(url)
        return shown

    yield opened
    for context in contexts:
        context.close()
