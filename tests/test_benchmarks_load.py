"""What `make bench-load` judges by is right: the server's record, rates and lateness read from it, and the page."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.wording import Wording

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Gives modules of the benchmarks, which are no package that is installed."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(BENCHMARKS)):
            del sys.modules[name]


def ask(url: str) -> bytes:
    body = json.dumps({"model": "m", "stream": True}).encode()
    with urlopen(Request(f"{url}/v1/chat/completions", data=body), timeout=60) as answer:
        told: bytes = answer.read()
    return told


@pytest.mark.skipif(shutil.which("gcc") is None, reason="The server is compiled with gcc.")
def test_the_server_keeps_a_record_of_what_it_did_and_forgets_it_when_it_was_told(bench: Any) -> None:
    server_module = bench("load.server")
    answers = server_module.Answers(ttft=0.02, itl=0.002, tokens=4)

    with server_module.serving(answers) as server:
        with urlopen(f"{server.url}/v1/models", timeout=60) as models:
            assert json.loads(models.read())["data"][0]["id"] == "m"
        replies = [ask(server.url) for _ in range(3)]
        truth, after = server.truth(), server.truth()

    assert all(reply.count(b'"content":" word"') == 4 for reply in replies)
    assert truth.requests == 3
    assert list(truth.arrivals) == sorted(truth.arrivals)
    assert truth.ttft["p50"] >= 0.02
    assert truth.arrivals[1] - truth.arrivals[0] >= answers.seconds
    assert after.requests == 0


def test_a_rate_leaves_out_how_a_tool_starts_and_stops(bench: Any) -> None:
    truth = bench("load.server").Truth
    even = [10 + number / 100 for number in range(80)]

    steady = truth({}, {}, [*[0.0] * 10, *even, *[100.0] * 10])

    assert steady.rate == pytest.approx(100)


def test_lateness_is_counted_from_the_most_punctual_request(bench: Any) -> None:
    lateness = bench("load.exactness").lateness
    on_time = [7 + number / 200 for number in range(1000)]
    late = [at + (0.004 if number % 50 == 0 else 0.0) for number, at in enumerate(on_time)]

    assert lateness(on_time, 200) == pytest.approx(0, abs=1e-9)
    assert lateness(late, 200) == pytest.approx(0.004)


def test_a_program_is_late_by_what_is_left_of_the_pauses_of_its_machine(bench: Any) -> None:
    floor = bench("load.quiet").floor

    assert floor([], 1.0) == 0
    # Half of the time in these pauses has more than that to go: 1 % of all.
    assert floor([0.002] * 10, 1.0) == pytest.approx(0.001)
    assert floor([0.009] + [20e-6] * 100, 1.0) == pytest.approx(10e-6, rel=0.2)
    assert floor([0.0005, 0.1], 1.0) == pytest.approx(0.09)


def disturbed(quiet: Any, monkeypatch: pytest.MonkeyPatch, taken: list[float], floors: list[float]) -> None:
    """So many seconds are taken away during each measurement of ten, and these floors are seen before."""
    account = chain.from_iterable((0.0, seconds) for seconds in taken)
    clock, floor = count(0.0, 10.0), iter(floors)
    monkeypatch.setattr(quiet, "look", lambda: next(floor))
    monkeypatch.setattr(quiet, "taken_away", lambda: [0.0, next(account)])
    monkeypatch.setattr(quiet.time, "monotonic", lambda: next(clock))


def test_a_measurement_from_which_the_host_took_much_is_made_again_whatever_it_found(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = bench("load.quiet")
    disturbed(quiet, monkeypatch, taken=[5.0, 0.0001, 4.0], floors=[0.003, 0.00005, 0.00002])
    watch, found = quiet.Quiet(), iter(["disturbed", "in quiet", "not made"])

    assert watch.then(lambda: next(found)) == "in quiet"
    assert watch.floors == [0.00005, 0.00002]
    assert watch.shares == [pytest.approx(1e-5)]
    assert "1 more " in str(watch)


def test_of_measurements_that_were_all_disturbed_the_least_disturbed_counts(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = bench("load.quiet")
    disturbed(quiet, monkeypatch, taken=[2.0, 1.0, 3.0], floors=[0.0] * 3)
    found = iter("abc")

    assert quiet.Quiet(tries=3).then(lambda: next(found)) == "b"


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux tells what its host takes away.")
def test_time_that_the_host_takes_is_reported_for_each_core(bench: Any) -> None:
    taken = bench("load.quiet").taken_away()

    assert len(taken) >= 1
    assert all(seconds >= 0 for seconds in taken)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="It is compiled with gcc.")
def test_pauses_are_looked_for_on_both_cores(bench: Any) -> None:
    assert 0 <= bench("load.quiet").look(0.05) < 60


def test_a_peer_that_cannot_be_had_is_left_out_with_a_reason(
    bench: Any, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    tools = bench("load.tools")

    def none(*_: object, **__: object) -> Path:
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(tools, "peer", none)
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)

    found = tools.peers(with_heavy=True)

    assert found.tools == []
    assert set(found.left_out) == {"wrk", "aiohttp", "locust", "vllm", "inference-perf", "aiperf", "guidellm"}
    assert "apt-get install wrk" in found.left_out["wrk"]
    wording(found.left_out["aiohttp"])


def test_wrk_is_installed_where_that_is_possible(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = bench("load.tools")
    there = {"apt-get": "/usr/bin/apt-get"}
    called: list[tuple[str, ...]] = []

    def run(words: tuple[str, ...], **_: Any) -> None:
        called.append(tuple(words[1:]))
        if words[1] == "install":
            there["wrk"] = "/usr/bin/wrk"

    monkeypatch.setattr(tools.shutil, "which", there.get)
    monkeypatch.setattr(tools.subprocess, "run", run)
    monkeypatch.setattr(tools.os, "geteuid", lambda: 0)

    assert tools._wrk().words("http://x", 5, Path(), tools.Put())[0] == "/usr/bin/wrk"
    assert [words[0] for words in called] == ["update", "install"]


@pytest.mark.parametrize(
    ("user", "told"), [(1000, "sudo apt-get install wrk"), (0, "`apt-get install wrk` failed")]
)
def test_wrk_that_cannot_be_installed_is_left_out_in_one_line(
    bench: Any, monkeypatch: pytest.MonkeyPatch, user: int, told: str
) -> None:
    tools = bench("load.tools")
    monkeypatch.setattr(tools.shutil, "which", {"apt-get": "/usr/bin/apt-get"}.get)
    monkeypatch.setattr(tools.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(tools.os, "geteuid", lambda: user)
    monkeypatch.setattr(tools, "_LIGHT", {"wrk": tools._wrk})

    why = tools.peers(with_heavy=False).left_out["wrk"]

    assert told in why
    assert "\n" not in why


WRITTEN = {
    "locust": (
        "out_stats.csv",
        "Type,Name,50%,99%\nPOST,/v1,150,170\nSSE,first token,53,83\n,Aggregated,99,170\n",
    ),
    "aiperf": (
        "out/profile_export_aiperf.json",
        '{"time_to_first_token": {"unit": "ms", "p50": 53.0, "p99": 83.0}, "inter_token_latency": {"p99": 5.0}}',
    ),
    "guidellm": (
        "out.json",
        '{"benchmarks": [{"metrics": {"time_to_first_token_ms": {"successful": {"percentiles": {"p50": 53, "p99": 83}}}}}]}',
    ),
    "inference_perf": (
        "out/summary_lifecycle_metrics.json",
        '{"successes": {"latency": {"time_to_first_token": {"median": 0.053, "p99": 0.083}, '
        '"inter_token_latency": {"median": 0.004, "p99": 0.006}}}}',
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_first_token_is_read_from_what_each_peer_writes(bench: Any, tmp_path: Path, name: str) -> None:
    tools = bench("load.tools")
    path, text = WRITTEN[name]
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(text)

    told = getattr(tools, f"_told_by_{name}")(None, tmp_path)

    assert (told["ttft_p50"], told["ttft_p99"]) == pytest.approx((0.053, 0.083))
    assert told.get("itl_p99") == (0.006 if name == "inference_perf" else None)


def test_a_peer_that_reports_nothing_has_failed_only_where_its_report_is_wanted(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = bench("load.tools")
    truth = bench("load.server").Truth({}, {}, [1.0])
    monkeypatch.setattr(tools, "ran", lambda *_, **__: tools.Ran(None, truth, 0.0))
    tool = tools.Tool("locust", lambda *_: ["true"], tools._told_by_locust)
    server = bench("load.server").Server(1)

    assert tools.put_to(server, tool, 1).truth is truth
    assert tools.put_to(server, tool, 1, reads=True) is None


def test_peers_are_held_against_the_truth_as_far_as_they_tell(bench: Any, wording: Wording) -> None:
    exactness = bench("load.exactness")
    ours = {"ttft_p50": 0.0001, "ttft_p99": 0.0002, "itl_p99": 0.0001}
    held = {
        "assay": {load: [exactness.Held(ours, None)] for load in exactness.LOADS},
        "aiperf": {
            load: [exactness.Held({"ttft_p50": 0.001 * place, "ttft_p99": 0.02}, None)]
            for place, load in enumerate(exactness.LOADS, 1)
        },
        "guidellm": {load: [] for load in exactness.LOADS},
    }

    p50 = exactness._result("ttft_p50", held, {"wrk": "gone", "locust": "it could not be installed"})
    gaps = exactness._result("itl_p99", held, {})

    assert p50.peers["aiperf"].value == pytest.approx(0.003)
    aiperf, left_out = p50.detail.partition("aiperf: ")[2].split(". ")
    assert re.findall(r"\d+", aiperf) == ["1", "1", "32", "2", "200", "3"]
    assert left_out.index("locust: ") < left_out.index("guidellm: ")
    assert "wrk" not in p50.detail
    assert gaps.peers == {}
    assert "aiperf: " in gaps.detail
    wording(p50.detail)
    wording(gaps.detail)


def test_the_page_shows_the_load_engine_beside_its_peers(bench: Any, tmp_path: Path) -> None:
    record, rates = bench("record"), bench("load.rates")
    slow, fast = record.figure([100.0, 110.0, 120.0]), record.figure([1800.0, 2000.0, 2200.0])
    about = {"class": "a machine", "python": "CPython", "load": 0.1, "doubts": []}
    ratio = record.ratio([1800.0, 2000.0, 2200.0], [100.0, 110.0, 120.0])
    result = record.Result(
        rates.PROMISES["locust"], "1/s", fast, ratio, {"locust": slow}, machine=about, date="2026-01-01"
    )
    shutil.copytree(BENCHMARKS / "results", tmp_path / "results", ignore=shutil.ignore_patterns("load"))
    record.save(result, tmp_path / "results" / "load")

    bench("page").main(["--results", str(tmp_path / "results"), "--page", str(tmp_path / "page.md")])

    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    section = text[text.index("\n# Load engine\n") : text.index("\n# Statistics\n")]
    assert "10× locust" in section
    (row,) = [line for line in section.splitlines() if "2,000 /s" in line]
    assert re.findall(r"([\d,]+) /s", row) == ["2,000", "1,800", "2,200", "110", "100", "120"]
    assert row.endswith("| met |")
    assert "a machine" in section
