"""Logging in with a browser: sessions, cookies, forms, and the headers that keep pages inert."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from tests.server.conftest import write_project
from tests.server.service import Service, serving
from tests.server.sessions import Session, header

from assay.model.access import Scope
from assay.server.access import find_scope
from assay.server.app import PAGES
from assay.store.store import Store

HOSTILE_TARGETS = (
    "//evil.example",
    "/\\evil.example",
    "http://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "/\r\nset-cookie: x=1",
    "/\t/evil.example",
    "evil",
    "",
)


class Gate:
    """A server that wants keys, and one of each kind."""

    def __init__(
        self, service: Service, folder: Path, tokens: dict[str, str], prefixes: dict[str, str]
    ) -> None:
        self.service, self.folder, self.tokens, self.prefixes = service, folder, tokens, prefixes

    def session(self, key: str) -> Session:
        """As a login opens it; logging in itself is slowed down for whoever does it often."""
        with self.store() as store:
            found = store.find_key(self.tokens[key])
            assert found is not None
            return Session(self.service, store.create_session(found, datetime.now(UTC) + timedelta(hours=1)))

    def store(self) -> Store:
        return Store.open(f"sqlite:///{self.folder / '.assay' / 'assay.db'}")


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("gate")
    write_project(folder, "rate = 100000")
    with Store.open(f"sqlite:///{folder / '.assay' / 'assay.db'}") as store:
        made = {scope.value: store.create_key(scope.value, scope) for scope in Scope}
        made["expired"] = store.create_key("expired", Scope.ADMIN, datetime.now(UTC) - timedelta(days=1))
        made["revoked"] = store.create_key("revoked", Scope.ADMIN)
        made["short"] = store.create_key("short", Scope.READ, datetime.now(UTC) + timedelta(minutes=10))
        made["doomed"] = store.create_key("doomed", Scope.READ)
        store.revoke_key(made["revoked"][0].prefix)
    with serving(folder) as service:
        yield Gate(
            service,
            folder,
            {name: token for name, (_, token) in made.items()},
            {name: key.prefix for name, (key, _) in made.items()},
        )


def test_a_page_asks_for_a_key_and_then_goes_on_to_what_was_asked_for(gate: Gate) -> None:
    asked = Session(gate.service).get("/ui/leaderboard?suite=desk&limit=5")
    assert asked.status == 303
    assert header(asked, "location") == "/login?next=%2Fui%2Fleaderboard%3Fsuite%3Ddesk%26limit%3D5"
    form = Session(gate.service).get(header(asked, "location")).body.decode()
    assert 'name="next" value="/ui/leaderboard?suite=desk&amp;limit=5"' in form
    answer = Session(gate.service).log_in(gate.tokens["read"], next="/ui/leaderboard?suite=desk&limit=5")
    assert (answer.status, header(answer, "location")) == (303, "/ui/leaderboard?suite=desk&limit=5")


def test_a_good_key_opens_a_session(gate: Gate) -> None:
    session = Session(gate.service)
    assert session.log_in(gate.tokens["read"]).status == 303
    page = session.get("/")
    assert page.status == 200
    assert "Log out" in page.body.decode()
    assert gate.tokens["read"] not in page.body.decode()


@pytest.mark.parametrize("key", ["", "nonsense", "assay_0_0", "expired", "revoked", "x" * 300])
def test_a_bad_key_opens_none(gate: Gate, key: str) -> None:
    session = Session(gate.service)
    answer = session.log_in(gate.tokens.get(key, key))
    assert answer.status in (401, 422)
    assert not session.cookie
    assert "set-cookie" not in {name.lower() for name in answer.headers}


def test_whoever_tries_keys_has_to_wait(gate: Gate) -> None:
    found = {Session(gate.service).send("/login", key=f"assay_0_{number}").status for number in range(60)}
    assert 429 in found


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(gate: Gate) -> None:
    near = header(Session(gate.service).log_in(gate.tokens["read"]), "set-cookie").lower()
    assert "httponly" in near
    assert "samesite=lax" in near
    assert "path=/" in near
    assert "secure" not in near


def test_off_this_machine_the_cookie_travels_by_tls_only(gate: Gate) -> None:
    answer = Session(gate.service, origin="https://assay.example").log_in(gate.tokens["read"])
    assert answer.status == 303
    assert "secure" in header(answer, "set-cookie").lower()


def test_a_session_ends_with_its_key_at_the_latest(gate: Gate) -> None:
    cookie = header(Session(gate.service).log_in(gate.tokens["short"]), "set-cookie").lower()
    age = int(cookie.partition("max-age=")[2].partition(";")[0])
    assert 500 < age <= 600


@pytest.mark.parametrize("target", HOSTILE_TARGETS)
def test_next_never_leaves_the_server(gate: Gate, target: str) -> None:
    answer = Session(gate.service).log_in(gate.tokens["read"], next=target)
    assert (answer.status, header(answer, "location")) == (303, "/")
    assert "x=1" not in header(answer, "set-cookie")


def test_a_form_of_a_session_needs_its_token(gate: Gate) -> None:
    mine, other = gate.session("admin"), gate.session("admin")
    for fields in (
        {},
        {"form_token": ""},
        {"form_token": "0" * 128},
        {"form_token": "no hex"},
        {"form_token": other.token},
    ):
        refused = mine.send("/ui/settings/keys", name="forged", scope="admin", days="0", **fields)
        assert refused.status == 403, fields
    with gate.store() as store:
        assert "forged" not in {key.name for key in store.keys()}  # noqa: SIM118
    assert (
        mine.send("/ui/settings/keys", name="made", scope="read", days="1", form_token=mine.token).status
        == 200
    )
    with gate.store() as store:
        assert "made" in {key.name for key in store.keys()}  # noqa: SIM118


def test_a_session_changes_nothing_over_the_api_without_its_token(gate: Gate) -> None:
    session = gate.session("admin")
    json = {"content-type": "application/json", "origin": gate.service.url}
    body = b'{"agent_id": "good", "suite_id": "desk", "async_execution": true}'
    path, told = "/benchmarks/run", {**json, "cookie": f"assay_session={session.cookie}"}
    assert gate.service.request("POST", path, body, told).status == 403
    allowed = gate.service.request("POST", path, body, {**told, "x-form-token": session.token})
    assert allowed.status == 202


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", None])
def test_a_form_of_another_site_is_refused(gate: Gate, origin: str | None) -> None:
    session = gate.session("admin")
    headers = {"origin": origin} if origin else {"origin": ""}
    refused = session.send("/ui/settings/keys", headers, name="foreign", form_token=session.token)
    assert refused.status == 403
    assert Session(gate.service).send("/login", headers, key=gate.tokens["read"]).status == 403


def test_a_form_is_no_other_kind_of_document(gate: Gate) -> None:
    session = gate.session("admin")
    json = session.send("/ui/settings/keys", {"content-type": "application/json"}, name="typed")
    assert json.status == 415


def test_logging_out_ends_the_session_for_a_copied_cookie_too(gate: Gate) -> None:
    session = gate.session("read")
    copy = Session(gate.service, session.cookie)
    assert copy.get("/").status == 200
    answer = session.send("/logout", form_token=_logout_token(session))
    assert (answer.status, header(answer, "location")) == (303, "/login")
    assert copy.get("/").status == 303
    assert session.get("/").status == 303


def _logout_token(session: Session) -> str:
    return session.get("/").body.decode().partition('name="form_token" value="')[2].partition('"')[0]


def test_sessions_end_when_their_key_is_revoked(gate: Gate) -> None:
    session = gate.session("doomed")
    assert session.get("/").status == 200
    admin = gate.session("admin")
    prefix = gate.prefixes["doomed"]
    assert admin.send("/ui/settings/keys/revoke", prefix=prefix, form_token=admin.token).status == 303
    assert session.get("/").status == 303


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        (route.path_format, find_scope(route))
        for page in PAGES
        for route in page.router.routes
        if isinstance(route, APIRoute) and route.methods and "POST" in route.methods
    ],
)
def test_a_form_that_acts_needs_a_key_that_may(gate: Gate, path: str, scope: str) -> None:
    if scope not in (Scope.RUN, Scope.ADMIN):
        pytest.skip("whoever may read may log out")
    weaker = gate.session("read" if scope == Scope.RUN else "run")
    token = _logout_token(weaker)
    assert weaker.send(path.replace("{", "").replace("}", ""), form_token=token).status == 403


@pytest.mark.parametrize(
    "path",
    ["/", "/login", "/ui/settings", "/ui/nothing", "/ui/compare/answers", "/ui/review", "/ui/search?q=x"],
)
def test_every_page_keeps_what_it_shows_inert(gate: Gate, path: str) -> None:
    page = gate.session("admin").get(path)
    policy = header(page, "content-security-policy")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
    assert "frame-ancestors 'none'" in policy
    assert header(page, "x-content-type-options") == "nosniff"
    assert header(page, "cache-control") == "no-store"


def test_files_of_pages_are_kept_for_good_and_nothing_else_is_served(gate: Gate) -> None:
    page = gate.session("read").get("/").body.decode()
    name = page.partition('href="/static/assay.css')[2].partition('"')[0]
    found = Session(gate.service).get(f"/static/assay.css{name}")
    assert found.status == 200
    assert "immutable" in header(found, "cache-control")
    assert b".masthead" in gzip.decompress(found.body)
    for path in (
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/app.py",
        "/static/%2e%2e%2fapp.py",
        "/static/",
    ):
        found = Session(gate.service).get(path)
        assert found.status in (401, 404), path
