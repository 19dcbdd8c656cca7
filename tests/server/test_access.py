"""Who may do what. The routes are those of the application, so that a new one is tested by itself."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from tests.command import Assay
from tests.server.conftest import write_project
from tests.server.service import Service, serving

from assay.model.access import Scope
from assay.server.access import RateLimit, find_scope, is_page
from assay.server.app import PAGES, RESOURCES
from assay.server.pages.shell import find_local_path
from assay.store.store import Store

ROUTES = [
    (method, route.path_format, find_scope(route))
    for resource in RESOURCES
    for route in resource.router.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods or ())
]
PAGE_ROUTES = [
    (method, route.path_format, find_scope(route))
    for module in PAGES
    for route in module.router.routes
    if isinstance(route, APIRoute) and find_scope(route) != "public"
    for method in sorted(route.methods or ())
]
GUARDED = [(method, path, scope) for method, path, scope in ROUTES if scope != "public"]


class Keys:
    """A server that wants keys, and one of each kind."""

    def __init__(self, service: Service, tokens: dict[str, str], folder: Path) -> None:
        self.service, self.tokens, self.folder = service, tokens, folder

    def ask(self, method: str, path: str, key: str | None, body: bytes | None = None) -> Any:
        token = {"Authorization": f"Bearer {self.tokens.get(key, key)}"} if key else {}
        return self.service.request(
            method, _filled(path), body, {"content-type": "application/json", **token}
        )


def _filled(path: str) -> str:
    return re.sub(r"\{\w+\}", "1", path)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    folder = tmp_path_factory.mktemp("keys")
    write_project(folder, "rate = 100000")
    with Store.open(f"sqlite:///{folder / '.assay' / 'assay.db'}") as store:
        made = {scope.value: store.create_key(scope.value, scope) for scope in Scope}
        past = datetime.now(UTC) - timedelta(days=1)
        made["expired"] = store.create_key("expired", Scope.ADMIN, past)
        made["revoked"] = store.create_key("revoked", Scope.ADMIN)
        store.revoke_key(made["revoked"][0].prefix)
    tokens = {name: token for name, (_, token) in made.items()}
    tokens["forged"] = tokens["admin"][:-1] + ("A" if tokens["admin"][-1] != "A" else "B")
    with serving(folder) as service:
        yield Keys(service, tokens, folder)


def test_every_route_says_what_it_needs() -> None:
    assert {scope for *_, scope in ROUTES} == {"public", *Scope}
    assert [(method, path) for method, path, scope in ROUTES if scope == "public"] == [("GET", "/health")]
    assert all(
        scope != "read" for method, path, scope in ROUTES if method != "GET" and path != "/benchmarks/compare"
    )


@pytest.mark.parametrize(("method", "path", "scope"), GUARDED, ids=[f"{m} {p}" for m, p, _ in GUARDED])
def test_a_route_answers_only_who_may(keys: Keys, method: str, path: str, scope: str) -> None:
    for bad in (None, "nonsense", "assay_0_0", "forged", "expired", "revoked"):
        answer = keys.ask(method, path, bad)
        # Who tries too often has to wait, which is no answer either.
        assert answer.status in (401, 429)
        assert answer.json["error"] in ("unauthorized", "too_many_requests")
    for key in Scope:
        answer = keys.ask(method, path, key.value)
        assert (answer.status == 403) is not key.allows(Scope(scope)), (key, answer.body)
        assert answer.status != 401


def test_only_the_login_and_files_are_pages_without_a_key() -> None:
    routes = [route for module in PAGES for route in module.router.routes if isinstance(route, APIRoute)]
    public = [route for route in routes if find_scope(route) == "public"]
    assert {route.path_format for route in public} == {"/login", "/static/{name}"}
    assert all(is_page(route) for route in routes)
    assert all(
        find_scope(route) != "read"
        for route in routes
        if "POST" in (route.methods or ()) and route.path != "/logout"
    )


@pytest.mark.parametrize(
    ("method", "path", "scope"), PAGE_ROUTES, ids=[f"{m} {p}" for m, p, _ in PAGE_ROUTES]
)
def test_a_page_is_shown_only_to_who_may(keys: Keys, method: str, path: str, scope: str) -> None:
    """By the key in a header, which a page accepts as well as a session."""
    form = {"content-type": "application/x-www-form-urlencoded", "origin": keys.service.url}
    body = b"x=1" if method == "POST" else None
    for bad in (None, "nonsense", "forged", "expired", "revoked"):
        token = {"Authorization": f"Bearer {keys.tokens.get(bad, bad)}"} if bad else {}
        answer = keys.service.request(method, _filled(path), body, {**form, **token})
        if method == "GET" and answer.status == 303:
            assert answer.headers["location"].startswith("/login?next=%2F")
        else:
            assert answer.status in (401, 429), answer.body
    for key in Scope:
        token = {"Authorization": f"Bearer {keys.tokens[key.value]}"}
        answer = keys.service.request(method, _filled(path), body, {**form, **token})
        assert (answer.status == 403) is not key.allows(Scope(scope)), (key, answer.body)
        assert answer.status != 401


def test_health_needs_no_key(keys: Keys) -> None:
    assert keys.ask("GET", "/health", None).status == 200


def test_the_schema_and_what_does_not_exist_need_a_key(keys: Keys) -> None:
    for path, status in (("/openapi.json", 200), ("/nothing", 404)):
        assert keys.ask("GET", path, None).status in (401, 429)
        assert keys.ask("GET", path, "read").status == status


def test_a_body_is_not_read_before_the_key(keys: Keys) -> None:
    assert keys.ask("POST", "/benchmarks/run", None, b"{").status in (401, 429)
    assert keys.ask("POST", "/benchmarks/run", "read", b"{").status == 403
    assert keys.ask("POST", "/benchmarks/run", "run", b"{").status == 422


def test_what_was_changed_and_refused_is_in_the_audit_log(keys: Keys) -> None:
    keys.ask("POST", "/runs/nobody/cancel", "run")
    keys.ask("POST", "/runs/nobody/cancel", "read")
    entries = keys.ask("GET", "/audit?limit=2", "admin").document["entries"]
    prefix = keys.tokens["run"].split("_")[1]
    assert [(one["method"], one["path"], one["status"], one["key"]) for one in entries] == [
        ("POST", "/runs/nobody/cancel", 403, keys.tokens["read"].split("_")[1]),
        ("POST", "/runs/nobody/cancel", 404, prefix),
    ]
    assert {one["address"] for one in entries} == {"127.0.0.1"}
    page = keys.ask("GET", f"/audit?limit=1&cursor={entries[0]['id']}", "admin").document
    assert page["entries"] == entries[1:]


def test_answers_carry_the_headers_that_keep_browsers_safe(keys: Keys) -> None:
    for answer in (
        keys.ask("GET", "/health", None),
        keys.ask("GET", "/runs/x", None),
        keys.ask("GET", "/x", "read"),
    ):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_a_key_is_shown_once_and_stored_as_a_hash(keys: Keys) -> None:
    assay = Assay(keys.folder)
    made = assay("key", "create", "ci", "--scope", "run", "--days", "30", "--json").json
    assert made["key"].startswith(f"assay_{made['prefix']}_")
    assert keys.ask("GET", "/runs/queue", made["key"]).status == 200
    listed = {one["prefix"]: one for one in assay("key", "list", "--json").json}
    assert listed[made["prefix"]]["scope"] == "run"
    assert listed[made["prefix"]]["last_used"]
    assert listed[made["prefix"]]["expires"] > made["created"]
    stored = (keys.folder / ".assay" / "assay.db").read_bytes() + b"".join(
        file.read_bytes() for file in (keys.folder / ".assay").glob("assay.db-*")
    )
    assert made["key"].encode() not in stored
    assert made["key"].split("_", 2)[2].encode() not in stored
    assert assay("key", "revoke", made["prefix"], "--json").json["revoked"]
    sleep(1.5)  # a server that knows the key may take a second to notice
    assert keys.ask("GET", "/runs/queue", made["key"]).status in (401, 429)
    assert "nothing" in assay("key", "revoke", "nothing").refusal


def test_off_loopback_the_server_wants_a_key_first(project: Path) -> None:
    assay = Assay(project)
    assert "assay key create" in assay("serve", "--host", "0.0.0.0", "--port", "0").refusal
    assert assay("key", "create", "me", "-q").code == 0
    with serving(project, "--host", "0.0.0.0") as service:
        service.url = service.url.replace("0.0.0.0", "127.0.0.1")
        assert service.get("/health").status == 200
        assert service.get("/runs/queue").status == 401


def test_without_keys_only_this_machine_is_answered(server: Service) -> None:
    assert server.request("GET", "/runs/queue").status == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": ""}):
        answer = server.request("GET", "/runs/queue", headers=headers)
        assert (answer.status, answer.json["error"]) == (403, "forbidden")
    same = {"Origin": server.url, "Host": urlsplit(server.url).netloc}
    assert server.request("GET", "/runs/queue", headers=same).status == 200


def test_a_request_is_json_and_not_too_large(server: Service) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert server.request("POST", "/benchmarks/compare", b"a=1", form).status == 415
    assert server.request("POST", "/benchmarks/compare", b"{}", {"content-type": "text/plain"}).status == 415
    json = {"content-type": "application/json"}
    assert server.request("POST", "/benchmarks/compare", b" " * (1 << 20) + b"{}", json).status == 413


def test_a_body_of_unknown_length_is_not_read_without_end(server: Service) -> None:
    place = urlsplit(server.url)
    with socket.create_connection((str(place.hostname), place.port)) as link:
        link.sendall(
            b"POST /benchmarks/compare HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        for _ in range(17):
            link.sendall(chunk)
        assert link.recv(100).startswith(b"HTTP/1.1 413")


def test_a_rate_is_kept_for_each_name() -> None:
    limit = RateLimit(1000)
    assert sum(limit.allows("a") for _ in range(4000)) in range(2000, 3000)
    assert limit.allows("b")


def test_too_many_requests_with_one_key_have_to_wait(tmp_path: Path) -> None:
    write_project(tmp_path, "rate = 1")
    token = Assay(tmp_path)("key", "create", "me", "--json").json["key"]
    with serving(tmp_path) as service:
        service.headers["Authorization"] = f"Bearer {token}"
        answers = [service.get("/runs/queue") for _ in range(40)]
    assert [one.status for one in answers[:2]] == [200] * 2
    refused = [one for one in answers if one.status == 429]
    assert refused, "forty requests in a row are more than one a second"
    assert refused[0].headers["retry-after"] == "1"


def test_addresses_that_are_none_are_refused_and_nothing_breaks(keys: Keys, server: Service) -> None:
    form = {"content-type": "application/x-www-form-urlencoded", "origin": "http://[::1"}
    assert keys.service.request("POST", "/login", b"key=x", form).status in (403, 429)
    for headers in ({"Host": "[::1"}, {"Origin": "http://[::1"}):
        assert server.request("GET", "/runs", None, headers).status == 403


def test_a_request_of_another_site_is_refused_and_a_link_is_followed(server: Service) -> None:
    other = {"Sec-Fetch-Site": "cross-site"}
    assert server.request("GET", "/runs", None, {**other, "Sec-Fetch-Mode": "no-cors"}).status == 403
    assert server.request("GET", "/ui/runs", None, {**other, "Sec-Fetch-Mode": "navigate"}).status == 200


@pytest.mark.parametrize("path", ["/x%00y", "/ui/search?q=%00", "/runs?name=%00"])
def test_no_text_has_a_nul(server: Service, path: str) -> None:
    assert server.request("GET", path).status == 422


def test_a_link_into_the_dashboard_survives_the_login(keys: Keys) -> None:
    answer = keys.service.request("GET", "/ui/agents/m%C3%BCller%20x?tab=1")
    assert answer.headers["location"] == "/login?next=%2Fui%2Fagents%2Fm%25C3%25BCller%2520x%3Ftab%3D1"
    assert find_local_path("/ui/agents/m%C3%BCller%20x?tab=1") == "/ui/agents/m%C3%BCller%20x?tab=1"


def test_whoever_is_refused_before_a_key_is_looked_at_does_not_fill_the_log(keys: Keys) -> None:
    def count_entries() -> int:
        return len(keys.ask("GET", "/audit?limit=1000", "admin").document["entries"])

    before = count_entries()
    for _ in range(3):
        keys.service.request("POST", "/benchmarks/run", b"x", {"content-type": "text/plain"})
    assert count_entries() == before
