"""`assay load` as a user meets it."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import COMMAND, Assay, AssayInline
from tests.load.faulty import ANSWER, Faulty, Guest, always, faulty, until, with_length
from tests.load.loading import started
from tests.sim_llm.asking import quick
from tests.wording import Wording

TIMES = ("mean", "p50", "p90", "p95", "p99", "p999", "max")


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty(always(ANSWER)) as found:
        yield found


@pytest.fixture(scope="module")
def simulated() -> Iterator[str]:
    command: list[str | Path] = [
        COMMAND,
        "sim-llm",
        "--port",
        "0",
        "--json",
        "--ttft",
        "20ms",
        "--itl",
        "2ms",
        "--tokens",
        "5",
        "--slots",
        "4",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_document_has_the_keys_that_are_promised(assay_inline: AssayInline, server: Faulty) -> None:
    found = assay_inline(
        "load", server.url, "--model", "m", "--rate", "100", "--requests", "30", "--json"
    ).json
    promised = {"requests_sent", "requests_completed", "errors", "duration_s", "throughput_rps", "output_tokens_per_s",
                "achieved_rate", "offered_rate", "goodput_rps", "warnings"}  # fmt: skip
    assert promised <= set(found)
    for name in ("ttft_ms", "itl_ms", "tpot_ms", "latency_ms", "schedule_delay_ms"):
        assert set(TIMES) <= set(found[name])
        assert found[name]["p50"] <= found[name]["p99"] <= found[name]["max"]
    assert found["requests_sent"] == found["requests_completed"] == 30
    assert found["errors"] == {}
    assert found["offered_rate"] == 100
    assert found["goodput_rps"] is None


def test_a_load_is_a_run_like_any_other(assay_inline: AssayInline, server: Faulty) -> None:
    run = (
        "load",
        server.url,
        "--requests",
        "40",
        "--concurrency",
        "2",
        "--repetitions",
        "3",
        "--label",
        "mine",
        "--json",
    )
    first, second = (assay_inline(*run).json for _ in range(2))
    assert len(first["loads"]) == 3
    assert {row["id"] for row in assay_inline("runs", "list", "--json").json} == {first["run"], second["run"]}
    shown = assay_inline("show", first["run"])
    assert shown.code == 0
    assert "throughput" in shown.out
    compared = assay_inline("compare", first["run"], second["run"], "--json")
    assert compared.code == 0
    assert "throughput_rps" in compared.out
    assert assay_inline("report", first["run"], "--format", "html").code == 0


def test_the_page_of_a_load_on_a_simulated_server_says_so_beside_its_title(
    assay_inline: AssayInline, wording: Wording
) -> None:
    with quick() as simulated:
        made = assay_inline("load", f"{simulated.url}/v1", "--requests", "10", "--json").json
    (page,) = assay_inline("report", made["run"], "--format", "html", "--out", "page", "--json").json["files"]
    beside = Path(assay_inline.folder, page).read_text(encoding="utf-8").partition("</h1>")[2][:900]
    assert made["simulated"] is True
    (chip,) = re.findall('<span class="chip warn">(simulated.*?)</span>', beside)
    wording(chip)


def test_levels_of_concurrency_are_trials_of_one_run(assay_inline: AssayInline, server: Faulty) -> None:
    found = assay_inline("load", server.url, "--requests", "30", "--concurrency", "1,3", "--json").json
    assert len(found["loads"]) == 2
    shown = assay_inline("show", found["run"]).out
    assert "concurrency=1" in shown
    assert "concurrency=3" in shown


def test_a_load_is_an_experiment_that_can_be_swept(assay_inline: AssayInline, server: Faulty) -> None:
    done = assay_inline(
        "run", "load", "--set", f"target={server.url}", "--set", "requests=20", "--sweep", "concurrency=1,2", "--repetitions", "2", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(server.requests) == 80
    assert "throughput_rps" in done.out


def test_a_load_as_an_experiment_keeps_no_secret_and_is_refused_before_it_is_stored(
    assay_inline: AssayInline, server: Faulty, wording: Wording
) -> None:
    run = ("run", "load", "--set", f"target={server.url}")
    header = json.dumps([f"Authorization: Bearer {SECRET}"])
    assert SECRET not in assay_inline(*run, "--set", f"header={header}").refusal
    refusal = assay_inline("run", "load", "--set", "target=ftp://127.0.0.1/v1").refusal
    assert "'ftp://127.0.0.1/v1'" in refusal
    wording(refusal)
    assert (
        SECRET not in assay_inline("run", "load", "--set", f"target=http://me:{SECRET}@127.0.0.1/v1").refusal
    )
    assert assay_inline("runs", "list", "--json").json == []


def test_a_load_as_an_experiment_is_marked_when_it_is_simulated(
    assay_inline: AssayInline, simulated: str
) -> None:
    done = assay_inline.run_inline(
        "load", "--set", f"target={simulated}/v1", "--set", "requests=20", "--repetitions", "1"
    )
    assert done.code == 0, done.err
    assert "simulated" in done.out
    assert "load.itl_ms" not in done.out


def test_people_see_figures_objectives_and_what_to_do_next(
    assay_inline: AssayInline, server: Faulty, wording: Wording
) -> None:
    done = assay_inline("load", server.url, "--requests", "40", "--slo", "ttft_p95<60s,error_rate<1%")
    assert done.code == 0
    for told in ("requests/s", "P99", "✓ ttft_p95<60s", "Goodput"):
        assert told in done.out
    assert "assay report" in done.err
    first_row = done.out.partition("─\n")[2]
    wording(first_row.partition("  ")[0])


def test_a_broken_objective_ends_with_1(assay_inline: AssayInline, server: Faulty) -> None:
    done = assay_inline("load", server.url, "--requests", "40", "--slo", "ttft_p95<1us")
    assert done.code == 1
    assert "✗ ttft_p95<1us" in done.out


def test_an_objective_that_cannot_be_judged_ends_with_1(assay_inline: AssayInline, wording: Wording) -> None:
    with faulty(always(with_length(b"{}", b"content-type: application/json\r\n"))) as server:
        done = assay_inline("load", server.url, "--no-stream", "--requests", "40", "--slo", "ttft_p95<1s")
    assert done.code == 1
    assert "! ttft_p95<1s " in done.out
    wording(done.out, near="! ttft_p95<1s ")


def test_a_server_that_answers_nothing_ends_with_1_and_is_kept(assay_inline: AssayInline) -> None:
    with faulty(always(b"", close=True)) as server:
        done = assay_inline("load", server.url, "--requests", "5", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["errors"] == {"disconnected": 5}
    assert found["ttft_ms"] is None
    runs = assay_inline("runs", "list", "--json").json
    assert [row["state"] for row in runs] == ["failed"]


REFUSED = [
    (["--rate", "0"], "--rate: "),
    (["--rate", "-5"], "--rate: "),
    (["--rate", "10000000"], "1000000."),
    (["--rate", "5", "--stages", "1s@5"], "--rate or --stages"),
    (["--stages", "1s@5", "--duration", "5"], "--duration"),
    (["--arrivals", "poisson"], "--rate or --stages"),
    (["--arrivals", "hourly", "--rate", "5"], "'hourly'"),
    (["--arrivals", "trace:none.csv"], "none.csv: "),
    (["--dataset", "none.txt"], "none.txt: "),
    (["--dataset", "none.txt", "--prompt", "x"], "--prompt or --dataset"),
    (["--prompt", ""], "--prompt"),
    (["--duration", "0"], "--duration: "),
    (["--duration", "soon"], "'soon'"),
    (["--timeout", "0"], "--timeout: "),
    (["--warmup", "10"], "--warmup"),
    (["--warmup", "5s", "--stages", "1s@5,2s@9"], "5 s"),
    (["--warmup", "5s", "--rate", "100", "--requests", "100"], "--warmup"),
    (["--requests", "0"], "--requests: "),
    (["--concurrency", "0"], "--concurrency: "),
    (["--concurrency", "many"], "'many'"),
    (["--concurrency", "1000000"], "20000"),
    (["--concurrency", "1,2", "--rate", "5"], "--concurrency "),
    (["--workers", "0"], "--workers: "),
    (["--workers", "100000"], "256"),
    (["--think", "1s", "--rate", "5"], "--think"),
    (["--slo", "fast"], "'fast'"),
    (["--raw", "rows.txt"], ".csv, .jsonl, .jsonl.gz"),
    (["--header", "nonsense"], "--header: "),
    (["--header", "x: a\nb: c"], "'x'"),
    (["--find-capacity", "--rate", "5"], " --rate "),
    (["--find-capacity", "--arrivals", "trace:x.csv"], "--arrivals trace:FILE"),
    (["--find-capacity", "--arrivals", "often"], "'often'"),
    (["--find-capacity", "--concurrency", "1,2"], "--find-capacity"),
    (["--find-capacity", "--requests", "5", "--raw", "x.csv"], "--requests, --raw"),
]  # fmt: skip


@pytest.mark.parametrize("command", [("load",), ("stress", "--quick")])
@pytest.mark.parametrize(
    ("url", "given", "told"),
    [
        ("https://127.0.0.1:9/v1", ["--ca-file", "none.pem"], "--ca-file: 'none.pem' "),
        ("https://127.0.0.1:9/v1", ["--ca-file", "empty.pem"], "--ca-file: 'empty.pem' "),
        ("https://127.0.0.1:9/v1", ["--ca-file", "none.pem", "--insecure"], "--ca-file or --insecure"),
        ("http://127.0.0.1:9/v1", ["--ca-file", "empty.pem"], "'http://127.0.0.1:9/v1"),
    ],
    ids=["no_file", "no_certificate", "both", "no_tls"],
)
def test_certificates_that_cannot_be_trusted_are_refused_in_one_message(
    assay_inline: AssayInline,
    command: tuple[str, ...],
    url: str,
    given: list[str],
    told: str,
    wording: Wording,
) -> None:
    assay_inline.write("empty.pem", "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    refusal = assay_inline(command[0], url, *command[1:], *given).refusal
    assert told in refusal
    assert len(refusal.strip().splitlines()) == 1
    wording(refusal)


def test_a_spec_with_a_broken_file_of_certificates_is_refused_before_it_runs(
    assay_inline: AssayInline,
    wording: Wording,
) -> None:
    asked = ("--set", "target=https://127.0.0.1:9/v1", "--set", "ca_file=none.pem")
    refusal = assay_inline("run", "load", *asked).refusal
    assert "'none.pem'" in refusal
    wording(refusal)


@pytest.mark.parametrize(("given", "told"), REFUSED, ids=[" ".join(given) for given, _ in REFUSED])
def test_what_cannot_be_done_is_refused_before_anything_is_sent(
    assay_inline: AssayInline, server: Faulty, given: list[str], told: str, wording: Wording
) -> None:
    refusal = assay_inline("load", server.url, *given).refusal
    assert told in refusal
    wording(refusal, near="Error: ")
    assert server.requests == []


@pytest.mark.parametrize("file", ["/proc/rows.csv", "/proc/rows.parquet"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_sent(
    assay_inline: AssayInline, server: Faulty, file: str, wording: Wording
) -> None:
    refusal = assay_inline("load", server.url, "--raw", file).refusal
    assert f"'{file}'" in refusal
    assert server.requests == []
    wording(refusal.rpartition(": ")[0])  # The reason is that of the system.


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nobody", "'nobody'"),
        ("http://example.com/v1", "--allow-host example.com"),
        ("http://127.0.0.1:99999/v1", "'http://127.0.0.1:99999/v1'"),
        ("http:///v1", "'http:///v1'"),
        ("http://[::1/v1", "'http://[::1/v1'"),
    ],
    ids=["no_agent", "other_machine", "no_port", "no_host", "no_bracket"],
)
def test_a_target_that_cannot_be_is_refused(
    assay_inline: AssayInline, target: str, told: str, wording: Wording
) -> None:
    refusal = assay_inline("load", target).refusal
    assert told in refusal
    wording(refusal)


SECRET = "sk-very-secret-1234567890"


@pytest.mark.parametrize(
    "header", ["Authorization: Bearer ", "X-Api-Key: ", "cookie: session=", "X-Auth-Token:", "X-Goog-Key: "]
)
def test_a_secret_is_not_taken_from_the_command_line(
    assay_inline: AssayInline, server: Faulty, header: str
) -> None:
    told = assay_inline("load", server.url, "--header", header + SECRET).refusal
    assert "${NAME}" in told
    assert SECRET not in told


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{SECRET}@127.0.0.1:1/v1",
        f"http://127.0.0.1:1/v1?api_key={SECRET}",
        f"http://127.0.0.1:1/v1?a=1;token={SECRET}",
        f"http://127.0.0.1:1/v1?sig={SECRET}",
    ],
    ids=["password", "api_key", "token", "sig"],
)
def test_a_secret_is_not_taken_from_the_address(
    assay_inline: AssayInline, url: str, wording: Wording
) -> None:
    told = assay_inline("load", url).refusal
    assert "'127.0.0.1'" in told
    assert SECRET not in told
    wording(told)


def test_a_secret_from_a_variable_is_sent_but_kept_nowhere(assay_inline: AssayInline, server: Faulty) -> None:
    done = assay_inline(
        "load",
        server.url,
        "--header",
        "Authorization: Bearer ${THE_KEY}",
        "--requests",
        "3",
        "--json",
        THE_KEY=SECRET,
    )
    assert done.code == 0, done.err
    assert f"Authorization: Bearer {SECRET}".encode() in server.requests[0]
    assert SECRET not in done.out + done.err
    files = [file for file in assay_inline.folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in files)
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    with sqlite3.connect(next(file for file in files if file.suffix == ".db")) as database:
        assert SECRET not in "\n".join(database.iterdump())
    database.close()


def test_a_variable_that_is_not_set_is_named(assay_inline: AssayInline, server: Faulty) -> None:
    told = assay_inline("load", server.url, "--header", "Authorization: ${NOT_THERE}").refusal
    assert "${NOT_THERE}" in told


def test_every_request_is_written_to_csv(assay_inline: AssayInline, server: Faulty) -> None:
    done = assay_inline(
        "load",
        server.url,
        "--requests",
        "20",
        "--repetitions",
        "2",
        "--raw",
        "deep/rows.csv",
        "--workers",
        "2",
        "--concurrency",
        "2",
    )
    assert done.code == 0, done.err
    with (assay_inline.folder / "deep" / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted((int(row["load"]), int(row["number"])) for row in rows) == [
        (n, k) for n in range(2) for k in range(20)
    ]
    assert {row["outcome"] for row in rows} == {"ok"}
    assert all(float(row["due_s"]) <= float(row["sent_s"]) <= float(row["end_s"]) for row in rows)
    assert {row["output_tokens"] for row in rows} == {"3"}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_every_request_is_written_as_a_line_of_json(assay_inline: AssayInline, name: str) -> None:
    def talk(guest: Guest) -> None:
        guest.say(ANSWER if guest.number % 2 else with_length(b"", status=b"500 Oops"))

    with faulty(talk) as server:
        assert assay_inline("load", server.url, "--requests", "10", "--raw", name).code == 0
    content = (assay_inline.folder / name).read_bytes()
    text = gzip.decompress(content) if name.endswith(".gz") else content
    rows = [json.loads(line) for line in text.decode().splitlines()]
    assert [row["number"] for row in rows] == list(range(10))
    assert [row["outcome"] for row in rows] == ["ok", "http_500"] * 5
    assert [row["output_tokens"] for row in rows] == [3, None] * 5
    assert all(row["due_s"] <= row["sent_s"] <= row["end_s"] for row in rows)


def test_every_request_is_written_to_parquet(assay_inline: AssayInline) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    def talk(guest: Guest) -> None:
        guest.say(ANSWER if guest.number % 2 else with_length(b"", status=b"500 Oops"))

    with faulty(talk) as server:
        assert assay_inline("load", server.url, "--requests", "10", "--raw", "rows.parquet").code == 0
    rows = parquet.read_table(assay_inline.folder / "rows.parquet").to_pylist()
    assert [row["number"] for row in rows] == list(range(10))
    assert [row["outcome"] for row in rows] == ["ok", "http_500"] * 5
    assert [row["output_tokens"] for row in rows] == [3, None] * 5


@pytest.fixture
def hangup() -> Iterator[None]:
    """Processes that are started notice that their terminal hangs up, also where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_reports_what_was_measured(
    assay_inline: AssayInline, server: Faulty, number: signal.Signals, hangup: None
) -> None:
    # At ten a second, no pause of the machine is long enough for more than one request to be missing at the end.
    with started(assay_inline.folder, server.url, "--rate", "10", "--duration", "600", "--json") as process:
        until(lambda: len(server.requests) > 15)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    found = json.loads(out)
    assert found["requests_completed"] >= 10
    assert found["ttft_ms"]["n"] >= 10
    assert set(found["errors"]) <= {"cut_off"}
    assert found["interrupted"] is True
    assert found["verdict"] == "interrupted"
    assert not any(" of 10 requests/s" in doubt for doubt in found["invalid_because"])
    runs = assay_inline("runs", "list", "--json").json
    assert [(row["id"], row["state"]) for row in runs] == [(found["run"], "interrupted")]


@pytest.mark.real_starts
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found by /proc")
def test_a_worker_that_is_killed_is_reported_and_ends_with_2(
    assay: Assay, server: Faulty, wording: Wording
) -> None:
    with started(assay.folder, server.url, "--rate", "50", "--duration", "600", "--json") as process:
        until(lambda: len(server.requests) > 30)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            if "assay.load.worker" in Path(f"/proc/{child}/cmdline").read_text():
                os.kill(int(child), signal.SIGKILL)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    found = json.loads(out)
    assert found["requests_completed"] >= 10
    assert found["valid"] is False
    assert found["warnings"][0].startswith("1 of 1 ")
    wording(found["warnings"][0], numbers=False)


def test_simulated_results_are_marked(assay_inline: AssayInline, simulated: str) -> None:
    found = assay_inline("load", f"{simulated}/v1", "--requests", "10", "--concurrency", "2", "--json").json
    assert found["simulated"] is True
    assert found["output_tokens_per_s"] == pytest.approx(5 * found["throughput_rps"])
    assert "simulated" in assay_inline("load", f"{simulated}/api/generate", "--requests", "3").out
    assert "simulated" in assay_inline("load", f"{simulated}/v1/messages", "--requests", "3").out


def test_an_agent_behind_a_server_is_loaded_by_its_name(assay_inline: AssayInline, server: Faulty) -> None:
    definition = f"agents: [{{name: mine, type: openai, base_url: '{server.url}', model: tiny}}]\n"
    assert assay_inline("agent", "add", assay_inline.write("agents.yaml", definition)).code == 0
    done = assay_inline("load", "mine", "--requests", "5", "--json")
    assert done.json["requests_completed"] == 5
    assert json.loads(server.requests[0].partition(b"\r\n\r\n")[2])["model"] == "tiny"


@pytest.mark.slow
def test_the_capacity_of_a_server_with_known_slots_is_found(
    assay_inline: AssayInline, simulated: str
) -> None:
    """Four slots of 28 ms each: a little more than 140/s at most, less what a busy machine costs."""
    done = assay_inline(
        "load", f"{simulated}/v1", "--find-capacity", "--duration", "2", "--slo", "error_rate<1%", "--json"
    )
    assert done.code == 0, done.err
    found = done.json
    assert 0.5 * 143 < found["sustained_rate"] < 1.1 * 143
    if found["breaking_rate"] is None:
        # A machine this busy was the limit itself, which is said of no server.
        assert found["cause"] == "generator"
        assert not found["confirmed"]
    else:
        assert found["sustained_rate"] < found["breaking_rate"]
    assert found["cause"] in ("saturation", "latency", "errors", "generator")
    assert found["knee_concurrency"] >= 2
    assert found["simulated"] is True
    assert len(found["steps"]) > 6
    low, high = found["sustained_interval"]
    assert low < found["sustained_rate"] < high
    assert "Sustained rate: " in assay_inline("show", found["run"]).out


@pytest.mark.slow
def test_a_search_may_offer_its_rates_by_chance(assay_inline: AssayInline, simulated: str) -> None:
    asked = (
        "load",
        f"{simulated}/v1",
        "--find-capacity",
        "--arrivals",
        "poisson",
        "--duration",
        "0.3",
        "--json",
    )
    found = assay_inline(*asked).json
    assert found["sustained_rate"] > 0
    shown = assay_inline("show", found["run"], "--json").json
    assert shown["trials"][0]["parameters"]["arrivals"] == "poisson"
    assert "stopped" not in {warning["code"] for warning in shown["warnings"]}
