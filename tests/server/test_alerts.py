"""Alerts reach a webhook, each once, also if it fails at first or the server is started again."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay
from tests.past import Past, suite_of
from tests.server.conftest import write_project
from tests.server.service import Service, serving
from tests.server.test_schedules import miss_a_time, register_in_team, schedule_suite
from tests.server.waiting import wait_for
from tests.services import Postgres

from assay.errors import AssayError
from assay.model.alert import Alert, AlertKind, AlertState
from assay.pipeline.alerts import deliver_alerts, tell_regressions, tell_stale_agents
from assay.server.overviews import AlertPage
from assay.server.webhook import find_webhook
from assay.spec.settings import Settings, find_settings
from assay.store.store import Store

NOW = datetime(2026, 5, 4, 3, tzinfo=UTC)
SECRET = "T0000-B0000-s3cr3tpath9"


@dataclass
class Receiver:
    """A webhook that answers with these statuses, and then with 200; 0 hangs up."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    received: list[Any] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> list[Any]:
        return [document for status, document in self.received if status == 200]


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    receiver = Receiver(statuses=list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            receiver.received.append((status, json.loads(body)))
            receiver.keys.append(self.headers["idempotency-key"])
            receiver.paths.append(self.path)
            if status:
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/{SECRET}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def an_alert(key: str = "one", **changes: Any) -> Alert:
    made = Alert(
        key, AlertKind.REGRESSION, "major", "It got <!channel> worse & slower.", {"agent_id": "a"}, NOW
    )
    return replace(made, **changes)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'alerts.db'}") as opened:
        yield opened


def with_webhook(settings: Settings) -> Settings:
    return replace(settings, server={**settings.server, "webhook": "${ALERT_URL}"})


def stopped(now: datetime) -> Callable[[], datetime]:
    """A clock that shows one time."""
    return lambda: now


def test_an_alert_is_raised_once(store: Store) -> None:
    assert len(store.raise_alerts([an_alert(), an_alert(), an_alert("two")])) == 2
    assert store.raise_alerts([an_alert(text="again")]) == []
    assert [one.key for one in store.alerts()] == ["two", "one"]


def test_what_a_webhook_does_not_take_is_sent_again_with_longer_and_longer_pauses(store: Store) -> None:
    store.raise_alerts([an_alert()])
    sent: list[datetime] = []
    now = NOW

    def fail(alert: Alert) -> str:
        sent.append(now)
        return "no"

    while (waiting := store.alerts()[0]).state is AlertState.PENDING:
        assert waiting.due is not None
        assert deliver_alerts(store, fail, stopped(waiting.due - timedelta(milliseconds=1))) == []
        now = waiting.due
        deliver_alerts(store, fail, stopped(now))
    waits = [(second - first).total_seconds() for first, second in pairwise(sent)]
    assert waits[:13] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600]
    assert set(waits[13:]) == {3600}
    [alert] = store.alerts()
    assert (alert.state, alert.error) == (AlertState.FAILED, "no")
    assert timedelta(hours=22) < sent[-1] - NOW <= timedelta(days=1)


def test_a_claimed_alert_is_not_sent_by_another_server_and_is_not_lost_with_the_first(store: Store) -> None:
    store.raise_alerts([an_alert()])
    assert store.claim_alert(NOW, NOW + timedelta(minutes=1)) is not None  # and then this server is killed
    assert store.claim_alert(NOW, NOW + timedelta(minutes=1)) is None
    [delivered] = deliver_alerts(store, lambda alert: "", stopped(NOW + timedelta(minutes=1)))
    assert (delivered.state, delivered.attempts) == (AlertState.SENT, 2)
    assert deliver_alerts(store, lambda alert: "", stopped(NOW + timedelta(days=1))) == []


def test_a_slow_webhook_moves_claims_and_retries_on(store: Store) -> None:
    store.raise_alerts([an_alert("one"), an_alert("two")])
    now = NOW
    dues: list[datetime] = []

    def fail_slowly(alert: Alert) -> str:
        nonlocal now
        dues.append(min(one.due for one in store.alerts() if one.id == alert.id and one.due))
        now += timedelta(seconds=20)
        return "no"

    assert len(deliver_alerts(store, fail_slowly, lambda: now)) == 2
    second = NOW + timedelta(seconds=20)
    assert dues == [NOW + timedelta(seconds=30), second + timedelta(seconds=30)]
    wait = timedelta(seconds=1)
    assert sorted(one.due for one in store.alerts() if one.due) == [second + wait, now + wait]


def test_a_webhook_that_answers_byte_by_byte_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 2")
                    for _ in range(100):
                        time.sleep(0.1)
                        connection.sendall(b"0")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        webhook = find_webhook(with_webhook(Settings(Path(), "")), {"ALERT_URL": url})
        assert webhook is not None
        began = time.monotonic()
        error = replace(webhook, seconds=0.5).send(an_alert())
        assert time.monotonic() - began < 5
        assert error
        thread.join(20)


def test_slack_reads_text_in_which_no_name_can_call_a_channel(store: Store) -> None:
    store.raise_alerts([an_alert()])
    with receiving() as receiver:
        webhook = find_webhook(with_webhook(Settings(Path(), "")), {"ALERT_URL": receiver.url})
        assert webhook is not None
        deliver_alerts(store, webhook.send, stopped(NOW))
    [document] = receiver.accepted
    assert "<!channel>" not in document["text"]
    assert {"&lt;!channel&gt;", "&amp;"} <= set(document["text"].split())
    assert document["blocks"][0]["text"]["text"] == document["text"]
    assert document["alert"]["kind"] == "regression"
    assert document["alert"]["agent_id"] == "a"
    assert receiver.paths == [f"/{SECRET}"]


@pytest.mark.parametrize("status", [302, 400, 500, 0])
def test_only_an_answer_of_200_counts_and_redirects_are_not_followed(status: int) -> None:
    with receiving(status) as receiver:
        webhook = find_webhook(with_webhook(Settings(Path(), "")), {"ALERT_URL": receiver.url})
        assert webhook is not None
        error = webhook.send(an_alert())
    assert len(receiver.received) == 1
    assert str(status or "RemoteDisconnected") in error
    assert SECRET not in error


@pytest.mark.parametrize(
    "url", ["", "ftp://host/x", "file:///etc/passwd", "http://", "http://a:b@host/", "http://host:99999/", "http://a b/",
            "http://host/\r\nX: y"],
)  # fmt: skip
def test_a_webhook_that_cannot_be_used_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(AssayError) as refused:
        find_webhook(with_webhook(Settings(Path(), "")), {"ALERT_URL": url})
    assert not [part for part in ("passwd", "a:b", "host", "X: y") if part in str(refused.value)]


def test_the_server_does_not_start_without_the_variable(tmp_path: Path) -> None:
    write_project(tmp_path, 'webhook = "${NO_SUCH_URL}"')
    assert "NO_SUCH_URL" in Assay(tmp_path)("serve", "--port", "0").refusal


def test_a_stale_agent_is_reported_once_until_it_has_new_results(store: Store, project: Path) -> None:
    settings = with_webhook(find_settings(project, {}))
    Past(store, "good").run()
    Past(store, "retired", made=1).run()
    began = store.run("run001").trials[0]
    assert began is not None
    [cell] = [one for one in store.coverage() if one.agent == "good"]
    assert tell_stale_agents(store, settings, cell.latest + timedelta(days=30)) == []
    late = cell.latest + timedelta(days=31)
    [alert] = tell_stale_agents(store, settings, late)
    assert (alert.kind, alert.facts["agent_id"], alert.state) == (AlertKind.STALE_AGENT, "good", "pending")
    assert tell_stale_agents(store, settings, late + timedelta(days=9)) == []


def test_only_a_grave_regression_that_a_run_brought_is_reported(store: Store, project: Path) -> None:
    settings = find_settings(project, {})
    past = Past(store, "good")
    for _ in range(3):
        past.run("1")
    mild = past.run("2", wrong=3)
    assert tell_regressions(store, settings, mild, mild.started + timedelta(minutes=6)) == []
    bad = past.run("3", wrong=20)
    found = tell_regressions(store, settings, bad, bad.started + timedelta(minutes=6))
    assert {(one.facts["agent_id"], one.facts["metric"]) for one in found} == {("good", "score")}
    assert {one.severity for one in found} <= {"major", "critical"}
    assert tell_regressions(store, settings, bad, bad.started + timedelta(minutes=7)) == []
    again = past.run("3", wrong=20)
    assert tell_regressions(store, settings, again, again.started + timedelta(minutes=6)) == []


def read_alerts(service: Service) -> list[dict[str, Any]]:
    page = service.get("/alerts").document
    AlertPage.model_validate(page)
    return list(page["alerts"])


def run_and_break(service: Service, folder: Path, agent: str = "good") -> None:
    """Run an agent, then a version of it that fails every case."""
    asked = {"agent_id": agent, "suite_id": "desk", "configuration": {"repetitions": 3}}
    assert service.post("/benchmarks/run", **asked).document["status"] == "completed"
    (folder / "agents.py").write_text("def good(text): return '?'\n")
    agents = (folder / "agents.yaml").read_text()
    (folder / "agents.yaml").write_text(agents.replace("version: '1'", "version: '2'", 1))
    assert service.post("/benchmarks/run", **asked).document["status"] == "completed"


def test_a_new_regression_reaches_a_webhook_that_fails_at_first(project: Path) -> None:
    write_project(project, 'webhook = "${ALERT_URL}"')
    with receiving(500, 0, 302) as receiver, serving(project, ALERT_URL=receiver.url) as service:
        run_and_break(service, project)
        [alert] = wait_for(
            lambda: read_alerts(service), lambda found: bool(found) and found[0]["state"] == "sent"
        )
        assert (alert["kind"], alert["severity"], alert["attempts"]) == ("regression", "critical", 4)
        assert alert["error"] == ""
        [document] = receiver.accepted
        assert document["alert"]["agent_id"] == "good"
        assert document["alert"]["regression_id"] == alert["facts"]["regression_id"]
        assert len(set(receiver.keys)) == 1
        assert SECRET not in json.dumps(read_alerts(service))
    stored = b"".join(file.read_bytes() for file in (project / ".assay").glob("assay.db*"))
    assert SECRET.encode() not in stored


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_neither_loses_nor_repeats_an_alert(project: Path, number: int) -> None:
    write_project(project, 'webhook = "${ALERT_URL}"')
    with receiving(*[503] * 3) as receiver:
        with serving(project, ALERT_URL=receiver.url) as service:
            run_and_break(service, project)
            wait_for(lambda: len(receiver.received), lambda count: count >= 1)
            service.stop(number)
        with serving(project, ALERT_URL=receiver.url) as service:
            wait_for(lambda: read_alerts(service), lambda found: found[0]["state"] == "sent")
            assert len(receiver.accepted) == 1
        with serving(project, ALERT_URL=receiver.url) as service:
            assert [one["state"] for one in read_alerts(service)] == ["sent"]
    assert len(receiver.accepted) == 1


def test_a_failed_schedule_is_reported(project: Path) -> None:
    write_project(project, 'webhook = "${ALERT_URL}"')
    schedule_suite(project, agents="[nobody]")
    miss_a_time(f"sqlite:///{project / '.assay' / 'assay.db'}")
    with receiving() as receiver, serving(project, ALERT_URL=receiver.url) as service:
        [document] = wait_for(lambda: receiver.accepted, bool)
        assert document["alert"]["kind"] == "schedule_failed"
        assert document["alert"]["agent_id"] == "nobody"
        [schedule] = service.get("/schedules").document["schedules"]
        assert schedule["last_outcome"] == "failed"
        assert "nobody" in schedule["last_runs"][0]["error"]


def test_alerts_of_every_workspace_reach_the_webhook(project: Path) -> None:
    write_project(project, 'webhook = "${ALERT_URL}"')
    schedule_suite(project, agents="")
    register_in_team(project)
    url = f"sqlite:///{project / '.assay' / 'assay.db'}"
    miss_a_time(url, workspace="team")
    with Store.open(url, workspace="team") as store:
        Past(store, "slow", suite_of("refunds", name="retired")).run()
        store.raise_alerts([an_alert(created=datetime.now(UTC))])
    with receiving() as receiver, serving(project, ALERT_URL=receiver.url):
        wait_for(lambda: receiver.accepted, lambda found: len(found) >= 3)
    told = {(one["alert"]["kind"], one["alert"]["agent_id"]) for one in receiver.accepted}
    # Nobody has run the suite in that workspace, so its schedule cannot begin.
    assert told == {("regression", "a"), ("stale_agent", "slow"), ("schedule_failed", None)}


@pytest.mark.postgres
def test_two_servers_send_each_alert_once(project: Path, postgres: Postgres) -> None:
    url = postgres.empty()
    write_project(project, 'webhook = "${ALERT_URL}"')
    with Store.open(url) as store:
        store.raise_alerts(an_alert(f"alert {number}", created=datetime.now(UTC)) for number in range(20))
    with (
        receiving(500, 500) as receiver,
        serving(project, "--db", url, ALERT_URL=receiver.url) as first,
        serving(project, "--db", url, ALERT_URL=receiver.url),
    ):
        wait_for(lambda: read_alerts(first), lambda found: all(one["state"] == "sent" for one in found))
    assert len(receiver.accepted) == 20
    assert len({document["alert"]["id"] for document in receiver.accepted}) == 20
