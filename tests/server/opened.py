"""Pages of a running server in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.report.browsing import Opened, Pages


@dataclass
class OpenedUrl(Opened):
    """A page of the server."""

    @property
    def is_within_its_width(self) -> bool:
        """Whether nobody has to scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"))


OpenPage = Callable[..., OpenedUrl]


@pytest.fixture
def open_url(pages: Pages) -> OpenPage:
    def opened(url: str, width: int = 1380, scheme: str = "light") -> OpenedUrl:
        shown = OpenedUrl(None)
        shown.page = pages.open(url, width, scheme, shown.complaints, shown.requests)
        return shown

    return opened
