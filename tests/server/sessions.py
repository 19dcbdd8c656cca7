"""A browser without a screen: it logs in, keeps its cookie, and sends forms as pages of the server do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

from tests.server.service import Answer, Service

_FORM = "application/x-www-form-urlencoded"


@dataclass
class Session:
    """Requests with the cookie of a session, and with the origin that a browser tells."""

    service: Service
    cookie: str = ""
    origin: str = ""
    """Of the pages that send the forms; by default the server itself."""

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return ask_in_turn(lambda: self.service.request("GET", path, headers=self._headers(headers)))

    def send(self, path: str, headers: Mapping[str, str] | None = None, /, **fields: object) -> Answer:
        """A form; its token is the one of the session unless the fields have another."""
        told = {"origin": self.origin or self.service.url, "content-type": _FORM, **(headers or {})}
        return self.service.request("POST", path, urlencode(fields).encode(), self._headers(told))

    def _headers(self, more: Mapping[str, str] | None) -> dict[str, str]:
        cookie = {"cookie": f"assay_session={self.cookie}"} if self.cookie else {}
        host = {"host": urlsplit(self.origin).netloc} if self.origin else {}
        return {**host, **cookie, **(more or {})}

    def log_in(self, key: str, **fields: object) -> Answer:
        answer = ask_in_turn(lambda: self.send("/login", key=key, **fields))
        found = SimpleCookie(header(answer, "set-cookie")).get("assay_session")
        self.cookie = found.value if found else ""
        return answer

    @property
    def token(self) -> str:
        """What a page of this session has in its forms."""
        found = re.search(
            r'name="form_token" value="([0-9a-f]{128})"', self.get("/ui/settings").body.decode()
        )
        assert found, "the page has no form of this session"
        return found[1]


def ask_in_turn(ask: Callable[[], Answer]) -> Answer:
    """Ask again while the server says that there were too many attempts without a key: all tests come from one address."""
    for _ in range(50):
        answer = ask()
        if answer.status != 429:
            break
        time.sleep(0.2)
    return answer


def header(answer: Answer, name: str) -> str:
    return next((value for known, value in answer.headers.items() if known.lower() == name), "")
