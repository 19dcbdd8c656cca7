"""A server's own metrics beside the load: read, put on the same time axis, and held against what the server did."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.command import AssayInline
from tests.load.faulty import ANSWER, Guest, always, faulty, until
from tests.sim_llm.asking import quick
from tests.wording import Wording

from assay.builtin.findings.load_times import charts_of
from assay.load import server_metrics
from assay.load.server_metrics import MOST_POINTS, MetricsReader, MetricsSource, read_samples
from assay.report.stored_loads import StoredLoad

VLLM = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b {c}"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0 1700000000000
vllm:num_requests_waiting{engine="0"} 1e1
vllm:gpu_cache_usage_perc{engine="0"} 0.25
vllm:gpu_cache_usage_perc{engine="1"} 0.75
vllm:generation_tokens_total{engine="0"} 1234.0
vllm:iteration_tokens_total_bucket{le="1.0"} 3.0
vllm:prompt_tokens_total NaN
process_resident_memory_bytes 1.048576e+06
unknown_metric 7
not a sample at all
"""
LLAMA = """
llamacpp:requests_processing 2
llamacpp:requests_deferred 5
llamacpp:kv_cache_usage_ratio 0.5
llamacpp:prompt_tokens_total 10
llamacpp:tokens_predicted_total 20
"""


def test_metrics_of_vllm_are_known_and_those_of_several_engines_put_together() -> None:
    assert read_samples(VLLM) == {
        "vllm:num_requests_running": 5.0,
        "vllm:num_requests_waiting": 10.0,
        "vllm:gpu_cache_usage_perc": 0.75,
        "vllm:generation_tokens_total": 1234.0,
        "process_resident_memory_bytes": 2**20,
    }


def test_metrics_of_llama_cpp_are_known() -> None:
    assert list(read_samples(LLAMA).values()) == [2, 5, 0.5, 10, 20]


def series(found: Mapping[str, Any]) -> dict[str, list[list[float]]]:
    return {one["name"]: one["points"] for one in found["server_metrics"]["series"]}


def test_the_queue_of_the_server_is_reported_on_the_time_axis_of_the_load(
    assay_inline: AssayInline, wording: Wording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four slots and eight requests in flight: four run and four wait, all the time."""
    monkeypatch.setattr(server_metrics, "_PATIENCE", 60.0)  # a busy machine may be late
    with quick(ttft=0.4, slots=4) as server:
        done = assay_inline(
            "load", f"{server.url}/v1", "--concurrency", "8", "--duration", "4", "--server-metrics",
            f"{server.url}/metrics", "--json",
        )  # fmt: skip
    found = done.json
    read = found["server_metrics"]
    assert (read["software"], read["failed"]) == ("vLLM", 0)
    points = series(found)
    middle = [point for point in points["vllm:num_requests_running"] if 0.3 < point[0] < 3.8]
    assert len(middle) >= 2
    assert [value for _, value in middle] == [4] * len(middle)
    # Just after four answers nobody waits, until the client has sent the next four requests.
    assert median(value for at, value in points["vllm:num_requests_waiting"] if 0.3 < at < 3.8) == 4
    assert {value for at, value in points["vllm:kv_cache_usage_perc"] if 0.3 < at < 3.8} == {1}
    tokens = points["vllm:generation_tokens_total"]
    assert tokens[0][1] == 0
    assert tokens[-1][1] == 4 * found["requests_completed"]
    (page,) = assay_inline("report", "last", "--format", "html", "--out", "page", "--json").json["files"]
    assert "(vLLM)" in Path(assay_inline.folder, page).read_text(encoding="utf-8")
    charts = {chart.name: chart.spec for chart in charts_of(StoredLoad("x", found), 1)}
    names = {row["what"] for row in charts["load-1-in-flight"]["data"]["values"]}
    assert len(names) == 3
    wording("\n".join(sorted(names)))
    told = charts["load-1-server-tokens"]["data"]["values"]
    rates = [row["value"] for row in told if row["what"] == "output tokens" and 0.5 < row["at"] < 3]
    assert median(rates) == pytest.approx(40, rel=0.45)


def test_a_server_without_metrics_does_not_harm_the_load(assay_inline: AssayInline) -> None:
    with faulty(always(ANSWER)) as server, quick() as other:
        found = assay_inline(
            "load", server.url, "--requests", "40", "--server-metrics", f"{other.url}/nowhere", "--json"
        ).json
    assert found["requests_completed"] == 40
    assert found["valid"] or "nowhere" not in str(found["invalid_because"])
    assert found["server_metrics"]["failed"] == found["server_metrics"]["scrapes"] >= 1
    assert any("HTTP 404" in warning for warning in found["warnings"])


def test_only_hosts_that_are_allowed_are_asked_for_metrics(assay_inline: AssayInline) -> None:
    done = assay_inline(
        "load", "http://127.0.0.1:9/v1", "--requests", "1", "--server-metrics", "http://example.com/metrics"
    )
    assert done.code == 2
    assert "--allow-host example.com" in done.err


def test_metrics_are_read_in_a_spec_too(assay_inline: AssayInline) -> None:
    with quick() as server:
        done = assay_inline(
            "run", "load", "--set", f"target={server.url}/v1", "--set", "requests=5", "--set",
            f"server_metrics={server.url}/metrics",
        )  # fmt: skip
        assert done.code == 0, done.err
    run = assay_inline("show", "last", "--json", "--executions").json
    (execution,) = run["trials"][0]["iteration_metrics"]
    assert execution["output"]["load"][0]["server_metrics"]["software"] == "vLLM"


def test_a_long_load_keeps_a_bounded_number_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(
        "assay.load.server_metrics._fetch",
        lambda source: f"vllm:num_requests_running {next(clock)}",
    )
    reader = MetricsReader(MetricsSource("http://127.0.0.1/metrics"))
    for second in range(5000):
        reader._read(float(second))
    (found,) = reader.summarize(0.0).series
    assert MOST_POINTS / 4 <= len(found.points) <= MOST_POINTS
    assert all(at == value for at, value in found.points)
    assert json.dumps(found.points)


@pytest.mark.parametrize("is_begun", [False, True])
def test_an_endpoint_that_never_ends_its_answer_is_reported_and_not_waited_for(is_begun: bool) -> None:
    def talk(guest: Guest) -> None:
        if is_begun:
            guest.say(b"HTTP/1.1 200 OK\r\n\r\n")
            for _ in range(100):
                guest.say(b"vllm:num_requests_running 1\n")
                time.sleep(0.05)
        time.sleep(5)

    with faulty(talk) as server:
        reader = MetricsReader(MetricsSource(server.url))
        with reader:
            until(lambda: bool(server.requests))
            left = time.monotonic()
        assert time.monotonic() - left < 3
        found = reader.summarize(left)
    assert found.failed == found.scrapes == 1
    assert found.error == "timed out"
