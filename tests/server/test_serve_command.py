from __future__ import annotations

import signal
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from tests.command import Assay, heeding_signals
from tests.server.service import Service, serving

from assay.server.cache import Recent
from assay.server.launch import is_loopback


def test_a_server_says_where_it_is_and_that_it_is_well(server: Service) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert server.get("/health").document["status"] == "ok"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server(project: Path, number: int) -> None:
    with serving(project) as service:
        assert service.stop(number) in (0, -number, 130)


_INTERRUPTED_AT_ONCE = """
import functools, os, signal
install = signal.signal
def install_and_interrupt(number, action):
    before = install(number, action)
    if isinstance(action, functools.partial):  # that of asyncio
        os.kill(os.getpid(), signal.SIGINT)
    return before
signal.signal = install_and_interrupt
from assay.cli.main import main
main(["serve", "--port", "0"])
"""


def test_an_interrupt_before_the_server_has_begun_ends_it(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT_ONCE],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=heeding_signals,
    )
    assert done.returncode in (-signal.SIGINT, 130), done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_thing_is_reported_like_every_other_error(server: Service) -> None:
    answer = server.get("/nothing")
    assert (answer.status, answer.json["error"]) == (404, "not_found")
    answer = server.post("/health")
    assert (answer.status, answer.json["error"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET"


def test_a_port_that_is_taken_is_refused(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port}" in Assay(project)("serve", "--port", str(port)).refusal


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("example.org", False)],
)  # fmt: skip
def test_only_loopback_is_private(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_the_command_line_does_not_load_the_server() -> None:
    code = "import sys; from assay.cli.main import assay; import assay.cli.serve; print('fastapi' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_what_is_recent_is_computed_once() -> None:
    numbers = count(1)
    recent, old = Recent[int](60.0), Recent[int](0.0)
    assert [recent.get(key, lambda: next(numbers)) for key in "aab"] == [1, 1, 2]
    assert [old.get("a", lambda: next(numbers)) for _ in range(2)] == [3, 4]
