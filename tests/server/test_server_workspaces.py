"""A key opens one workspace: ids of another are not found, lists and counts have nothing of it. The routes are those of the application."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay
from tests.server.conftest import write_project
from tests.server.service import Answer, Service, serving
from tests.server.test_access import GUARDED, PAGE_ROUTES
from tests.store.test_store_regressions import FOUND

from assay.model.access import Scope
from assay.store.store import Store

NOT_THERE = {
    "/runs/{run_id}/findings/{kind}": "a run of a suite has no findings of any kind",
    "/trials/{trial_id}/artifacts/{number}": "its trials have no artifacts",
}
"""Routes that have nothing to answer with in the first workspace either."""
NO_RESULTS = {"/cost": "without results there is nothing to compute, which is answered with 422"}
LISTS = {"/findings/{kind}": "a list of its own for each kind"}
OWN_DOINGS = {
    "/audit": "requests with the other key are in the log of its workspace",
    "/success": "months are listed also where nothing happened in them",
}
NEEDED_QUERY = {"/search": "?q=good"}
NAMES = ("good", "bad", "slow", "desk", "refunds")


class Workspaces:
    """A server with results in its own workspace, a key of it, and a key of another one that has nothing."""

    def __init__(self, service: Service, tokens: Mapping[str, str], ids: Mapping[str, object]) -> None:
        self.service, self.tokens, self.ids = service, tokens, ids
        self._schema = self.ask("GET", "/openapi.json", "own").document

    def ask(self, method: str, path: str, key: str, body: object = None) -> Answer:
        headers = {"Authorization": f"Bearer {self.tokens[key]}", "content-type": "application/json"}
        sent = None if body is None else json.dumps(body).encode()
        return self.service.request(method, path, sent, headers)

    def call(self, method: str, path: str, key: str) -> Answer:
        """A request that names what there is in the first workspace, in the path and, by the example of the schema, in the body."""
        asked = path.format(**self.ids) + NEEDED_QUERY.get(path, "")
        return self.ask(method, asked, key, self._example(method, path))

    def name_things(self, method: str, path: str) -> list[str]:
        """The names that such a request has, which may come back."""
        asked = path.format(**self.ids) + NEEDED_QUERY.get(path, "") + json.dumps(self._example(method, path))
        return [name for name in (*NAMES, str(self.ids["run_id"])) if name in asked]

    def _example(self, method: str, path: str) -> Any:
        body = self._schema["paths"][path][method.lower()].get("requestBody")
        if body is None:
            return None
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return self._schema["components"]["schemas"][name]["example"]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspaces]:
    folder = tmp_path_factory.mktemp("workspaces")
    write_project(folder, "rate = 100000\nmax_runs = 1\nsync_seconds = 20")
    done = Assay(folder)("run", "desk", "--agent", "good", "--agent", "bad", "-q")
    assert done.code == 0, done.err
    with Store.open(f"sqlite:///{folder / '.assay' / 'assay.db'}") as store:
        store.create_workspace("other")
        _, own = store.create_key("own", Scope.ADMIN)
        _, other = store.in_workspace("other").create_key("other", Scope.ADMIN)
        _, reader = store.in_workspace("other").create_key("reader", Scope.READ)
        store.set_baseline("main", store.run("last").id)
        store.keep_regressions([FOUND])
    with serving(folder) as service:
        service.headers["Authorization"] = f"Bearer {own}"
        asked = {"agent_id": "good", "suite_id": "desk"}
        made = service.post("/benchmarks/run", configuration={"limit": 2}, **asked).document
        waits = service.post("/benchmarks/run", async_execution=True, **{**asked, "agent_id": "slow"})
        assert waits.status == 202
        trial = service.get("/trials", run_id=made["run_id"]).document["results"][0]["id"]
        del service.headers["Authorization"]
        ids = {
            "agent_id": "good",
            "suite_id": "desk",
            "run_id": made["run_id"],
            "trial_id": trial,
            "kind": "load",
            "number": 1,
            "regression_id": FOUND.id,
        }
        yield Workspaces(service, {"own": own, "other": other, "reader": reader}, ids)


@pytest.mark.parametrize(("method", "path", "scope"), GUARDED, ids=[f"{m} {p}" for m, p, _ in GUARDED])
def test_a_key_of_another_workspace_finds_nothing(
    two: Workspaces, method: str, path: str, scope: str
) -> None:
    own, other = (two.call(method, path, key) for key in ("own", "other"))
    assert own.status in (200, 202) or path in NOT_THERE, own.body
    if ("{" in path and path not in LISTS) or method != "GET":
        assert other.status == 404, other.body
    else:
        assert other.status == (422 if path in NO_RESULTS else 200), other.body
        assert path in OWN_DOINGS or _find_filled_lists(other) == []
    told = [name for name in (*NAMES, str(two.ids["run_id"])) if name.encode() in other.body]
    assert path in OWN_DOINGS or set(told) <= set(two.name_things(method, path))


@pytest.mark.parametrize("path", [path for method, path, _ in PAGE_ROUTES if method == "GET"])
def test_no_page_shows_anything_of_another_workspace(two: Workspaces, path: str) -> None:
    names = {"name": "desk" if "suites" in path else "good", "path": "nothing", "seq": 0}
    asked = path.format(**{**two.ids, **names})
    own, other = (two.ask("GET", asked, key) for key in ("own", "other"))
    assert own.status < 500
    assert other.status in (200, 404, 422), other.body
    # What was asked for may come back in a message, and in the audit log of who asked.
    told = {name for name in ("refunds", "desk", str(two.ids["run_id"])) if name.encode() in other.body}
    assert told <= {name for name in told if name in asked} or path == "/ui/settings"


def test_the_pages_of_the_own_workspace_do_show_it(two: Workspaces) -> None:
    for path in ("/", "/ui/runs", "/ui/suites", "/ui/leaderboard", "/ui/coverage"):
        assert b"desk" in two.ask("GET", path, "own").body


def test_a_refusal_does_not_suggest_names_of_another_workspace(two: Workspaces) -> None:
    for path in (
        "/benchmarks/agents/goo/results",
        "/suites/dess",
        "/benchmarks/leaderboard?category=accuracyy",
    ):
        own, other = (two.ask("GET", path, key) for key in ("own", "other"))
        assert (own.status, other.status) == (404, 404)
        assert any(name in own.body for name in (b"good", b"desk", b"'accuracy'"))
        assert not any(name in other.body for name in (b"good", b"desk", b"'accuracy'"))


def test_a_prefix_last_and_a_baseline_mean_a_run_of_the_own_workspace(two: Workspaces) -> None:
    for ref in (str(two.ids["run_id"])[:6], "last", "@main"):
        assert two.ask("GET", f"/runs/{ref}/result", "own").status == 200
        assert two.ask("GET", f"/runs/{ref}/result", "other").status == 404


def test_the_audit_log_has_what_was_done_in_its_workspace(two: Workspaces) -> None:
    two.ask("POST", "/runs/nobody/cancel", "other")
    assert two.ask("POST", "/runs/nobody/cancel", "reader").status == 403
    prefixes = {name: token.split("_")[1] for name, token in two.tokens.items()}
    for key, users in (("own", ["own"]), ("other", ["other", "reader"])):
        entries = two.ask("GET", "/audit", key).document["entries"]
        assert {entry["key"] for entry in entries} == {prefixes[name] for name in users}


def test_requests_are_counted_by_workspace(two: Workspaces) -> None:
    two.ask("GET", "/cost?volume=7", "own")

    def count_routes(key: str) -> set[str]:
        lines = two.ask("GET", "/metrics", key).body.decode().splitlines()
        return {line for line in lines if line.startswith("assay_requests_total")}

    two.ask("GET", "/nothing/at/all", "other")
    assert any('route="other",status="404"' in line for line in count_routes("other"))
    assert not any('route="other",status="404"' in line for line in count_routes("own"))


def test_a_run_is_carried_out_in_the_workspace_in_which_it_was_asked_for(project: Path) -> None:
    assay = Assay(project)
    for command in (
        ("workspace", "create", "team"),
        ("agent", "add", "agents.yaml", "--workspace", "team"),
        ("suite", "add", "suites/desk.yaml", "--workspace", "team"),
    ):
        assert assay(*command).code == 0
    # The project's own files are for the workspace of the server: without them `team` runs what is in the database.
    tokens = {name: assay("key", "create", "me", "--scope", "run", "--workspace", name, "--json").json["key"]
              for name in ("default", "team")}  # fmt: skip
    with serving(project) as service:
        service.headers["Authorization"] = f"Bearer {tokens['team']}"
        asked = {"agent_id": "bad", "suite_id": "desk", "configuration": {"limit": 3}}
        made = service.post("/benchmarks/run", **asked).document
        assert (made["status"], {row["workspace_id"] for row in made["results"]}) == ("completed", {"team"})
        assert service.get("/agents").document["agents"][0]["has_results"]
        service.headers["Authorization"] = f"Bearer {tokens['default']}"
        assert service.get(f"/runs/{made['run_id']}").status == 404
        assert service.get("/benchmarks/leaderboard").document["leaderboards"] == []
    assert assay("runs", "list", "--json").json == []
    assert [run["id"] for run in assay("runs", "list", "--workspace", "team", "--json").json] == [
        made["run_id"]
    ]


def test_without_keys_the_server_serves_the_workspace_that_it_was_started_with(project: Path) -> None:
    assert Assay(project)("workspace", "create", "team").code == 0
    with serving(project, "--workspace", "team") as service:
        asked = {"agent_id": "good", "suite_id": "desk", "configuration": {"limit": 2}}
        made = service.post("/benchmarks/run", **asked).document
        assert {row["workspace_id"] for row in made["results"]} == {"team"}
    with serving(project) as service:
        assert service.get("/runs").document["runs"] == []


def test_a_key_of_any_workspace_closes_the_server(project: Path) -> None:
    assay = Assay(project)
    assert assay("workspace", "create", "team").code == 0
    token = assay("key", "create", "me", "--workspace", "team", "--json").json["key"]
    with serving(project) as service:
        assert service.get("/runs").status == 401
        service.headers["Authorization"] = f"Bearer {token}"
        assert service.get("/agents").document["agents"] == []


def _find_filled_lists(answer: Answer) -> list[Any]:
    """Every list with something in it, however deep; of figures for Prometheus, those that count runs."""
    if "json" not in answer.headers["content-type"]:
        lines = answer.body.decode().splitlines()
        return [line for line in lines if line.startswith(("assay_runs{", "assay_queue{"))]
    found, left = [], [answer.json]
    while left:
        value = left.pop()
        if isinstance(value, list) and value:
            found.append(value)
        left.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return found
