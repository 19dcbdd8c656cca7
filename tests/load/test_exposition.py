"""`--metrics-port`: the running load's own metrics, read while it runs."""

from __future__ import annotations

import re
import socket
import time
import urllib.request

import pytest
from tests.command import AssayInline
from tests.load.faulty import ANSWER, Guest, faulty, with_length

from assay.load.exposition import LoadCounters


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def values(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^(assay_load_\S+) (\S+)$", text, re.M)}


def test_what_was_sent_and_answered_can_be_read_while_the_load_runs(assay_inline: AssayInline) -> None:
    port = free_port()
    read: list[str] = []

    def talk(guest: Guest) -> None:
        time.sleep(0.05)
        if guest.number == 40:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
                read.append(page.read().decode())
        guest.say(with_length(b"", status=b"500 Oops") if guest.number % 4 == 0 else ANSWER)

    with faulty(talk) as server:
        done = assay_inline(
            "load",
            server.url,
            "--concurrency",
            "1",
            "--requests",
            "60",
            "--metrics-port",
            str(port),
            "--json",
        )
    assert done.code == 0, done.err
    (text,) = read
    found = values(text)
    failed = found['assay_load_requests_failed_total{kind="http_500"}']
    completed = found["assay_load_requests_completed_total"]
    assert 20 <= completed + failed <= 39
    assert failed == pytest.approx((completed + failed) / 4, abs=1)
    assert completed + failed <= found["assay_load_requests_sent_total"] <= 40
    assert 0 <= found["assay_load_requests_in_flight"] <= 1
    assert found["assay_load_output_tokens_total"] == 3 * completed
    for name in ("ttft", "latency"):
        assert found[f'assay_load_{name}_seconds_bucket{{le="+Inf"}}'] == completed
        assert found[f"assay_load_{name}_seconds_count"] == completed
        assert found[f'assay_load_{name}_seconds_bucket{{le="60"}}'] == completed
    assert found["assay_load_elapsed_seconds"] >= 30 * 0.05
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=1)


def test_every_metric_has_its_type_and_help() -> None:
    text = LoadCounters().text()
    typed = re.findall(r"^# TYPE (\S+) (counter|gauge|histogram)$", text, re.M)
    described = re.findall(r"^# HELP (\S+) \S", text, re.M)
    assert len(typed) == 8
    assert [name for name, _ in typed] == described


def test_a_port_that_is_taken_is_refused(assay_inline: AssayInline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = assay_inline("load", "http://127.0.0.1:9/v1", "--requests", "1", "--metrics-port", str(port))
    assert done.code == 2
    assert "--metrics-port" in done.err
