"""How the executor `ray` connects to a cluster: what listens at a wrong address, and what signals do meanwhile."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from assay.builtin.executors.ray import cluster
from assay.builtin.executors.ray.cluster import Cluster, HeadUnreachable, connect
from assay.errors import PlanError

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """The address of a server that answers so to whatever it is sent, and that is silent if there is no answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            # Closed while the other end still has something to say, it may be reset.
            with connection, suppress(ConnectionResetError):
                connection.recv(100)
                connection.sendall(answer)
                connection.recv(100)

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        serving.join()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["silent", "web server"])
def test_an_address_where_another_program_listens_is_refused_at_once(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.2)
    with (
        listening(answer) as address,
        pytest.raises(PlanError, match=f"No Ray cluster responds at '{address}'"),
    ):
        connect(address)


def test_sigterm_reaches_the_run_while_ray_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's handler would exit in the middle of that."""
    from ray._private import utils

    reached: list[int] = []

    def init(**_: Any) -> None:
        utils.set_sigterm_handler(lambda number, _: sys.exit(number))
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    before = signal.signal(signal.SIGTERM, lambda number, _: reached.append(number))
    try:
        connect(None, cpus=1).close()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert reached == [signal.SIGTERM]


def test_a_head_that_hangs_counts_as_one_that_is_gone_and_leaving_it_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ray._private import worker

    class Endless:
        def join(self) -> None:
            raise AssertionError("waits for the head")

    def shutdown() -> None:
        if thread := getattr(worker.global_worker, "listener_thread", None):
            thread.join()

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "shutdown", shutdown)
    ends = threading.Event()
    connection = SimpleNamespace(listener_thread=Endless(), threads_stopped=ends)
    monkeypatch.setattr(worker, "global_worker", connection)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        context = SimpleNamespace(gcs_address=address)
        monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
        connected = Cluster(address)
        with pytest.raises(HeadUnreachable, match="timed out"):
            connected.nodes()
        connected.close()
    # What listens to the head ends if it ever answers; what listens to another head afterwards does not.
    assert (ends.is_set(), connection.threads_stopped.is_set()) == (True, False)
